#include <cctype>
#include <map>

#include "engine/text/json_parts.h"

namespace recto {

namespace {

SplitBehavior behavior(const JsonPart& part, const std::string& otherwise) {
    static const std::map<std::string, SplitBehavior> kNames = {
        {"Removed", SplitBehavior::removed},
        {"Isolated", SplitBehavior::isolated},
        {"MergedWithPrevious", SplitBehavior::merged_with_previous},
        {"MergedWithNext", SplitBehavior::merged_with_next},
        {"Contiguous", SplitBehavior::contiguous},
    };
    const std::string name = part.text("behavior", otherwise);
    const auto found = kNames.find(name);
    if (found == kNames.end()) part.unsupported("the split behavior \"" + name + "\"");
    return found->second;
}

void byte_level_steps(const JsonPart& part, PreTokenizerSteps& steps) {
    if (part.flag("add_prefix_space", true)) steps.push_back(make_prefix_space_step());
    if (part.flag("use_regex", true))
        steps.push_back(make_split_step(Regex(kGpt2Pattern, part.label()), SplitBehavior::isolated));
}

PrefixSpace prefix_space(const JsonPart& part) {
    const std::string scheme =
        part.text("prepend_scheme", part.flag("add_prefix_space", true) ? "always" : "never");
    if (scheme == "always") return PrefixSpace::always;
    if (scheme == "first") return PrefixSpace::first;
    if (scheme == "never") return PrefixSpace::never;
    part.unsupported("the prefix scheme \"" + scheme + "\"");
}

// A literal as a pattern.
std::string quote(const std::string& text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80 && std::isalnum(byte) == 0) out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

Regex json_pattern(const JsonPart& part, const char* key) {
    const JsonPart pattern = part.part(key);
    if (pattern.has("String")) return {quote(pattern.text("String")), part.label()};
    return {pattern.text("Regex"), part.label(), true};
}

void json_pre_tokenizer(const JsonPart& part, PreTokenizerSteps& steps, ByteMapUse& byte_map) {
    const std::string type = part.type();
    const auto split = [&](const std::string& pattern, SplitBehavior how, bool invert = false) {
        steps.push_back(make_split_step(Regex(pattern, part.label()), how, invert));
    };
    if (type == "Sequence") {
        for (const auto& step : part.list("pretokenizers"))
            json_pre_tokenizer(part.part(step), steps, byte_map);
        return;
    }
    if (byte_map == ByteMapUse::wanted) {
        steps.push_back(make_byte_map_step());
        byte_map = ByteMapUse::applied;
    }
    if (type == "ByteLevel") {
        if (byte_map != ByteMapUse::none) part.unsupported("the byte map twice");
        byte_map = ByteMapUse::wanted;
        byte_level_steps(part, steps);
    } else if (type == "Split") {
        steps.push_back(make_split_step(json_pattern(part, "pattern"), behavior(part, "Isolated"),
                                        part.flag("invert", false)));
    } else if (type == "Digits") {
        split(part.flag("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", SplitBehavior::isolated);
    } else if (type == "Punctuation") {
        split(kPunctuationPattern, behavior(part, "Isolated"));
    } else if (type == "Whitespace") {
        split(R"(\w+|[^\w\s]+)", SplitBehavior::removed, true);
    } else if (type == "WhitespaceSplit") {
        split(R"(\s)", SplitBehavior::removed);
    } else if (type == "Metaspace") {
        if (byte_map != ByteMapUse::none) part.unsupported("blanks marked after the byte map");
        steps.push_back(
            make_metaspace_step(part.text("replacement", "▁"), prefix_space(part), part.flag("split", true)));
    } else {
        part.unsupported("the pre-tokenizer \"" + type + "\"");
    }
}

}  // namespace recto
