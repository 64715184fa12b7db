#include "engine/text/tokenizer_config.h"

#include <algorithm>
#include <charconv>

#include "engine/text/json_parts.h"
#include "kernels/error.h"

namespace recto {

namespace {

// A token is written as its text, or as an object with it.
std::string token_text(const JsonPart& config, const nlohmann::json& json, const char* key) {
    if (!config.has(key)) return {};
    const nlohmann::json& value = json.at(key);
    return value.is_object() ? config.part(key).text("content") : config.text(key);
}

std::optional<bool> optional_flag(const JsonPart& config, const char* key) {
    if (!config.has(key)) return std::nullopt;
    return config.flag(key, false);
}

std::vector<ConfigToken> added_tokens(const JsonPart& config) {
    std::vector<ConfigToken> tokens;
    if (!config.has("added_tokens_decoder")) return tokens;
    const JsonPart decoder = config.part("added_tokens_decoder");
    for (const auto& [key, value] : config.object("added_tokens_decoder").items()) {
        ConfigToken token;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token.id);
        if (error != std::errc() || end != key.data() + key.size() || token.id < 0)
            decoder.fail("token ids as keys", "\"" + key + "\"");
        const JsonPart part = decoder.part(value);
        token.text = part.text("content");
        token.special = part.flag("special", false);
        token.lstrip = part.flag("lstrip", false);
        token.rstrip = part.flag("rstrip", false);
        token.single_word = part.flag("single_word", false);
        token.normalized = part.flag("normalized", !token.special);
        tokens.push_back(std::move(token));
    }
    std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return tokens;
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::string& text, const std::string& label) {
    TokenizerConfig out;
    if (text.empty()) return out;
    nlohmann::json json;
    try {
        json = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& e) {
        throw Error(ErrorKind::input,
                    label + ": expected JSON in tokenizer_config.json, found " + e.what() + ".");
    }
    const JsonPart config(json, label, "tokenizer_config.json");
    out.bos_token = token_text(config, json, "bos_token");
    out.eos_token = token_text(config, json, "eos_token");
    out.add_bos_token = optional_flag(config, "add_bos_token");
    out.add_prefix_space = optional_flag(config, "add_prefix_space");
    out.legacy = config.flag("legacy", true);
    out.added = added_tokens(config);
    return out;
}

}  // namespace recto
