#include <algorithm>

#include "engine/text/json_parts.h"
#include "engine/text/normalize.h"
#include "engine/text/utf8.h"

namespace recto {

namespace {

Normalizer always(std::string (*function)(std::string_view)) {
    return [function](std::string_view text, bool) { return function(text); };
}
Normalizer form(NormalForm f) {
    return [f](std::string_view text, bool) { return normalize(text, f); };
}

std::string replace_literal(std::string_view text, const std::string& from, const std::string& to) {
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    std::size_t done = 0;
    for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
        out += text.substr(done, at - done);
        out += to;
        done = at + from.size();
    }
    return out += text.substr(done);
}

std::string replace_matches(std::string_view text, const Regex& pattern, const std::string& to) {
    Regex::Matcher matcher(pattern);
    std::string out;
    std::size_t done = 0;
    std::size_t from = 0;
    while (from <= text.size() && matcher.find(text, from)) {
        out += text.substr(done, matcher.begin - done);
        out += to;
        done = from = matcher.end;
        if (matcher.end == matcher.begin) {
            ++from;
            while (from < text.size() && !is_utf8_start(text[from]))
                ++from;
        }
    }
    return out += text.substr(std::min(done, text.size()));
}

Normalizer replace(const JsonPart& part) {
    const std::string to = part.text("content");
    const JsonPart pattern = part.part("pattern");
    if (pattern.has("String")) {
        const std::string from = pattern.text("String");
        if (from.empty()) part.fail("a pattern", "an empty text");
        return [from, to](std::string_view text, bool) { return replace_literal(text, from, to); };
    }
    const auto regex = std::make_shared<const Regex>(json_pattern(part, "pattern"));
    return [regex, to](std::string_view text, bool) { return replace_matches(text, *regex, to); };
}

// Blanks at the ends, as Unicode's White_Space.
Normalizer strip(const JsonPart& part) {
    const bool left = part.flag("strip_left", true);
    const bool right = part.flag("strip_right", true);
    const auto at_start = std::make_shared<const Regex>("\\A\\s+", part.label());
    const auto at_end = std::make_shared<const Regex>("(?<!\\s)\\s+\\z", part.label());
    return [=](std::string_view text, bool) {
        std::string out(text);
        if (right) out = replace_matches(out, *at_end, "");
        if (left) out = replace_matches(out, *at_start, "");
        return out;
    };
}

Normalizer sequence(const JsonPart& part) {
    std::vector<Normalizer> steps;
    for (const auto& step : part.list("normalizers"))
        if (Normalizer n = json_normalizer(part.part(step))) steps.push_back(std::move(n));
    if (steps.empty()) return nullptr;
    return [steps](std::string_view text, bool inner) {
        std::string out(text);
        for (const Normalizer& step : steps)
            out = step(out, inner);
        return out;
    };
}

}  // namespace

Normalizer json_normalizer(const JsonPart& part) {
    const std::string type = part.type();
    if (type == "Sequence") return sequence(part);
    if (type == "NFC") return form(NormalForm::nfc);
    if (type == "NFD") return form(NormalForm::nfd);
    if (type == "NFKC") return form(NormalForm::nfkc);
    if (type == "NFKD") return form(NormalForm::nfkd);
    if (type == "Lowercase") return always(lowercase);
    if (type == "StripAccents") return always(strip_accents);
    if (type == "Strip") return strip(part);
    if (type == "Replace") return replace(part);
    if (type == "Prepend") {
        const std::string prefix = part.text("prepend");
        return [prefix](std::string_view text, bool inner) {
            return inner || text.empty() ? std::string(text) : prefix + std::string(text);
        };
    }
    part.unsupported("the normalizer \"" + type + "\"");
}

}  // namespace recto
