// Byte-level BPE from a GGUF vocabulary (`tokenizer.ggml.model` = "gpt2").
#include <algorithm>

#include "engine/text/bpe_tokenizer.h"
#include "engine/text/byte_map.h"
#include "engine/text/gguf_pre.h"
#include "engine/text/make_tokenizer.h"
#include "engine/text/normalize.h"
#include "kernels/error.h"

namespace recto {

namespace {

using GgufVocabulary = TokenizerFiles::GgufVocabulary;

TokenKind kind_of(std::int32_t type) {
    switch (type) {
        case 2:
        case 3:
            return TokenKind::control;
        case 4:
            return TokenKind::user_defined;
        case 5:
            return TokenKind::unused;
        default:
            return TokenKind::normal;
    }
}

std::vector<VocabularyToken> byte_level_tokens(const GgufVocabulary& gguf) {
    std::vector<VocabularyToken> tokens(gguf.tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        VocabularyToken& token = tokens[i];
        token.spelling = gguf.tokens[i];
        if (!gguf.types.empty()) token.kind = kind_of(gguf.types[i]);
        const auto bytes = token.kind == TokenKind::normal ? map_to_bytes(token.spelling) : std::nullopt;
        token.bytes = bytes ? *bytes : token.spelling;
    }
    return tokens;
}

std::vector<BpeMerge> split_merges(const GgufVocabulary& gguf, const std::string& label) {
    std::vector<BpeMerge> merges;
    merges.reserve(gguf.merges.size());
    for (const std::string& line : gguf.merges) {
        const std::string_view text = line;
        const std::size_t blank = text.find(' ', 1);  // a left side may begin with a blank in old files
        if (blank == std::string_view::npos || blank + 1 == text.size())
            throw Error(ErrorKind::input,
                        label +
                            ": expected two tokens and a blank in each of tokenizer.ggml.merges, "
                            "found \"" +
                            line + "\".");
        merges.push_back({text.substr(0, blank), text.substr(blank + 1)});
    }
    return merges;
}

void check_types(const GgufVocabulary& gguf, const std::string& label) {
    if (gguf.tokens.empty())
        throw Error(ErrorKind::input, label + ": expected tokenizer.ggml.tokens, found none.");
    if (!gguf.types.empty() && gguf.types.size() != gguf.tokens.size())
        throw Error(ErrorKind::input, label + ": expected a type for each of " +
                                          std::to_string(gguf.tokens.size()) + " tokens, found " +
                                          std::to_string(gguf.types.size()) + ".");
}

}  // namespace

std::unique_ptr<Tokenizer> make_gguf_bpe_tokenizer(const TokenizerFiles& files) {
    const GgufVocabulary& gguf = *files.gguf;
    check_types(gguf, files.label);
    if (gguf.merges.empty())
        throw Error(ErrorKind::input, files.label +
                                          ": expected tokenizer.ggml.merges beside a byte-level vocabulary, "
                                          "found none.");
    const GgufPreTokenizer pre = gguf_pre_tokenizer(gguf.pre, files.label);
    BpeTokenizerParts parts;
    parts.label = files.label;
    parts.name = "byte-level BPE (" + gguf.pre + ")";
    parts.tokens = byte_level_tokens(gguf);
    parts.merges = split_merges(gguf, files.label);
    parts.bpe.label = files.label;
    parts.bpe.ignore_merges = pre.ignore_merges;
    parts.bpe.strict = false;  // llama.cpp merges through strings that are no tokens
    parts.added = added_tokens_of(parts.tokens);
    parts.ids.bos = gguf.bos;
    for (const std::int32_t id : {gguf.eos, gguf.eot, gguf.eom})
        if (id >= 0) parts.ids.eos.push_back(id);
    if (gguf.add_bos && gguf.bos >= 0) parts.ids.prefix = {gguf.bos};
    if (pre.nfc)
        parts.normalizer = [](std::string_view text, bool) { return normalize(text, NormalForm::nfc); };
    for (const std::string& pattern : pre.patterns)
        parts.steps.push_back(make_split_step(Regex(pattern, files.label), SplitBehavior::isolated));
    return make_bpe_tokenizer(std::move(parts));
}

}  // namespace recto
