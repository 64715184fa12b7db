// BPE from a tokenizer.json: byte-level (GPT-2, Llama 3, Qwen) or over characters with byte fallback (Llama
// 2, Gemma).
#include <algorithm>

#include "engine/text/byte_map.h"
#include "engine/text/json_parts.h"
#include "engine/text/make_tokenizer.h"
#include "engine/text/tokenizer_config.h"
#include "kernels/error.h"

namespace recto {

namespace {

using Json = nlohmann::json;

// Holes in the numbering exist, but a file cannot make us allocate much more than it holds.
constexpr std::size_t kMostHoles = 100'000;

std::string token_bytes(std::string spelling, const JsonDecoder& decoder) {
    if (decoder.byte_level) {
        const auto bytes = map_to_bytes(spelling);
        return bytes ? *bytes : spelling;
    }
    for (const auto& [from, to] : decoder.replacements)
        for (std::size_t at = spelling.find(from); at != std::string::npos;
             at = spelling.find(from, at + to.size()))
            spelling.replace(at, from.size(), to);
    if (decoder.byte_fallback)
        if (const int byte = byte_of_token(spelling); byte >= 0)
            return std::string(1, static_cast<char>(byte));
    return spelling;
}

class TokenizerJson {
  public:
    explicit TokenizerJson(const TokenizerFiles& files)
        : label_(files.label), config_(read_tokenizer_config(files.tokenizer_config_json, files.label)) {
        try {
            json_ = Json::parse(files.tokenizer_json);
        } catch (const Json::exception& e) {
            throw Error(ErrorKind::input,
                        label_ + ": expected JSON in tokenizer.json, found " + e.what() + ".");
        }
    }

    std::unique_ptr<Tokenizer> build() {
        const JsonPart root(json_, label_, "tokenizer.json");
        const JsonPart model = root.part("model");
        if (const std::string type = model.text("type", "BPE"); type != "BPE")
            model.unsupported("a model of type \"" + type + "\"");
        parts_.label = label_;
        read_pre_tokenizer(root);
        if (root.has("normalizer")) parts_.normalizer = json_normalizer(root.part("normalizer"));
        read_decoder(root);
        read_tokens(root, model);
        read_model(model);
        read_ids(root);
        parts_.name = parts_.bpe.byte_level ? "byte-level BPE (tokenizer.json)" : "BPE (tokenizer.json)";
        return make_bpe_tokenizer(std::move(parts_));
    }

  private:
    void read_pre_tokenizer(const JsonPart& root) {
        ByteMapUse byte_map = ByteMapUse::none;
        if (root.has("pre_tokenizer")) json_pre_tokenizer(root.part("pre_tokenizer"), parts_.steps, byte_map);
        parts_.bpe.byte_level = byte_map != ByteMapUse::none;
        if (byte_map == ByteMapUse::applied) parts_.steps.push_back(make_byte_unmap_step());
    }

    void read_decoder(const JsonPart& root) {
        if (root.has("decoder")) {
            json_decoder(root.part("decoder"), decoder_);
        } else if (parts_.bpe.byte_level) {
            decoder_.byte_level = true;
        } else {
            root.fail("a decoder", "none");
        }
        if (decoder_.byte_level != parts_.bpe.byte_level)
            root.fail("ByteLevel in both the pre-tokenizer and the decoder", "it in only one of them");
        parts_.strips_leading_space = decoder_.strips_leading_space;
    }

    void place(std::int64_t id, const std::string& spelling, TokenKind kind, const JsonPart& part) {
        if (id < 0 || static_cast<std::size_t>(id) >= most_tokens_)
            part.fail("token ids below " + std::to_string(most_tokens_), std::to_string(id));
        auto& tokens = parts_.tokens;
        if (static_cast<std::size_t>(id) >= tokens.size())
            tokens.resize(static_cast<std::size_t>(id) + 1, {.kind = TokenKind::unused});
        tokens[static_cast<std::size_t>(id)] = {
            spelling, kind == TokenKind::normal ? token_bytes(spelling, decoder_) : spelling, kind};
    }

    void read_tokens(const JsonPart& root, const JsonPart& model) {
        const Json& vocabulary = model.object("vocab");
        const Json empty = Json::array();
        const Json& added = root.has("added_tokens") ? root.list("added_tokens") : empty;
        most_tokens_ = vocabulary.size() + added.size() + config_.added.size() + kMostHoles;
        for (const auto& [spelling, id] : vocabulary.items()) {
            if (!id.is_number_integer()) model.fail("an integer id for \"" + spelling + "\"", id.type_name());
            place(id.get<std::int64_t>(), spelling, TokenKind::normal, model);
        }
        for (const auto& item : added)
            read_added(root.part(item));
        for (const ConfigToken& token : config_.added) {
            const bool known =
                std::any_of(seen_.begin(), seen_.end(), [&](auto id) { return id == token.id; });
            if (!known) add(token, root);
        }
    }

    void read_added(const JsonPart& part) {
        ConfigToken token;
        const std::int64_t id = part.number("id", -1);
        if (id < 0 || static_cast<std::size_t>(id) >= most_tokens_)
            part.fail("token ids below " + std::to_string(most_tokens_), std::to_string(id));
        token.id = static_cast<std::int32_t>(id);
        token.text = part.text("content");
        token.special = part.flag("special", false);
        token.lstrip = part.flag("lstrip", false);
        token.rstrip = part.flag("rstrip", false);
        token.single_word = part.flag("single_word", false);
        token.normalized = part.flag("normalized", !token.special);
        add(token, part);
    }

    void add(const ConfigToken& token, const JsonPart& part) {
        place(token.id, token.text, token.special ? TokenKind::control : TokenKind::user_defined, part);
        seen_.push_back(token.id);
        AddedToken added{.text = token.text,
                         .id = token.id,
                         .control = token.special,
                         .lstrip = token.lstrip,
                         .rstrip = token.rstrip,
                         .single_word = token.single_word};
        // Control tokens are looked for in the text as written, always: templates spell them so.
        if (token.normalized && !token.special && parts_.normalizer) {
            added.text = parts_.normalizer(added.text, false);
            parts_.added_normalized.push_back(std::move(added));
        } else {
            parts_.added.push_back(std::move(added));
        }
    }

    void read_model(const JsonPart& model) {
        for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
            if (!model.text(key, "").empty()) model.unsupported(std::string("a \"") + key + "\"");
        if (model.has("dropout") && json_["model"]["dropout"] != 0.0) model.unsupported("dropout");
        BpeOptions& bpe = parts_.bpe;
        bpe.label = label_;
        bpe.ignore_merges = model.flag("ignore_merges", false);
        bpe.byte_fallback = model.flag("byte_fallback", false);
        bpe.fuse_unknown = model.flag("fuse_unk", false);
        if (const std::string unknown = model.text("unk_token", ""); !unknown.empty()) {
            const auto& tokens = parts_.tokens;
            const auto found = std::find_if(tokens.begin(), tokens.end(),
                                            [&](const auto& token) { return token.spelling == unknown; });
            if (found == tokens.end())
                model.fail("the unknown token \"" + unknown + "\" in the vocabulary", "none");
            bpe.unknown = static_cast<std::int32_t>(found - tokens.begin());
        }
        for (const Json& merge : model.list("merges"))
            parts_.merges.push_back(read_merge(merge, model));
    }

    static BpeMerge read_merge(const Json& merge, const JsonPart& model) {
        if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
            return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
        if (!merge.is_string()) model.fail("\"left right\" or [left, right] as a merge", merge.type_name());
        const std::string_view line = merge.get_ref<const std::string&>();
        const std::size_t blank = line.find(' ');
        if (blank == 0 || blank == std::string_view::npos || blank + 1 == line.size())
            model.fail("\"left right\" as a merge", "\"" + std::string(line) + "\"");
        return {line.substr(0, blank), line.substr(blank + 1)};
    }

    std::int32_t find(const std::string& spelling) const {
        for (const AddedToken& token : parts_.added)
            if (token.text == spelling) return token.id;
        for (std::size_t i = 0; i < parts_.tokens.size(); ++i)
            if (!spelling.empty() && parts_.tokens[i].spelling == spelling)
                return static_cast<std::int32_t>(i);
        return -1;
    }

    void read_ids(const JsonPart& root) {
        SpecialIds& ids = parts_.ids;
        if (root.has("post_processor")) ids.prefix = json_prefix(root.part("post_processor"));
        if (!config_.bos_token.empty()) ids.bos = find(config_.bos_token);
        if (ids.bos < 0 && !ids.prefix.empty()) ids.bos = ids.prefix.front();
        if (config_.add_bos_token && ids.bos >= 0) {
            std::erase(ids.prefix, ids.bos);
            if (*config_.add_bos_token) ids.prefix.insert(ids.prefix.begin(), ids.bos);
        }
        if (const std::int32_t eos = find(config_.eos_token); eos >= 0) ids.eos.push_back(eos);
    }

    std::string label_;
    TokenizerConfig config_;
    Json json_;
    JsonDecoder decoder_;
    std::size_t most_tokens_ = 0;
    std::vector<std::int32_t> seen_;
    BpeTokenizerParts parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_json_tokenizer(const TokenizerFiles& files) {
    return TokenizerJson(files).build();
}

}  // namespace recto
