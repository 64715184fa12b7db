// UTF-8 as the tokenizers need it: what is valid, what may still become valid, and U+FFFD for the rest. Bad
// bytes are grouped as Unicode's "substitution of maximal subparts" (The Unicode Standard, chapter 3.9),
// which is also what Python's bytes.decode(errors="replace") does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace recto {

struct Utf8Step {
    enum class Kind : std::uint8_t {
        valid,
        invalid,
        incomplete
    };  // incomplete: the text ends inside a character
    Kind kind = Kind::valid;
    std::uint8_t bytes = 0;   // length of the character, of the bad maximal part, or of the unfinished rest
    char32_t code_point = 0;  // when valid
};

// Looks at the first character of a text that is not empty.
Utf8Step utf8_step(std::string_view text);

bool is_valid_utf8(std::string_view text);
// Every maximal bad part becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Bytes that begin a character in valid UTF-8.
inline bool is_utf8_start(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

}  // namespace recto
