#include "engine/text/pre_tokenizer.h"

#include <cassert>

#include "engine/text/byte_map.h"

namespace recto {

void SplitText::replace_text(std::string new_text, std::vector<Word> new_words) {
    storage = std::move(new_text);
    text = storage;
    words = std::move(new_words);
}

namespace {

using Word = SplitText::Word;

class SplitStep final : public PreTokenizerStep {
  public:
    SplitStep(Regex pattern, SplitBehavior behavior, bool invert)
        : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

    void apply(SplitText& split) const override {
        Regex::Matcher matcher(pattern_);
        std::vector<Word> out;
        out.reserve(split.words.size() + split.text.size() / 4);
        std::vector<Part> parts;
        for (const Word& word : split.words) {
            parts.clear();
            find_parts(matcher, split.word(word), parts);
            if (behavior_ == SplitBehavior::isolated) {
                for (const Part& p : parts)
                    out.push_back({word.begin + p.begin, word.begin + p.end});
            } else {
                join(parts, word.begin, out);
            }
        }
        split.words = std::move(out);
    }

  private:
    struct Part {
        std::size_t begin, end;
        bool delimiter;
    };

    // Matches and what lies between them. Each word is a subject of its own: a pattern cannot look beyond it.
    void find_parts(Regex::Matcher& matcher, std::string_view text, std::vector<Part>& parts) const {
        std::size_t done = 0;
        std::size_t from = 0;
        while (from < text.size() && matcher.find(text, from)) {
            if (matcher.end == matcher.begin) {  // an empty match separates nothing
                from = matcher.end + 1;
                while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U)
                    ++from;
                continue;
            }
            if (matcher.begin > done) parts.push_back({done, matcher.begin, invert_});
            parts.push_back({matcher.begin, matcher.end, !invert_});
            done = from = matcher.end;
        }
        if (done < text.size()) parts.push_back({done, text.size(), invert_});
    }

    void join(const std::vector<Part>& parts, std::size_t offset, std::vector<Word>& out) const {
        bool joinable = false;  // the last word of `out` may grow
        bool last_delimiter = false;
        for (const Part& p : parts) {
            bool grow = false;
            switch (behavior_) {
                case SplitBehavior::removed:
                    if (p.delimiter) continue;
                    break;
                case SplitBehavior::isolated:
                    break;
                case SplitBehavior::merged_with_previous:
                    grow = joinable && p.delimiter && !last_delimiter;
                    break;
                case SplitBehavior::merged_with_next:
                    grow = joinable && !p.delimiter && last_delimiter;
                    break;
                case SplitBehavior::contiguous:
                    grow = joinable && p.delimiter == last_delimiter;
                    break;
            }
            if (grow) {
                out.back().end = offset + p.end;
            } else {
                out.push_back({offset + p.begin, offset + p.end});
            }
            joinable = true;
            last_delimiter = p.delimiter;
        }
    }

    Regex pattern_;
    SplitBehavior behavior_;
    bool invert_;
};

// Rewrites every word by a function that appends to the new text.
template <class Rewrite>
void rewrite_words(SplitText& split, std::size_t growth, const Rewrite& rewrite) {
    std::string text;
    text.reserve(split.text.size() + growth);
    std::vector<Word> words;
    words.reserve(split.words.size());
    for (const Word& word : split.words) {
        const std::size_t begin = text.size();
        rewrite(word, split.word(word), text);
        words.push_back({begin, text.size()});
    }
    split.replace_text(std::move(text), std::move(words));
}

class PrefixSpaceStep final : public PreTokenizerStep {
  public:
    void apply(SplitText& split) const override {
        rewrite_words(split, split.words.size(),
                      [&](const Word& at, std::string_view word, std::string& out) {
                          if (!word.starts_with(' ') && !(split.inner && at.begin == 0)) out += ' ';
                          out += word;
                      });
    }
};

class ByteMapStep final : public PreTokenizerStep {
  public:
    void apply(SplitText& split) const override {
        rewrite_words(split, split.text.size() / 2, [](const Word&, std::string_view word, std::string& out) {
            out += bytes_to_map(word);
        });
    }
};

class ByteUnmapStep final : public PreTokenizerStep {
  public:
    void apply(SplitText& split) const override {
        rewrite_words(split, 0, [](const Word&, std::string_view word, std::string& out) {
            const auto bytes = map_to_bytes(word);
            assert(bytes && "only mapped characters since the map step");
            out += *bytes;
        });
    }
};

class MetaspaceStep final : public PreTokenizerStep {
  public:
    MetaspaceStep(std::string mark, PrefixSpace prefix, bool cut)
        : mark_(std::move(mark)), prefix_(prefix), cut_(cut) {}

    void apply(SplitText& split) const override {
        rewrite_words(split, split.text.size() / 2,
                      [&](const Word& word, std::string_view text, std::string& out) {
                          const bool first = word.begin == 0;
                          const bool wants = prefix_ == PrefixSpace::always
                                                 ? !(split.inner && first)
                                                 : prefix_ == PrefixSpace::first && split.at_start && first;
                          if (wants && !text.starts_with(' ') && !text.starts_with(mark_)) out += mark_;
                          for (const char c : text) {
                              if (c == ' ') {
                                  out += mark_;
                              } else {
                                  out += c;
                              }
                          }
                      });
        if (cut_) cut_before_marks(split);
    }

  private:
    void cut_before_marks(SplitText& split) const {
        std::vector<Word> out;
        for (const Word& word : split.words) {
            const std::string_view text = split.word(word);
            std::size_t begin = 0;
            for (std::size_t at = text.find(mark_); at != std::string_view::npos;
                 at = text.find(mark_, at + mark_.size())) {
                if (at > begin) out.push_back({word.begin + begin, word.begin + at});
                begin = at;
            }
            if (begin < text.size()) out.push_back({word.begin + begin, word.end});
        }
        split.words = std::move(out);
    }

    std::string mark_;
    PrefixSpace prefix_;
    bool cut_;
};

}  // namespace

std::unique_ptr<PreTokenizerStep> make_split_step(Regex pattern, SplitBehavior behavior, bool invert) {
    return std::make_unique<SplitStep>(std::move(pattern), behavior, invert);
}
std::unique_ptr<PreTokenizerStep> make_prefix_space_step() {
    return std::make_unique<PrefixSpaceStep>();
}
std::unique_ptr<PreTokenizerStep> make_byte_map_step() {
    return std::make_unique<ByteMapStep>();
}
std::unique_ptr<PreTokenizerStep> make_byte_unmap_step() {
    return std::make_unique<ByteUnmapStep>();
}
std::unique_ptr<PreTokenizerStep> make_metaspace_step(std::string mark, PrefixSpace prefix, bool cut) {
    return std::make_unique<MetaspaceStep>(std::move(mark), prefix, cut);
}

}  // namespace recto
