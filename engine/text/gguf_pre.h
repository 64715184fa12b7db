// The pre-tokenizers that GGUF files name (`tokenizer.ggml.pre`): which patterns cut a text before BPE. The
// names are llama.cpp's; the patterns are those of each model's own tokenizer.json as published by its
// makers.
#pragma once
#include <string>
#include <vector>

namespace recto {

struct GgufPreTokenizer {
    std::vector<std::string> patterns;  // applied in order, each inside the words of the one before
    bool ignore_merges = false;         // a word that is a token is that token
    bool nfc = false;                   // the model's tokenizer normalizes to NFC first
};

// Error(input) naming the pre-tokenizer if it is not known: a guess would give wrong ids without a word.
GgufPreTokenizer gguf_pre_tokenizer(const std::string& name, const std::string& label);

}  // namespace recto
