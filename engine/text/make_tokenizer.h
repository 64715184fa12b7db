// The tokenizers behind make_tokenizer(), one function for each kind of file.
#pragma once
#include <memory>

#include "engine/text/tokenizer.h"

namespace recto {

std::unique_ptr<Tokenizer> make_gguf_bpe_tokenizer(const TokenizerFiles& files);
std::unique_ptr<Tokenizer> make_gguf_sentencepiece_tokenizer(const TokenizerFiles& files);
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const TokenizerFiles& files);
std::unique_ptr<Tokenizer> make_json_tokenizer(const TokenizerFiles& files);

}  // namespace recto
