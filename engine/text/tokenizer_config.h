// What tokenizer_config.json adds to a vocabulary: which tokens begin and end texts, and tokens added later.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace recto {

struct ConfigToken {
    std::int32_t id = -1;
    std::string text;
    bool special = false, lstrip = false, rstrip = false, single_word = false, normalized = false;
};

struct TokenizerConfig {
    std::string bos_token, eos_token;  // spellings, empty if none
    std::optional<bool> add_bos_token;
    std::optional<bool> add_prefix_space;
    bool legacy = true;              // SentencePiece: the blank is put before every stretch of text
    std::vector<ConfigToken> added;  // added_tokens_decoder, by id
};

// An empty text gives the defaults. Error(input) if it is not what it should be.
TokenizerConfig read_tokenizer_config(const std::string& json, const std::string& label);

}  // namespace recto
