#include "engine/text/bpe.h"

#include <algorithm>
#include <bit>

#include "engine/text/byte_map.h"
#include "engine/text/utf8.h"
#include "kernels/error.h"

namespace recto {

namespace {

constexpr std::uint32_t kNoSymbol = ~std::uint32_t{0};
constexpr std::uint32_t kNoRank = ~std::uint32_t{0};
// Below this many symbols a scan for the lowest rank beats a heap.
constexpr std::size_t kShortWord_symbols = 48;

std::size_t hash_pair(std::uint64_t pair) {
    pair ^= pair >> 29U;
    pair *= 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(pair ^ (pair >> 32U));
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const std::vector<BpeMerge>& merges, BpeOptions options)
    : vocabulary_(&vocabulary), options_(std::move(options)) {
    for (unsigned b = 0; b < 256; ++b) {
        const char byte = static_cast<char>(b);
        if (options_.byte_level) {
            byte_symbols_[b] = intern(bytes_to_map({&byte, 1}));
        } else {
            const std::int32_t id =
                options_.byte_fallback ? vocabulary.find(byte_token(static_cast<unsigned char>(b))) : -1;
            byte_symbols_[b] = id < 0 ? kNoSymbol : static_cast<Symbol>(id);
        }
    }
    add_merges(merges);
    if (options_.ignore_merges) index_whole_words();
}

Bpe::Symbol Bpe::intern(std::string_view spelling) {
    const std::int32_t id = vocabulary_->find(spelling);
    if (id >= 0) return static_cast<Symbol>(id);
    const auto next =
        static_cast<Symbol>(static_cast<std::size_t>(vocabulary_->size()) + extra_symbols_.size());
    const auto [place, added] = extra_ids_.emplace(spelling, next);
    if (added) extra_symbols_.emplace_back(spelling);
    return place->second;
}

void Bpe::add_merges(const std::vector<BpeMerge>& merges) {
    merges_.resize(std::bit_ceil(std::max<std::size_t>(merges.size() * 2, 16)));
    const std::size_t mask = merges_.size() - 1;
    const auto size = static_cast<Symbol>(vocabulary_->size());
    std::uint32_t rank = 0;
    std::string joined;
    for (const BpeMerge& merge : merges) {
        joined.assign(merge.left).append(merge.right);
        const Symbol left = intern(merge.left);
        const Symbol right = intern(merge.right);
        const Symbol result = intern(joined);
        if (options_.strict && (left >= size || right >= size || result >= size))
            throw Error(ErrorKind::input, options_.label +
                                              ": expected merges of tokens into tokens, found \"" +
                                              std::string(merge.left) + " " + std::string(merge.right) +
                                              "\", which the vocabulary does not hold.");
        const std::uint32_t this_rank = rank++;
        // Text never becomes a control token, whatever the merges say.
        if (result < size && (*vocabulary_)[static_cast<std::int32_t>(result)].kind == TokenKind::control)
            continue;
        const std::uint64_t pair = pair_of(left, right);
        std::size_t slot = hash_pair(pair) & mask;
        while (merges_[slot].pair != kNoPair && merges_[slot].pair != pair)
            slot = (slot + 1) & mask;
        if (merges_[slot].pair == kNoPair) merges_[slot] = {pair, this_rank, result};
    }
}

void Bpe::index_whole_words() {
    words_.reserve(static_cast<std::size_t>(vocabulary_->size()));
    for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
        const VocabularyToken& token = (*vocabulary_)[id];
        if (token.kind == TokenKind::normal)
            words_.emplace(options_.byte_level ? token.bytes : token.spelling, id);
    }
}

const Bpe::Merge* Bpe::find_merge(std::uint64_t pair) const {
    const std::size_t mask = merges_.size() - 1;
    std::size_t slot = hash_pair(pair) & mask;
    while (true) {
        const Merge& merge = merges_[slot];
        if (merge.pair == pair) return &merge;
        if (merge.pair == kNoPair) return nullptr;
        slot = (slot + 1) & mask;
    }
}

void Bpe::split(std::string_view word, std::vector<Symbol>& symbols) const {
    symbols.clear();
    if (!options_.byte_level) {
        split_characters(word, symbols);
        return;
    }
    for (const char byte : word)
        symbols.push_back(byte_symbols_[static_cast<unsigned char>(byte)]);
}

void Bpe::split_characters(std::string_view word, std::vector<Symbol>& symbols) const {
    bool last_unknown = false;
    while (!word.empty()) {
        const std::string_view character = word.substr(0, utf8_step(word).bytes);
        word.remove_prefix(character.size());
        const std::int32_t id = vocabulary_->find(character);
        if (id >= 0 && (*vocabulary_)[id].kind != TokenKind::control) {
            symbols.push_back(static_cast<Symbol>(id));
            last_unknown = false;
            continue;
        }
        const auto has_byte = [this](char b) {
            return byte_symbols_[static_cast<unsigned char>(b)] != kNoSymbol;
        };
        if (options_.byte_fallback && std::all_of(character.begin(), character.end(), has_byte)) {
            for (const char b : character)
                symbols.push_back(byte_symbols_[static_cast<unsigned char>(b)]);
            last_unknown = false;
        } else if (options_.unknown >= 0 && !(options_.fuse_unknown && last_unknown)) {
            symbols.push_back(static_cast<Symbol>(options_.unknown));
            last_unknown = true;
        }
    }
}

void Bpe::merge_short(Scratch& scratch) const {
    auto& symbols = scratch.symbols;
    auto& ranks = scratch.ranks;                     // of the pair that begins at each symbol
    std::array<Symbol, kShortWord_symbols> results;  // NOLINT: filled beside ranks
    const auto look = [&](std::size_t i) {
        const Merge* merge = find_merge(pair_of(symbols[i], symbols[i + 1]));
        ranks[i] = merge == nullptr ? kNoRank : merge->rank;
        if (merge != nullptr) results[i] = merge->result;
    };
    std::size_t n = symbols.size();
    ranks.resize(n);
    for (std::size_t i = 0; i + 1 < n; ++i)
        look(i);
    while (n > 1) {
        std::size_t best = 0;
        for (std::size_t i = 1; i + 1 < n; ++i)
            if (ranks[i] < ranks[best]) best = i;
        if (ranks[best] == kNoRank) break;
        symbols[best] = results[best];
        for (std::size_t i = best + 1; i + 1 < n; ++i) {
            symbols[i] = symbols[i + 1];
            ranks[i] = ranks[i + 1];
            results[i] = results[i + 1];
        }
        --n;
        if (best > 0) look(best - 1);
        if (best + 1 < n) look(best);
    }
    symbols.resize(n);
}

void Bpe::merge_long(Scratch& scratch) const {
    using Candidate = Scratch::Candidate;
    auto& symbols = scratch.symbols;
    auto& heap = scratch.heap;
    const auto n = static_cast<std::int32_t>(symbols.size());
    scratch.previous.resize(symbols.size());
    scratch.next.resize(symbols.size());
    for (std::int32_t i = 0; i < n; ++i) {
        scratch.previous[static_cast<std::size_t>(i)] = i - 1;
        scratch.next[static_cast<std::size_t>(i)] = i + 1 < n ? i + 1 : -1;
    }
    const auto later = [](const Candidate& a, const Candidate& b) { return a.order > b.order; };
    const auto symbol = [&symbols](std::int32_t i) -> Symbol& {
        return symbols[static_cast<std::size_t>(i)];
    };
    const auto after = [&scratch](std::int32_t i) -> std::int32_t& {
        return scratch.next[static_cast<std::size_t>(i)];
    };
    const auto candidate_at = [&](std::int32_t i) {
        const std::uint64_t pair = pair_of(symbol(i), symbol(after(i)));
        const Merge* merge = find_merge(pair);
        if (merge == nullptr) return false;
        heap.push_back({(std::uint64_t{merge->rank} << 32U) | static_cast<std::uint32_t>(i), pair});
        return true;
    };
    heap.clear();
    for (std::int32_t i = 0; i + 1 < n; ++i)
        candidate_at(i);
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), later);
        const Candidate candidate = heap.back();
        heap.pop_back();
        const auto left = static_cast<std::int32_t>(candidate.order & 0xFFFFFFFFU);
        const std::int32_t right = symbol(left) == kNoSymbol ? -1 : after(left);
        if (right < 0 || pair_of(symbol(left), symbol(right)) != candidate.pair)
            continue;  // merged away since
        symbol(left) = find_merge(candidate.pair)->result;
        symbol(right) = kNoSymbol;
        after(left) = after(right);
        if (after(left) >= 0) scratch.previous[static_cast<std::size_t>(after(left))] = left;
        const std::int32_t before = scratch.previous[static_cast<std::size_t>(left)];
        if (before >= 0 && candidate_at(before)) std::push_heap(heap.begin(), heap.end(), later);
        if (after(left) >= 0 && candidate_at(left)) std::push_heap(heap.begin(), heap.end(), later);
    }
    std::erase(symbols, kNoSymbol);
}

void Bpe::emit(const std::vector<Symbol>& symbols, std::vector<std::int32_t>& out) const {
    const auto size = static_cast<Symbol>(vocabulary_->size());
    for (const Symbol s : symbols) {
        if (s < size) {
            out.push_back(static_cast<std::int32_t>(s));
            continue;
        }
        // Not a token: its bytes one by one, and what has no token either is unknown.
        const auto bytes = map_to_bytes(extra_symbols_[s - size]);
        if (!bytes) continue;
        for (const char b : *bytes) {
            const Symbol byte = byte_symbols_[static_cast<unsigned char>(b)];
            if (byte < size) {
                out.push_back(static_cast<std::int32_t>(byte));
            } else if (options_.unknown >= 0) {
                out.push_back(options_.unknown);
            }
        }
    }
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& out) const {
    if (options_.ignore_merges) {
        const auto found = words_.find(word);
        if (found != words_.end()) {
            out.push_back(found->second);
            return;
        }
    }
    split(word, scratch.symbols);
    if (scratch.symbols.size() > kShortWord_symbols) {
        merge_long(scratch);
    } else {
        merge_short(scratch);
    }
    emit(scratch.symbols, out);
}

}  // namespace recto
