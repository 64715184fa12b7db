#include "engine/text/utf8.h"

#include <cstring>

namespace recto {

namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
    return static_cast<unsigned char>(text[i]);
}

std::size_t ascii_prefix(std::string_view text) {
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + i, 8);
        if ((word & 0x8080808080808080ULL) != 0) break;
    }
    while (i < text.size() && byte_at(text, i) < 0x80)
        ++i;
    return i;
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
    using Kind = Utf8Step::Kind;
    const unsigned lead = byte_at(text, 0);
    if (lead < 0x80) return {Kind::valid, 1, static_cast<char32_t>(lead)};
    if (lead < 0xC2 || lead > 0xF4) return {Kind::invalid, 1, 0};
    const unsigned length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // Overlong forms, surrogates and values above U+10FFFF are all excluded by the range of the second byte.
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    char32_t value = lead & (0x7FU >> length);
    for (unsigned i = 1; i < length; ++i) {
        if (i >= text.size()) return {Kind::incomplete, static_cast<std::uint8_t>(i), 0};
        const unsigned next = byte_at(text, i);
        if (next < low || next > high) return {Kind::invalid, static_cast<std::uint8_t>(i), 0};
        low = 0x80;
        high = 0xBF;
        value = (value << 6U) | (next & 0x3FU);
    }
    return {Kind::valid, static_cast<std::uint8_t>(length), value};
}

bool is_valid_utf8(std::string_view text) {
    while (true) {
        text.remove_prefix(ascii_prefix(text));
        if (text.empty()) return true;
        const Utf8Step step = utf8_step(text);
        if (step.kind != Utf8Step::Kind::valid) return false;
        text.remove_prefix(step.bytes);
    }
}

std::string replace_invalid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        out += step.kind == Utf8Step::Kind::valid ? text.substr(0, step.bytes) : kReplacementCharacter;
        text.remove_prefix(step.bytes);
    }
    return out;
}

void append_utf8(std::string& out, char32_t c) {
    const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | (c >> 6U));
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | (c >> 12U));
        put(0x80 | ((c >> 6U) & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | (c >> 18U));
        put(0x80 | ((c >> 12U) & 0x3F));
        put(0x80 | ((c >> 6U) & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

}  // namespace recto
