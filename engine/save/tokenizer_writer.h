// The tokenizer files of a Hugging Face folder, from a vocabulary that came in a GGUF file.
#pragma once
#include <map>
#include <string>

#include "engine/load/model_source.h"

namespace recto {

struct SavedTokenizer {
    std::map<std::string, std::string> files;  // name → content; empty if it cannot be written
    std::string reason;                        // why it cannot, in a sentence for people
};

// Byte-level BPE ("gpt2") becomes a tokenizer.json of Hugging Face's tokenizers library: vocabulary, merges,
// pre-tokenizer patterns, added tokens, BOS. SentencePiece ("llama") becomes a tokenizer.model, which holds
// pieces, scores and types as they are. Both with a tokenizer_config.json (special tokens, chat template).
SavedTokenizer saved_tokenizer(const TokenizerFiles& files, int max_position);

}  // namespace recto
