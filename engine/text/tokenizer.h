// Text ↔ token ids. Byte-level BPE (GPT-2's scheme) with each model's own pre-tokenizer regex, tokenizer.json BPE
// with byte fallback, and SentencePiece. Immutable after construction; all methods may be called from any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/load/model_source.h"

namespace recto {

struct EncodeOptions {
    bool add_bos = true;         // only if the tokenizer wants one at all
    bool parse_special = false;  // spellings of control tokens in the text become those tokens
    bool at_start = true;        // false: an inner piece of a longer text (no SentencePiece prefix space)
};

// A piece of a rendered prompt: only what the template itself wrote may turn into control tokens.
struct TextPiece {
    std::string text;
    bool from_user = false;
};

class Tokenizer {
  public:
    virtual ~Tokenizer() = default;

    // Any bytes; invalid UTF-8 is encoded as the original implementation does, or as U+FFFD. Linear time.
    virtual std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;

    // One text in pieces, without automatic BOS: the ids that encode() gives for the joined text, except that only
    // template bytes can be a control token. A piece's border is no border for the model's own splitting, so a chat
    // has the ids that the model was trained on. (By default each stretch of one origin is encoded by itself.)
    virtual std::vector<std::int32_t> encode_pieces(std::span<const TextPiece> pieces) const;

    virtual int size() const = 0;                                    // ids are 0 … size − 1
    // The bytes that the token stands for ("▁" is a blank, "<0xF0>" one byte); its spelling for added tokens.
    virtual std::string_view bytes(std::int32_t id) const = 0;       // empty for ids outside
    virtual std::string_view spelling(std::int32_t id) const = 0;    // as the vocabulary writes it
    virtual bool is_special(std::int32_t id) const = 0;              // control tokens: dropped by skip_special
    virtual std::int32_t find(std::string_view spelling) const = 0;  // -1 if absent
    virtual std::int32_t bos() const = 0;                            // -1 if none
    virtual std::span<const std::int32_t> eos() const = 0;           // eos, eot, eom and the family's turn ends
    virtual bool adds_bos() const = 0;
    virtual bool strips_leading_space() const = 0;  // decoding from the start of a text drops one blank (SentencePiece)
    virtual std::string describe() const = 0;       // "byte-level BPE (smollm), 49152 tokens"
};

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles& files);

// Pieces in order. No automatic BOS: the template wrote it, or the model wants none (a doubled BOS is dropped).
std::vector<std::int32_t> encode_pieces(const Tokenizer& tokenizer, std::span<const TextPiece> pieces);

struct DecodeOptions {
    bool skip_special = true;
    bool spaces_between_special = true;
    bool at_start = false;  // true: the tokens begin a text (one leading blank is dropped where the model does so)
};
std::string decode(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, const DecodeOptions& options = {});

// Emits text token by token, never half a character: the longest valid UTF-8 prefix goes out, at most three bytes
// wait, bytes that can no longer become valid become U+FFFD. O(1) a token.
class Detokenizer {
  public:
    explicit Detokenizer(const Tokenizer& tokenizer, const DecodeOptions& options = {});
    std::string append(std::int32_t id);  // the text that became certain
    std::string flush();                  // what is left, at the end

  private:
    const Tokenizer* tokenizer_;
    DecodeOptions options_;
    std::string pending_;       // incomplete UTF-8, at most 3 bytes
    bool first_ = true;
    bool last_was_special_ = false;
};

}  // namespace recto
