#include "engine/load/refuse.h"

#include "kernels/error.h"

namespace recto {

void refuse(const std::string& label, const std::string& sentence) {
    throw Error(ErrorKind::input, label + ": " + sentence);
}

std::string shown(std::string_view text) {
    constexpr std::size_t limit = 64;
    std::string out = "\"";
    for (const char c : text.substr(0, limit)) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte >= 0x7F ? '?' : c;
    }
    return out + (text.size() > limit ? "…\"" : "\"");
}

}  // namespace recto
