// The steps between a text and the words that BPE merges inside: splits by pattern, the byte-level map,
// SentencePiece's blank mark. Named and defined as in Hugging Face's tokenizers library (pre_tokenizers),
// which GGUF files follow too.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/regex.h"

namespace recto {

enum class SplitBehavior : std::uint8_t {
    removed,
    isolated,
    merged_with_previous,
    merged_with_next,
    contiguous
};

// A text and the words it is cut into; steps cut further or rewrite.
struct SplitText {
    struct Word {
        std::size_t begin, end;
    };
    std::string_view text;
    std::vector<Word> words;
    std::string storage;  // holds `text` once a step rewrote it
    bool at_start;        // the text begins the whole input
    bool inner;           // it continues a text that was encoded elsewhere: no blank is put before it

    SplitText(std::string_view whole, bool starts, bool continues)
        : text(whole), at_start(starts), inner(continues) {
        if (!whole.empty()) words.push_back({0, whole.size()});
    }
    SplitText(const SplitText&) = delete;
    SplitText& operator=(const SplitText&) = delete;
    std::string_view word(const Word& w) const { return text.substr(w.begin, w.end - w.begin); }
    void replace_text(std::string new_text, std::vector<Word> new_words);
};

class PreTokenizerStep {
  public:
    virtual ~PreTokenizerStep() = default;
    virtual void apply(SplitText& split) const = 0;
};
using PreTokenizerSteps = std::vector<std::unique_ptr<PreTokenizerStep>>;

// invert: the pattern describes what is kept together, not the delimiter.
std::unique_ptr<PreTokenizerStep> make_split_step(Regex pattern, SplitBehavior behavior, bool invert = false);
// Each word gets a leading blank unless it has one.
std::unique_ptr<PreTokenizerStep> make_prefix_space_step();
// Words written in GPT-2's byte map, for steps that look at the mapped characters, and back.
std::unique_ptr<PreTokenizerStep> make_byte_map_step();
std::unique_ptr<PreTokenizerStep> make_byte_unmap_step();

enum class PrefixSpace : std::uint8_t { always, first, never };
// Blanks become `mark`; a word that does not begin with the mark gets one; then words are cut before each
// mark.
std::unique_ptr<PreTokenizerStep> make_metaspace_step(std::string mark, PrefixSpace prefix, bool cut);

// The pattern of GPT-2's release, the one that "ByteLevel" means.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Punctuation as that library defines it: Unicode's, and ASCII's symbols.
inline constexpr const char* kPunctuationPattern = R"([\p{P}$+<=>^`|~])";

}  // namespace recto
