#include "engine/save/tokenizer_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/text/gguf_pre.h"
#include "engine/text/sentencepiece_proto.h"
#include "kernels/error.h"

namespace recto {

namespace {

using Json = nlohmann::ordered_json;
using GgufVocabulary = TokenizerFiles::GgufVocabulary;

enum GgufTokenType { unknown_type = 2, control_type = 3, user_type = 4, unused_type = 5 };

std::int32_t type_of(const GgufVocabulary& v, std::size_t id) {
    return v.types.empty() ? 1 : v.types[id];
}

bool is_special(std::int32_t type) {
    return type == unknown_type || type == control_type;
}

using TokenIds = std::unordered_map<std::string_view, std::size_t>;

// Every token that a text can become, added ones too: the library numbers added tokens that the model's
// vocabulary lacks by itself. Of equal spellings the last one counts.
TokenIds token_ids(const GgufVocabulary& v) {
    TokenIds ids;
    for (std::size_t id = 0; id < v.tokens.size(); ++id)
        if (type_of(v, id) != unused_type) ids[v.tokens[id]] = id;
    return ids;
}

Json vocabulary_json(const GgufVocabulary& v, const TokenIds& ids) {
    Json::object_t vocabulary;
    for (std::size_t id = 0; id < v.tokens.size(); ++id) {
        const auto found = ids.find(v.tokens[id]);
        if (found == ids.end() || found->second != id) continue;
        vocabulary.emplace_back(v.tokens[id], id);  // emplace() would search the keys so far, each time
    }
    return vocabulary;
}

// The library refuses a merge of or into what is no token; llama.cpp merges through such strings.
Json merges_json(const GgufVocabulary& v, const TokenIds& ids, const std::string& label) {
    Json merges = Json::array();
    for (const std::string& line : v.merges) {
        const std::size_t blank = std::min(line.find(' ', 1), line.size());
        const std::string left = line.substr(0, blank), right = line.substr(std::min(blank + 1, line.size()));
        if (!ids.contains(left) || !ids.contains(right) || !ids.contains(left + right))
            throw Error(ErrorKind::input,
                        label + ": the merge \"" + line +
                            "\" is of or into what is no token, which tokenizer.json cannot say");
        merges.push_back({left, right});
    }
    return merges;
}

Json added_json(const GgufVocabulary& v) {
    Json added = Json::array();
    for (std::size_t id = 0; id < v.tokens.size(); ++id) {
        const std::int32_t type = type_of(v, id);
        if (!is_special(type) && type != user_type) continue;
        added.push_back({{"id", id},
                         {"content", v.tokens[id]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", is_special(type)}});
    }
    return added;
}

Json pre_tokenizer_json(const GgufPreTokenizer& pre) {
    Json steps = Json::array();
    for (const auto& pattern : pre.patterns)
        steps.push_back({{"type", "Split"},
                         {"pattern", {{"Regex", pattern}}},
                         {"behavior", "Isolated"},
                         {"invert", false}});
    steps.push_back(
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
    return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

Json byte_level() {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
}

Json post_processor_json(const GgufVocabulary& v) {
    if (!v.add_bos || v.bos < 0) return byte_level();
    const std::string& bos = v.tokens[std::size_t(v.bos)];
    const Json begin = {{"SpecialToken", {{"id", bos}, {"type_id", 0}}}};
    const auto text = [](const char* id, int type) -> Json {
        return {{"Sequence", {{"id", id}, {"type_id", type}}}};
    };
    const Json second = {{"SpecialToken", {{"id", bos}, {"type_id", 1}}}};
    return {{"type", "TemplateProcessing"},
            {"single", Json::array({begin, text("A", 0)})},
            {"pair", Json::array({begin, text("A", 0), second, text("B", 1)})},
            {"special_tokens", {{bos, {{"id", bos}, {"ids", {v.bos}}, {"tokens", {bos}}}}}}};
}

Json tokenizer_json(const GgufVocabulary& v, const GgufPreTokenizer& pre, const std::string& label) {
    const TokenIds ids = token_ids(v);
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", added_json(v)},
            {"normalizer", pre.nfc ? Json{{"type", "NFC"}} : Json(nullptr)},
            {"pre_tokenizer", pre_tokenizer_json(pre)},
            {"post_processor", post_processor_json(v)},
            {"decoder", byte_level()},
            {"model",
             {{"type", "BPE"},
              {"dropout", nullptr},
              {"unk_token", nullptr},
              {"continuing_subword_prefix", nullptr},
              {"end_of_word_suffix", nullptr},
              {"fuse_unk", false},
              {"byte_fallback", false},
              {"ignore_merges", pre.ignore_merges},
              {"vocab", vocabulary_json(v, ids)},
              {"merges", merges_json(v, ids, label)}}}};
}

Json tokenizer_config_json(const TokenizerFiles& files, const char* tokenizer_class, int max_position) {
    const GgufVocabulary& v = *files.gguf;
    const auto token = [&](std::int32_t id) {
        return id < 0 ? Json(nullptr) : Json(v.tokens[std::size_t(id)]);
    };
    Json json;
    json["tokenizer_class"] = tokenizer_class;
    json["add_bos_token"] = v.add_bos && v.bos >= 0;
    json["add_eos_token"] = false;
    json["bos_token"] = token(v.bos);
    json["eos_token"] = token(v.eos);
    json["unk_token"] = token(v.unknown);
    json["pad_token"] = token(v.padding);
    json["clean_up_tokenization_spaces"] = false;
    json["model_max_length"] = max_position;
    if (!files.chat_template.empty()) json["chat_template"] = files.chat_template;
    return json;
}

std::string text_of(const Json& json) {
    return json.dump(1, ' ', false) + "\n";
}

SavedTokenizer byte_level_tokenizer(const TokenizerFiles& files, int max_position) {
    const GgufPreTokenizer pre = gguf_pre_tokenizer(files.gguf->pre, files.label);
    SavedTokenizer saved;
    saved.files["tokenizer.json"] = text_of(tokenizer_json(*files.gguf, pre, files.label));
    saved.files["tokenizer_config.json"] =
        text_of(tokenizer_config_json(files, "PreTrainedTokenizerFast", max_position));
    return saved;
}

// Pieces of the model itself; what follows them was added later.
std::size_t own_pieces(const GgufVocabulary& v) {
    std::size_t n = v.tokens.size();
    while (
        n > 0 && std::int32_t(n - 1) != v.unknown &&
        (is_special(type_of(v, n - 1)) || type_of(v, n - 1) == user_type || type_of(v, n - 1) == unused_type))
        --n;
    return n;
}

std::string with_blank_marks(std::string text) {
    constexpr const char* mark = "\xE2\x96\x81";  // U+2581
    for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at))
        text.replace(at, 1, mark);
    return text;
}

std::string sentencepiece_model(const GgufVocabulary& v) {
    SentencePieceProto proto;
    proto.model_type = 2;  // BPE
    proto.add_dummy_prefix = v.add_space_prefix;
    proto.remove_extra_whitespaces = false;
    proto.unknown_id = v.unknown;
    proto.bos_id = v.bos;
    proto.eos_id = v.eos;
    proto.padding_id = -1;
    std::unordered_set<std::string> seen;
    const std::size_t own = own_pieces(v);
    for (std::size_t id = 0; id < own; ++id) {
        SentencePieceProto::Piece piece{v.tokens[id], v.scores[id],
                                        static_cast<SentencePieceProto::Type>(type_of(v, id))};
        // The id that the file names counts: Phi-3's conversion types its padding as unknown.
        const bool unknown = std::int32_t(id) == v.unknown;
        if (unknown != (piece.type == SentencePieceProto::unknown))
            piece.type = unknown ? SentencePieceProto::unknown : SentencePieceProto::unused;
        // Conversions write user-defined pieces with real blanks.
        if (piece.type == SentencePieceProto::user_defined) piece.text = with_blank_marks(piece.text);
        // Paddings repeat a spelling, which the library refuses.
        if (piece.text.empty() || !seen.insert(piece.text).second)
            piece = {"<unused " + std::to_string(id) + ">", 0.0F, SentencePieceProto::unused};
        if (piece.type == SentencePieceProto::byte) proto.byte_fallback = true;
        proto.pieces.push_back(std::move(piece));
    }
    return write_sentencepiece_proto(proto);
}

Json added_decoder_json(const GgufVocabulary& v) {
    const std::size_t own = own_pieces(v);
    Json::object_t added;
    for (std::size_t id = 0; id < v.tokens.size(); ++id) {
        const std::int32_t type = type_of(v, id);
        if (id < own ? !is_special(type) : type == unused_type) continue;
        added[std::to_string(id)] = {{"content", v.tokens[id]}, {"lstrip", false},
                                     {"normalized", false},     {"rstrip", false},
                                     {"single_word", false},    {"special", is_special(type)}};
    }
    return added;
}

SavedTokenizer sentencepiece_tokenizer(const TokenizerFiles& files, int max_position) {
    SavedTokenizer saved;
    saved.files["tokenizer.model"] = sentencepiece_model(*files.gguf);
    Json config = tokenizer_config_json(files, "LlamaTokenizer", max_position);
    config["added_tokens_decoder"] = added_decoder_json(*files.gguf);
    config["legacy"] = true;  // a blank goes before every stretch of text, as in llama.cpp
    config["add_prefix_space"] = files.gguf->add_space_prefix;
    saved.files["tokenizer_config.json"] = text_of(config);
    return saved;
}

}  // namespace

SavedTokenizer saved_tokenizer(const TokenizerFiles& files, int max_position) {
    try {
        if (files.gguf->model == "gpt2") return byte_level_tokenizer(files, max_position);
        if (files.gguf->model == "llama") return sentencepiece_tokenizer(files, max_position);
    } catch (const Json::exception&) {  // JSON is UTF-8; a GGUF's strings may be anything
        return {{}, "its vocabulary or template holds text that is no UTF-8"};
    } catch (const Error& e) {
        return {{}, e.what()};
    }
    return {{}, "its kind \"" + files.gguf->model + "\" is none that Recto can write"};
}

}  // namespace recto
