// Operations on text that methods and filters share; each keeps the origin of every character.
#include <algorithm>

#include "engine/text/jinja_machine.h"
#include "engine/text/jinja_unicode.h"

namespace recto::jinja {
namespace {

// Python's final sigma: Σ becomes ς after a cased letter and before none, skipping what is ignorable.
bool is_final_sigma(const std::string& bytes, const std::vector<std::size_t>& starts, std::size_t i) {
    const auto cased_towards = [&](std::size_t from, int step) {
        for (std::size_t j = from; j < starts.size() - 1; j += static_cast<std::size_t>(step)) {
            const std::uint32_t c = code_point_at(bytes, starts[j]).value;
            if (!is_case_ignorable(c)) return is_cased(c);
            if (step < 0 && j == 0) break;
        }
        return false;
    };
    return i > 0 && cased_towards(i - 1, -1) && !cased_towards(i + 1, 1);
}

constexpr std::uint32_t capital_sigma = 0x3A3;

void append_lower(Text& out, const Text& text, const std::vector<std::size_t>& starts, std::size_t i) {
    const std::uint32_t c = code_point_at(text.bytes(), starts[i]).value;
    const bool user = text.user_at(starts[i]);
    if (c == capital_sigma)
        out.append(is_final_sigma(text.bytes(), starts, i) ? "ς" : "σ", user);
    else if (starts[i + 1] - starts[i] == 1 && c >= 0x80)
        out.append(text, starts[i], starts[i + 1]);  // a stray byte
    else
        out.append(lower_of(c), user);
}

template <class Map>
void append_mapped(Text& out, const Text& text, std::size_t begin, std::size_t end, Map map) {
    const std::uint32_t c = code_point_at(text.bytes(), begin).value;
    if (end - begin == 1 && c >= 0x80)
        out.append(text, begin, end);
    else
        out.append(map(c), text.user_at(begin));
}

bool is_line_end(std::uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

Text strip(const Text& text, const std::string* characters, bool left, bool right) {
    const std::string& bytes = text.bytes();
    const auto strips = [&](std::size_t begin, std::size_t end) {
        if (characters == nullptr) return is_space(code_point_at(bytes, begin).value);
        const std::string_view wanted(bytes.data() + begin, end - begin);
        for (std::size_t at = 0; at < characters->size();) {
            const std::size_t size = code_point_at(*characters, at).length;
            if (std::string_view(*characters).substr(at, size) == wanted) return true;
            at += size;
        }
        return false;
    };
    const auto starts = code_point_starts(bytes);
    std::size_t begin = 0, end = starts.size() - 1;
    while (left && begin < end && strips(starts[begin], starts[begin + 1]))
        ++begin;
    while (right && end > begin && strips(starts[end - 1], starts[end]))
        --end;
    return text.slice(starts[begin], starts[end]);
}

Text upper(const Text& text) {
    Text out;
    const auto starts = code_point_starts(text.bytes());
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
        append_mapped(out, text, starts[i], starts[i + 1], upper_of);
    return out;
}

Text lower(const Text& text) {
    Text out;
    const auto starts = code_point_starts(text.bytes());
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
        append_lower(out, text, starts, i);
    return out;
}

Text capitalize(const Text& text) {
    Text out;
    const auto starts = code_point_starts(text.bytes());
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
        if (i == 0)
            append_mapped(out, text, starts[0], starts[1], title_of);
        else
            append_lower(out, text, starts, i);
    return out;
}

Text title(const Text& text) {
    Text out;
    const auto starts = code_point_starts(text.bytes());
    bool inside_word = false;
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        if (inside_word)
            append_lower(out, text, starts, i);
        else
            append_mapped(out, text, starts[i], starts[i + 1], title_of);
        inside_word = is_cased(code_point_at(text.bytes(), starts[i]).value);
    }
    return out;
}

Text swap_case(const Text& text) {
    Text out;
    const auto starts = code_point_starts(text.bytes());
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        const std::uint32_t c = code_point_at(text.bytes(), starts[i]).value;
        if (is_upper(c))
            append_lower(out, text, starts, i);
        else if (is_lower(c))
            append_mapped(out, text, starts[i], starts[i + 1], upper_of);
        else
            out.append(text, starts[i], starts[i + 1]);
    }
    return out;
}

Text replace(Machine& machine, const Text& text, const std::string& from, const Text& to,
             std::int64_t count) {
    const std::string& bytes = text.bytes();
    Text out;
    std::size_t at = 0;
    const auto put = [&](const Text& piece) {
        out.append(piece);
        machine.charge(1);
        if (out.size() > max_text_bytes) machine.charge_text(out.size());
    };
    if (from.empty()) {  // between all characters
        const auto starts = code_point_starts(bytes);
        for (std::size_t i = 0; i < starts.size() && count != 0; ++i, --count) {
            put(to);
            at = i + 1 < starts.size() ? starts[i + 1] : bytes.size();
            out.append(text, starts[i], at);
        }
    } else {
        while (count-- != 0) {
            const std::size_t found = bytes.find(from, at);
            if (found == std::string::npos) break;
            out.append(text, at, found);
            put(to);
            at = found + from.size();
        }
    }
    out.append(text, at, text.size());
    machine.charge_text(out.size());
    return out;
}

Values split_lines(const Text& text, bool keep_ends) {
    const std::string& bytes = text.bytes();
    Values lines;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < bytes.size();) {
        const CodePoint point = code_point_at(bytes, at);
        std::size_t next = at + point.length;
        const bool stray = point.length == 1 && point.value >= 0x80;
        if (!stray && is_line_end(point.value)) {
            if (point.value == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
            lines.push_back(Value::from(text.slice(begin, keep_ends ? next : at)));
            begin = next;
        }
        at = next;
    }
    if (begin < bytes.size()) lines.push_back(Value::from(text.slice(begin, bytes.size())));
    return lines;
}

Text repeat(Machine& machine, const Text& text, std::int64_t count) {
    Text out;
    if (count <= 0 || text.empty()) return out;
    if (count > static_cast<std::int64_t>(max_text_bytes / text.size()))
        machine.charge_text(max_text_bytes + 1);
    machine.charge_text(text.size() * static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        out.append(text);
    return out;
}

Text join(Machine& machine, const Text& separator, const std::vector<Text>& parts) {
    Text out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) out.append(separator);
        out.append(parts[i]);
        machine.charge(1);
        if (out.size() > max_text_bytes) machine.charge_text(out.size());
    }
    machine.charge_text(out.size());
    return out;
}

}  // namespace recto::jinja
