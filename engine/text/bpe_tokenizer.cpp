#include "engine/text/bpe_tokenizer.h"

namespace recto {

namespace {

class BpeTokenizer final : public TokenizerBase {
  public:
    explicit BpeTokenizer(BpeTokenizerParts parts)
        : TokenizerBase(std::move(parts.tokens), std::move(parts.ids), parts.label),
          name_(std::move(parts.name)),
          normalizer_(std::move(parts.normalizer)),
          steps_(std::move(parts.steps)),
          bpe_(vocabulary(), parts.merges, std::move(parts.bpe)),
          added_normalized_(without_control(parts)),
          strips_leading_space_(parts.strips_leading_space) {
        set_added_tokens(with_declared_ends(std::move(parts.added)));
    }

    bool strips_leading_space() const override { return strips_leading_space_; }
    std::string describe() const override { return name_ + ", " + std::to_string(size()) + " tokens"; }

  protected:
    struct Scratch final : RunScratch {
        Bpe::Scratch bpe;
    };
    std::unique_ptr<RunScratch> make_scratch() const override { return std::make_unique<Scratch>(); }

    void encode_run(const Run& run, RunScratch* scratch, std::vector<std::int32_t>& out) const override {
        auto& bpe = static_cast<Scratch*>(scratch)->bpe;
        std::string normalized;
        std::string_view text = run.text;
        const bool inner = !run.at_start && !run.after_token;
        if (normalizer_) text = normalized = normalizer_(text, inner);
        Place place{run.at_start, inner};
        if (added_normalized_.empty()) {
            encode_words(text, place, bpe, out);
            return;
        }
        for (const AddedTokenMatcher::Part& part : added_normalized_.cut(text, {})) {
            if (part.token >= 0) {
                out.push_back(part.token);
            } else {
                encode_words(part.text, place, bpe, out);
            }
            place = {false, false};
        }
    }

  private:
    // A control token that the file declares ordinary and normalized: it is looked for like the other control
    // tokens, in the text as it is and only where they may stand. Returns what stays.
    std::vector<AddedToken> without_control(BpeTokenizerParts& parts) const {
        std::vector<AddedToken> ordinary;
        for (AddedToken& token : parts.added_normalized) {
            if (!is_special(token.id)) {
                ordinary.push_back(std::move(token));
                continue;
            }
            token.text = bytes(token.id);
            token.control = true;
            parts.added.push_back(std::move(token));
        }
        return ordinary;
    }

    // What begins or ends texts is an added control token even where the file lists it as an ordinary one.
    std::vector<AddedToken> with_declared_ends(std::vector<AddedToken> added) const {
        std::vector<std::int32_t> missing(eos().begin(), eos().end());
        if (bos() >= 0) missing.push_back(bos());
        for (AddedToken& token : added) {
            token.control = token.control || is_special(token.id);
            std::erase(missing, token.id);
        }
        for (const std::int32_t id : missing)
            added.push_back({.text = std::string(bytes(id)), .id = id, .control = true});
        return added;
    }

    struct Place {
        bool at_start, inner;
    };
    void encode_words(std::string_view text, const Place& place, Bpe::Scratch& scratch,
                      std::vector<std::int32_t>& out) const {
        SplitText split(text, place.at_start, place.inner);
        for (const auto& step : steps_)
            step->apply(split);
        for (const SplitText::Word& word : split.words)
            bpe_.encode(split.word(word), scratch, out);
    }

    std::string name_;
    Normalizer normalizer_;
    PreTokenizerSteps steps_;
    Bpe bpe_;
    AddedTokenMatcher added_normalized_;
    bool strips_leading_space_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeTokenizerParts parts) {
    return std::make_unique<BpeTokenizer>(std::move(parts));
}

}  // namespace recto
