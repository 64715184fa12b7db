#include "engine/bench/prompts.h"

#include <algorithm>
#include <random>

namespace recto {
namespace {

constexpr const char* words[] = {
    "the",     "river", "after",    "long",   "winter",  "people",  "carried", "water",  "from",   "village",
    "house",   "with",  "small",    "window", "light",   "morning", "and",     "before", "road",   "mountain",
    "they",    "wrote", "letters",  "about",  "work",    "summer",  "some",    "days",   "were",   "quiet",
    "others",  "full",  "of",       "noise",  "market",  "bread",   "fish",    "salt",   "paper",  "a",
    "boat",    "came",  "down",     "slowly", "because", "wind",    "changed", "its",    "mind",   "over",
    "open",    "field", "children", "asked",  "what",    "number",  "stars",   "had",    "nobody", "knew",
    "answer",  "but",   "everyone", "tried",  "to",      "count",   "them",    "again",  "each",   "night",
    "teacher", "drew",  "map",      "line",   "between", "two",     "towns",   "where",  "train",  "stops",
    "never",   "late",  "old",      "clock",  "station", "says",    "so",      "in",     "green",  "garden",
    "stone",   "wall",  "is",       "warm",   "under",   "hand",    "when",    "sun",    "goes",   "behind"};

std::string sentence_of(std::mt19937_64& random, int count, std::vector<std::size_t>& ends) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        if (i > 0) text += random() % 9 == 0 ? ", " : " ";
        text += words[random() % std::size(words)];
        ends.push_back(text.size());
    }
    return text;
}

std::size_t tokens_of(const Tokenizer& tokenizer, std::string_view text) {
    return tokenizer.encode(text).size();
}

// The longest beginning of random words that has at most `tokens` tokens, filled up with single letters.
std::string text_of(const Tokenizer& tokenizer, std::size_t tokens, std::mt19937_64& random) {
    std::vector<std::size_t> ends = {0};
    const std::string all = sentence_of(random, int(tokens) + 1, ends);
    std::size_t low = 0;
    std::size_t high = ends.size();  // the first `low` words fit, `high` do not
    while (high - low > 1) {
        const std::size_t middle = (low + high) / 2;
        (tokens_of(tokenizer, std::string_view(all).substr(0, ends[middle])) <= tokens ? low : high) = middle;
    }
    std::string text = all.substr(0, ends[low]);
    for (std::size_t have = tokens_of(tokenizer, text); have < tokens;) {
        const std::string longer = text + " a";
        const std::size_t now = tokens_of(tokenizer, longer);
        if (now > tokens || now == have) break;
        text = longer;
        have = now;
    }
    return text;
}

}  // namespace

bool same_tokens(const BenchVocabulary& a, const BenchVocabulary& b) {
    if (a.tokenizer == nullptr || b.tokenizer == nullptr) return true;
    const int shared = std::min(a.tokenizer->size(), b.tokenizer->size());
    for (int id = 0; id < shared; ++id)
        if (a.tokenizer->bytes(id) != b.tokenizer->bytes(id) ||
            a.tokenizer->is_special(id) != b.tokenizer->is_special(id))
            return false;
    return true;
}

BenchPrompts id_prompts(std::span<const BenchVocabulary> sides, int count, int tokens, std::uint64_t seed) {
    int shared = sides.front().size;
    for (const BenchVocabulary& v : sides)
        shared = std::min({shared, v.size, v.tokenizer ? v.tokenizer->size() : v.size});
    const auto special = [&](std::int32_t id) {
        return std::any_of(sides.begin(), sides.end(), [id](const BenchVocabulary& v) {
            return v.tokenizer != nullptr && v.tokenizer->is_special(id);
        });
    };
    std::mt19937_64 random(seed);
    const std::vector<std::int32_t> blank(static_cast<std::size_t>(tokens));
    Prompts prompts(static_cast<std::size_t>(count), blank);
    for (auto& prompt : prompts) {
        for (auto& id : prompt) {
            do
                id = std::int32_t(random() % std::uint64_t(shared));
            while (special(id));
        }
    }
    BenchPrompts result;
    result.ids = {prompts, prompts};
    return result;
}

BenchPrompts text_prompts(std::span<const BenchVocabulary> sides, int count, int tokens, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    BenchPrompts result;
    for (int i = 0; i < count; ++i) {
        const std::string text = text_of(*sides[0].tokenizer, std::size_t(tokens), random);
        for (std::size_t side = 0; side < sides.size(); ++side)
            result.ids[side].push_back(sides[side].tokenizer->encode(text));
        result.characters.push_back(count_characters(text));
    }
    return result;
}

std::int64_t count_characters(std::string_view utf8) {
    return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::uint64_t hash_prompts(std::uint64_t hash, const Prompts& prompts) {
    for (const auto& prompt : prompts) {
        for (const std::int32_t id : prompt) {
            for (int shift = 0; shift < 32; shift += 8) {
                hash ^= (std::uint32_t(id) >> shift) & 0xFFU;
                hash *= 0x100000001B3ULL;
            }
        }
    }
    return hash;
}

}  // namespace recto
