#include "engine/load/gguf_vocabulary.h"

#include <limits>

#include "engine/load/refuse.h"

namespace recto {

namespace {

// Byte-level vocabularies whose files may leave add_bos_token out although they want one (llama.cpp
// llama-vocab.cpp).
bool adds_bos_by_default(const TokenizerFiles::GgufVocabulary& vocabulary) {
    if (vocabulary.model == "llama") return true;
    for (const char* pre : {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "tekken"})
        if (vocabulary.pre == pre) return true;
    return false;
}

void check_lengths(const TokenizerFiles::GgufVocabulary& v, const std::string& label) {
    const auto n = v.tokens.size();
    if (n == 0 || n > std::size_t(std::numeric_limits<std::int32_t>::max()))
        refuse(label,
               "a vocabulary was expected, tokenizer.ggml.tokens holds " + std::to_string(n) + " tokens");
    if (!v.scores.empty() && v.scores.size() != n)
        refuse(label, "tokenizer.ggml.scores should have " + std::to_string(n) +
                          " numbers, as many as tokens, found " + std::to_string(v.scores.size()));
    if (!v.types.empty() && v.types.size() != n)
        refuse(label, "tokenizer.ggml.token_type should have " + std::to_string(n) +
                          " numbers, as many as tokens, found " + std::to_string(v.types.size()));
    if (v.model == "llama" && v.scores.empty())
        refuse(label, "a SentencePiece vocabulary should have tokenizer.ggml.scores");
}

}  // namespace

bool has_gguf_vocabulary(const Gguf& meta) {
    return meta.has("tokenizer.ggml.tokens");
}

TokenizerFiles read_gguf_vocabulary(const Gguf& meta) {
    TokenizerFiles files;
    files.label = meta.label();
    TokenizerFiles::GgufVocabulary v;
    auto tokens = meta.texts("tokenizer.ggml.tokens");
    if (!tokens) refuse(meta.label(), "the key tokenizer.ggml.tokens is missing; the file has no vocabulary");
    v.tokens = std::move(*tokens);
    v.model = std::string(meta.text("tokenizer.ggml.model").value_or(""));
    if (v.model.empty()) refuse(meta.label(), "the key tokenizer.ggml.model is missing");
    v.pre = std::string(meta.text("tokenizer.ggml.pre").value_or(""));
    if (auto scores = meta.floats("tokenizer.ggml.scores")) v.scores = std::move(*scores);
    if (auto types = meta.integers("tokenizer.ggml.token_type")) v.types = std::move(*types);
    if (auto merges = meta.texts("tokenizer.ggml.merges")) v.merges = std::move(*merges);
    check_lengths(v, meta.label());

    v.add_bos = meta.boolean("tokenizer.ggml.add_bos_token").value_or(adds_bos_by_default(v));
    v.add_eos = meta.boolean("tokenizer.ggml.add_eos_token").value_or(false);
    v.add_space_prefix = meta.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
    // Ids outside the vocabulary count as absent, as they do in llama.cpp: real files carry −1 and paddings.
    const auto id = [&](const char* key, std::int64_t fallback) {
        const auto value = meta.integer(key).value_or(fallback);
        return value >= 0 && value < std::int64_t(v.tokens.size()) ? std::int32_t(value) : -1;
    };
    const bool sentencepiece = v.model == "llama";
    v.bos = id("tokenizer.ggml.bos_token_id", sentencepiece ? 1 : -1);
    v.eos = id("tokenizer.ggml.eos_token_id", sentencepiece ? 2 : -1);
    v.eot = id("tokenizer.ggml.eot_token_id", -1);
    v.eom = id("tokenizer.ggml.eom_token_id", -1);
    v.unknown = id("tokenizer.ggml.unknown_token_id", sentencepiece ? 0 : -1);
    v.padding = id("tokenizer.ggml.padding_token_id", -1);
    files.gguf = std::move(v);

    if (const auto text = meta.text("tokenizer.chat_template")) {
        files.chat_template = std::string(*text);
        files.chat_template_source = "GGUF";
    }
    return files;
}

}  // namespace recto
