#include "engine/text/byte_map.h"

#include <array>
#include <charconv>
#include <cstdint>

#include "engine/text/utf8.h"

namespace recto {

namespace {

struct ByteMap {
    std::array<char16_t, 256> character{};
    std::array<std::int16_t, 0x144> byte{};  // by character; -1 outside the map
};

// Printable Latin-1 stands for itself; the other 68 bytes, in order, become U+0100 and up.
constexpr ByteMap make_byte_map() {
    ByteMap map;
    for (auto& b : map.byte)
        b = -1;
    char16_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
        const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        const char16_t c = printable ? static_cast<char16_t>(b) : next++;
        map.character[static_cast<std::size_t>(b)] = c;
        map.byte[c] = static_cast<std::int16_t>(b);
    }
    return map;
}

constexpr ByteMap kByteMap = make_byte_map();

}  // namespace

std::string bytes_to_map(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size() + bytes.size() / 4);
    for (const char b : bytes)
        append_utf8(out, kByteMap.character[static_cast<unsigned char>(b)]);
    return out;
}

std::optional<std::string> map_to_bytes(std::string_view spelling) {
    std::string out;
    out.reserve(spelling.size());
    while (!spelling.empty()) {
        const Utf8Step step = utf8_step(spelling);
        if (step.kind != Utf8Step::Kind::valid || step.code_point >= kByteMap.byte.size())
            return std::nullopt;
        const int byte = kByteMap.byte[step.code_point];
        if (byte < 0) return std::nullopt;
        out.push_back(static_cast<char>(byte));
        spelling.remove_prefix(step.bytes);
    }
    return out;
}

std::string byte_token(unsigned char byte) {
    static constexpr std::string_view kDigits = "0123456789ABCDEF";
    return std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 0xFU] + '>';
}

int byte_of_token(std::string_view spelling) {
    if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling.back() != '>') return -1;
    int byte = 0;
    const auto [end, error] = std::from_chars(spelling.data() + 3, spelling.data() + 5, byte, 16);
    return error == std::errc() && end == spelling.data() + 5 ? byte : -1;
}

}  // namespace recto
