#include "engine/text/jinja_text.h"

#include <algorithm>

namespace recto::jinja {

bool Text::any_user() const {
    return std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.user; });
}

bool Text::user_at(std::size_t byte) const {
    auto run = std::upper_bound(runs_.begin(), runs_.end(), byte,
                                [](std::size_t at, const Run& candidate) { return at < candidate.end; });
    return run != runs_.end() && run->user;
}

void Text::append(std::string_view bytes, bool user) {
    if (bytes.empty()) return;
    bytes_ += bytes;
    if (!runs_.empty() && runs_.back().user == user)
        runs_.back().end = bytes_.size();
    else
        runs_.push_back({bytes_.size(), user});
}

void Text::append(const Text& other, std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    auto run = std::upper_bound(other.runs_.begin(), other.runs_.end(), begin,
                                [](std::size_t at, const Run& candidate) { return at < candidate.end; });
    for (std::size_t at = begin; at < end; ++run) {
        const std::size_t stop = std::min(end, run->end);
        append(std::string_view(other.bytes_).substr(at, stop - at), run->user);
        at = stop;
    }
}

Text Text::slice(std::size_t begin, std::size_t end) const {
    Text out;
    out.append(*this, begin, end);
    return out;
}

std::vector<TextPiece> Text::pieces() const {
    std::vector<TextPiece> out;
    std::size_t begin = 0;
    for (const Run& run : runs_) {
        out.push_back({bytes_.substr(begin, run.end - begin), run.user});
        begin = run.end;
    }
    return out;
}

CodePoint code_point_at(std::string_view bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
    const std::uint8_t lead = byte(at);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 1) return {lead, 1};
    if (length == 0 || at + length > bytes.size()) return {lead, 1};
    std::uint32_t value = lead & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0) != 0x80) return {lead, 1};
        value = (value << 6) | (byte(at + i) & 0x3Fu);
    }
    const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
    const bool outside = value > 0x10FFFF || (value >= 0xD800 && value < 0xE000);
    if (overlong || outside) return {lead, 1};
    return {value, length};
}

std::size_t count_code_points(std::string_view bytes) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < bytes.size(); at += code_point_at(bytes, at).length)
        ++count;
    return count;
}

std::vector<std::size_t> code_point_starts(std::string_view bytes) {
    std::vector<std::size_t> starts;
    starts.reserve(bytes.size() + 1);
    for (std::size_t at = 0; at < bytes.size(); at += code_point_at(bytes, at).length)
        starts.push_back(at);
    starts.push_back(bytes.size());
    return starts;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
    const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0 | (code_point >> 6));
        put(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        put(0xE0 | (code_point >> 12));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    } else {
        put(0xF0 | (code_point >> 18));
        put(0x80 | ((code_point >> 12) & 0x3F));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    }
}

}  // namespace recto::jinja
