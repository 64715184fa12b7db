// The patterns of tokenizers are written for Oniguruma (Ruby syntax); PCRE2 reads some of the same text
// differently.
#pragma once
#include <string>

namespace recto {

// The PCRE2 pattern that means what Oniguruma means by `pattern`:
//   X{n,m}+   repeats X{n,m}; PCRE2 would make it possessive
//   \s \w     Unicode's White_Space, and letters, marks, digits and connectors (UTS 18); PCRE2 10.42 adds
//   U+180E to
//             the one and lacks marks and connectors in the other
//   \h        a hexadecimal digit; PCRE2 would match a blank
// Error(input) for what has no such translation (class intersections, nested classes, \b).
std::string oniguruma_to_pcre2(const std::string& pattern, const std::string& label);

}  // namespace recto
