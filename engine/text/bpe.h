// Byte pair encoding of one word: the pair of neighbours with the lowest rank is merged, leftmost first,
// until none is left (Sennrich et al. 2016; tie order as in Hugging Face's tokenizers and llama.cpp). O(n log
// n) for any n.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/vocabulary.h"

namespace recto {

struct BpeOptions {
    std::string label;           // begins error sentences
    bool byte_level = true;      // symbols are bytes and spellings are in GPT-2's byte map; else characters
    bool ignore_merges = false;  // a word that is a token is that token
    bool byte_fallback = false;  // characters outside the vocabulary become <0x..> tokens
    bool fuse_unknown = false;   // neighbouring unknown characters are one unknown token
    bool strict = true;          // a merge of or into something that is no token is Error(input)
    std::int32_t unknown = -1;   // token for what cannot be written; -1: dropped, as the originals do
};

struct BpeMerge {
    std::string_view left, right;
};

class Bpe {
  public:
    // Merges in order of rank, spelled as in the vocabulary.
    Bpe(const Vocabulary& vocabulary, const std::vector<BpeMerge>& merges, BpeOptions options);

    struct Scratch;  // one thread's memory, reused from word to word
    void encode(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& out) const;

    struct Scratch {
        std::vector<std::uint32_t> symbols, ranks;
        std::vector<std::int32_t> previous, next;
        struct Candidate {
            std::uint64_t order;  // rank, then position
            std::uint64_t pair;   // the two symbols it was seen with
        };
        std::vector<Candidate> heap;
    };

  private:
    // A symbol is a token id, or from vocabulary size on a string that is no token and may take part in
    // merges.
    using Symbol = std::uint32_t;
    struct Merge {
        std::uint64_t pair = kNoPair;
        std::uint32_t rank = 0;
        Symbol result = 0;
    };
    static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};
    static std::uint64_t pair_of(Symbol a, Symbol b) { return (std::uint64_t{a} << 32U) | b; }

    Symbol intern(std::string_view spelling);
    void add_merges(const std::vector<BpeMerge>& merges);
    void index_whole_words();
    const Merge* find_merge(std::uint64_t pair) const;
    void split(std::string_view word, std::vector<Symbol>& symbols) const;
    void split_characters(std::string_view word, std::vector<Symbol>& symbols) const;
    void merge_short(Scratch& scratch) const;
    void merge_long(Scratch& scratch) const;
    void emit(const std::vector<Symbol>& symbols, std::vector<std::int32_t>& out) const;

    const Vocabulary* vocabulary_;
    BpeOptions options_;
    std::vector<std::string> extra_symbols_;  // by symbol − vocabulary size
    std::unordered_map<std::string, Symbol> extra_ids_;
    std::array<Symbol, 256> byte_symbols_{};                    // byte-level: by byte; else its <0x..> token
    std::unordered_map<std::string_view, std::int32_t> words_;  // by bytes, when ignore_merges
    std::vector<Merge> merges_;  // open addressing, a power of two, at most half full
};

}  // namespace recto
