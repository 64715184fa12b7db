// A BPE tokenizer as a chain: added tokens, normalizer, pre-tokenizer, merges. GGUF and tokenizer.json files
// fill the same parts.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/text/bpe.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/tokenizer_base.h"

namespace recto {

// What a text becomes before it is cut. inner: it continues a text that was encoded elsewhere, so that
// nothing is put before it.
using Normalizer = std::function<std::string(std::string_view text, bool inner)>;

struct BpeTokenizerParts {
    std::string label;  // path, for messages
    std::string name;   // "byte-level BPE (smollm)"
    std::vector<VocabularyToken> tokens;
    std::vector<BpeMerge> merges;  // views into strings that outlive construction
    BpeOptions bpe;
    SpecialIds ids;
    std::vector<AddedToken> added;             // found in the text as written
    std::vector<AddedToken> added_normalized;  // found after the normalizer
    Normalizer normalizer;                     // may be empty
    PreTokenizerSteps steps;
    bool strips_leading_space = false;
};

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeTokenizerParts parts);

}  // namespace recto
