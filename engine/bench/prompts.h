// The benchmark's prompts: random token ids that both sides know alike, or one text for both where their
// tokenizers differ.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"

namespace recto {

using Prompts = std::vector<std::vector<std::int32_t>>;

struct BenchVocabulary {
    const Tokenizer* tokenizer = nullptr;  // null: a model without one, whose ids are 0 … size − 1
    int size = 0;                          // ids that the model has logits for
};

// Whether an id means the same on both sides: every id that both have spells the same and is special on both
// or on neither. A side without a tokenizer agrees with any.
bool same_tokens(const BenchVocabulary& a, const BenchVocabulary& b);

struct BenchPrompts {
    std::array<Prompts, 2> ids;            // per side
    std::vector<std::int64_t> characters;  // per prompt: Unicode code points of its text; empty for ids
};

// `count` distinct prompts of `tokens` ids each, uniform over the ordinary tokens that all sides share: a
// control token inside a prompt could change what a model does. One or two sides that are same_tokens().
BenchPrompts id_prompts(std::span<const BenchVocabulary> sides, int count, int tokens, std::uint64_t seed);

// `count` distinct texts of common English words, each of `tokens` tokens (or a few less, where no word fits)
// to the first side; the second gets the same text in its own tokens. Both need a tokenizer.
BenchPrompts text_prompts(std::span<const BenchVocabulary> sides, int count, int tokens, std::uint64_t seed);

std::int64_t count_characters(std::string_view utf8);

constexpr std::uint64_t prompt_hash_start = 0xCBF29CE484222325ULL;
std::uint64_t hash_prompts(std::uint64_t hash, const Prompts& prompts);  // FNV-1a over the ids, little-endian

}  // namespace recto
