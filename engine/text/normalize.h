// Unicode normalization and lower case over valid UTF-8, by utf8proc.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace recto {

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
std::string normalize(std::string_view text, NormalForm form);
std::string lowercase(std::string_view text);      // character by character, without context
std::string strip_accents(std::string_view text);  // drops combining marks

}  // namespace recto
