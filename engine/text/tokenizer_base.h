// What all tokenizers share: the vocabulary, the ids that begin and end texts, and cutting a text at added
// tokens so that text of a user never becomes a control token.
#pragma once
#include <string>
#include <vector>

#include "engine/text/added_tokens.h"
#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary.h"

namespace recto {

struct SpecialIds {
    std::int32_t bos = -1;
    std::vector<std::int32_t> eos;  // as the files declare them, the primary one first
    std::vector<std::int32_t>
        prefix;  // what encode() puts first when asked for BOS; usually {bos} or nothing
};

class TokenizerBase : public Tokenizer {
  public:
    std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options) const final;
    std::vector<std::int32_t> encode_pieces(std::span<const TextPiece> pieces) const final;
    int size() const final { return vocabulary_.size(); }
    std::string_view bytes(std::int32_t id) const final;
    std::string_view spelling(std::int32_t id) const final;
    bool is_special(std::int32_t id) const final;
    std::int32_t find(std::string_view spelling) const final { return vocabulary_.find(spelling); }
    std::int32_t bos() const final { return ids_.bos; }
    std::span<const std::int32_t> eos() const final { return ids_.eos; }
    bool adds_bos() const final { return !ids_.prefix.empty(); }

  protected:
    // Ids outside the vocabulary are Error(input); turn ends of known families join eos and become control
    // tokens.
    TokenizerBase(std::vector<VocabularyToken> tokens, SpecialIds ids, const std::string& label);
    void set_added_tokens(std::vector<AddedToken> tokens) { added_ = AddedTokenMatcher(std::move(tokens)); }
    const Vocabulary& vocabulary() const { return vocabulary_; }

    struct Run {  // text between two added tokens; never empty
        std::string_view text;
        bool at_start = false;     // begins the whole input
        bool after_token = false;  // follows an added token
    };
    struct RunScratch {
        virtual ~RunScratch() = default;
    };
    virtual std::unique_ptr<RunScratch> make_scratch() const { return nullptr; }
    virtual void encode_run(const Run& run, RunScratch* scratch, std::vector<std::int32_t>& out) const = 0;
    // Whether invalid UTF-8 is turned into U+FFFD before encode_run.
    virtual bool wants_valid_utf8() const { return true; }

  private:
    void encode_parts(std::string_view text, const std::vector<UserSpan>& user, bool at_start,
                      std::vector<std::int32_t>& out) const;

    Vocabulary vocabulary_;
    SpecialIds ids_;
    AddedTokenMatcher added_{{}};
};

// Control and user-defined tokens as added tokens without further rules.
std::vector<AddedToken> added_tokens_of(const std::vector<VocabularyToken>& tokens);

}  // namespace recto
