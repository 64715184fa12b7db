#include "engine/text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "engine/text/utf8.h"

namespace recto {

namespace {

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

template <class Function>
std::string map_characters(std::string_view text, const Function& append) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        append(out, step.code_point);
        text.remove_prefix(step.bytes);
    }
    return out;
}

std::vector<utf8proc_int32_t> decompose(std::string_view text, bool compatible) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                                        (compatible ? UTF8PROC_COMPAT : 0));
    std::vector<utf8proc_int32_t> out;
    out.reserve(text.size());
    std::array<utf8proc_int32_t, 32> buffer{};  // the longest decomposition has 18 characters
    int boundary = 0;
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        const utf8proc_ssize_t n =
            utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.code_point), buffer.data(),
                                    static_cast<utf8proc_ssize_t>(buffer.size()), options, &boundary);
        assert(n >= 0 && n <= static_cast<utf8proc_ssize_t>(buffer.size()));
        out.insert(out.end(), buffer.begin(), buffer.begin() + n);
        text.remove_prefix(step.bytes);
    }
    return out;
}

// The canonical order of combining marks. utf8proc's own is quadratic in the length of a run of marks, and
// the text comes from anywhere.
void order_marks(std::vector<utf8proc_int32_t>& characters) {
    const auto mark_class = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
    for (auto begin = characters.begin(); begin != characters.end();) {
        if (mark_class(*begin) == 0) {
            ++begin;
            continue;
        }
        const auto end = std::find_if(begin, characters.end(), [&](auto c) { return mark_class(c) == 0; });
        std::stable_sort(begin, end, [&](auto a, auto b) { return mark_class(a) < mark_class(b); });
        begin = end;
    }
}

}  // namespace

std::string normalize(std::string_view text, NormalForm form) {
    if (is_ascii(text)) return std::string(text);  // every normal form of ASCII is itself
    const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
    const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
    std::vector<utf8proc_int32_t> characters = decompose(text, compatible);
    order_marks(characters);
    auto size = static_cast<utf8proc_ssize_t>(characters.size());
    if (compose)
        size = utf8proc_normalize_utf32(characters.data(), size,
                                        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    std::string out;
    out.reserve(text.size());
    for (utf8proc_ssize_t i = 0; i < size; ++i)
        append_utf8(out, static_cast<char32_t>(characters[static_cast<std::size_t>(i)]));
    return out;
}

std::string lowercase(std::string_view text) {
    return map_characters(text, [](std::string& out, char32_t c) {
        if (c == 0x130) {  // the one character whose lower case is two characters in every language
            out += "i\xCC\x87";
        } else {
            append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
        }
    });
}

std::string strip_accents(std::string_view text) {
    return map_characters(text, [](std::string& out, char32_t c) {
        const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
        const bool mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                          category == UTF8PROC_CATEGORY_ME;
        if (!mark) append_utf8(out, c);
    });
}

}  // namespace recto
