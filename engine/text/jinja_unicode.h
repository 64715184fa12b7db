// Characters as Python's str methods see them: white space, classes, and full case mapping.
#pragma once
#include <cstdint>
#include <string>

namespace recto::jinja {

bool is_space(std::uint32_t code_point);  // str.isspace
bool is_alpha(std::uint32_t code_point);
bool is_decimal(std::uint32_t code_point);
bool is_other_number(std::uint32_t code_point);  // numeric, but not a decimal digit: ², Ⅷ, ½
bool is_upper(std::uint32_t code_point);
bool is_lower(std::uint32_t code_point);
bool is_title(std::uint32_t code_point);
bool is_printable(std::uint32_t code_point);
bool is_cased(std::uint32_t code_point);
bool is_case_ignorable(std::uint32_t code_point);
// Full mappings (one character may become up to three), without the final-sigma rule.
std::string upper_of(std::uint32_t code_point);
std::string lower_of(std::uint32_t code_point);
std::string title_of(std::uint32_t code_point);

}  // namespace recto::jinja
