// How a reader says that a file is bad: one sentence, with the file's name in front.
#pragma once
#include <string>
#include <string_view>

namespace recto {

// Throws Error(input, "LABEL: SENTENCE").
[[noreturn]] void refuse(const std::string& label, const std::string& sentence);

// Bytes out of a file, made fit for a message: in quotes, printable, at most 64 bytes of it.
std::string shown(std::string_view text);

}  // namespace recto
