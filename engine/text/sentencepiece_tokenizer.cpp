// SentencePiece by its own library: from a tokenizer.model, and from a GGUF vocabulary ("llama") that is
// written back into a model file in memory. Added tokens are cut out before the library sees a text.
//
// The blank that SentencePiece puts before a text ("dummy prefix"): older tokenizers ("legacy", and llama.cpp
// for every GGUF) put it before each stretch between added tokens, newer ones only before the first.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <unordered_set>

#include "engine/text/byte_map.h"
#include "engine/text/make_tokenizer.h"
#include "engine/text/sentencepiece_proto.h"
#include "engine/text/tokenizer_base.h"
#include "engine/text/tokenizer_config.h"
#include "kernels/error.h"

namespace recto {

namespace {

using Proto = SentencePieceProto;
using Processor = sentencepiece::SentencePieceProcessor;

constexpr std::string_view kMark = "▁";

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

struct SentencePieceParts {
    std::string label, name;
    std::string model;          // serialized, as the library loads it
    bool has_prefix = true;     // texts get the dummy prefix
    bool trims_blanks = false;  // the model removes extra blanks, so that a prefix cannot be put on by hand
    bool legacy = true;
    std::vector<VocabularyToken> tokens;
    std::vector<AddedToken> added;
    SpecialIds ids;
};

std::unique_ptr<Processor> load(const std::string& model, const std::string& label) {
    auto processor = std::make_unique<Processor>();
    if (const auto status = processor->LoadFromSerializedProto(model); !status.ok())
        throw Error(ErrorKind::input,
                    label + ": expected a SentencePiece model, found one that its library refuses (" +
                        status.ToString() + ").");
    return processor;
}

class SentencePieceTokenizer final : public TokenizerBase {
  public:
    explicit SentencePieceTokenizer(SentencePieceParts parts)
        : TokenizerBase(std::move(parts.tokens), std::move(parts.ids), parts.label),
          name_(std::move(parts.name)),
          has_prefix_(parts.has_prefix),
          legacy_(parts.legacy),
          plain_(load(parts.model + sentencepiece_without_prefix(), parts.label)) {
        if (parts.has_prefix && parts.trims_blanks) prefixed_ = load(parts.model, parts.label);
        for (AddedToken& token : parts.added)
            token.control = token.control || is_special(token.id);
        set_added_tokens(std::move(parts.added));
    }

    bool strips_leading_space() const override { return has_prefix_; }
    std::string describe() const override { return name_ + ", " + std::to_string(size()) + " tokens"; }

  protected:
    bool wants_valid_utf8() const override { return false; }  // the library has its own rule

    void encode_run(const Run& run, RunScratch* /*scratch*/, std::vector<std::int32_t>& out) const override {
        const bool prefix = has_prefix_ && (run.at_start || (legacy_ && run.after_token));
        std::vector<int> ids;
        const auto status = prefix && prefixed_ ? prefixed_->Encode(run.text, &ids)
                            : prefix            ? plain_->Encode(' ' + std::string(run.text), &ids)
                                                : plain_->Encode(run.text, &ids);
        if (!status.ok())
            throw Error(ErrorKind::runtime, "SentencePiece could not encode a text of " +
                                                std::to_string(run.text.size()) +
                                                " bytes: " + status.ToString() + ".");
        out.insert(out.end(), ids.begin(), ids.end());
    }

  private:
    std::string name_;
    bool has_prefix_, legacy_;
    std::unique_ptr<Processor> plain_;     // without dummy prefix
    std::unique_ptr<Processor> prefixed_;  // with it, where the model would trim a blank put on by hand
};

VocabularyToken vocabulary_token(const Proto::Piece& piece) {
    VocabularyToken token{piece.text, piece.text, TokenKind::normal};
    switch (piece.type) {
        case Proto::unknown:
        case Proto::control:
            token.kind = TokenKind::control;
            break;
        case Proto::unused:
            token.kind = TokenKind::unused;
            break;
        case Proto::byte:
            if (const int byte = byte_of_token(piece.text); byte >= 0)
                token.bytes = std::string(1, static_cast<char>(byte));
            break;
        case Proto::user_defined:
            token.kind = TokenKind::user_defined;
            [[fallthrough]];
        default:
            token.bytes = replace_all(piece.text, kMark, " ");
    }
    return token;
}

// Tokens of tokenizer_config.json: those that the model does not hold, and rules for those it does.
void add_config_tokens(const TokenizerConfig& config, const Proto& proto, SentencePieceParts& parts) {
    const std::size_t most = parts.tokens.size() + config.added.size() + 100'000;
    for (const ConfigToken& token : config.added) {
        const auto id = static_cast<std::size_t>(token.id);
        if (id >= most)
            throw Error(ErrorKind::input, parts.label + ": expected token ids below " + std::to_string(most) +
                                              " in tokenizer_config.json, found " + std::to_string(token.id) +
                                              ".");
        // The library itself finds its user-defined pieces, without a border around them.
        if (id < proto.pieces.size() && proto.pieces[id].type == Proto::user_defined && !token.special)
            continue;
        if (id >= parts.tokens.size()) parts.tokens.resize(id + 1, {.kind = TokenKind::unused});
        parts.tokens[id] = {token.text, token.text,
                            token.special ? TokenKind::control : TokenKind::user_defined};
        std::erase_if(parts.added, [&](const AddedToken& a) { return a.id == token.id; });
        parts.added.push_back({.text = token.text,
                               .id = token.id,
                               .control = token.special,
                               .lstrip = token.lstrip,
                               .rstrip = token.rstrip,
                               .single_word = token.single_word});
    }
}

// The library would find a user-defined piece in any text; those that frame turns may be found in templates
// only.
std::vector<std::int32_t> make_frames_control(Proto& proto) {
    std::vector<std::int32_t> changed;
    for (std::size_t i = 0; i < proto.pieces.size(); ++i) {
        if (proto.pieces[i].type != Proto::user_defined || !frames_turns(proto.pieces[i].text)) continue;
        proto.pieces[i].type = Proto::control;
        changed.push_back(static_cast<std::int32_t>(i));
    }
    return changed;
}

std::int32_t find(const std::vector<VocabularyToken>& tokens, const std::string& spelling) {
    if (spelling.empty()) return -1;
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i].spelling == spelling) return static_cast<std::int32_t>(i);
    return -1;
}

// The id that the library needs for what it cannot write. Phi-3's conversion types that piece as control and
// its padding as unknown, so the id that the file names counts first.
std::int32_t unknown_id(const TokenizerFiles::GgufVocabulary& gguf) {
    if (gguf.unknown >= 0 && std::size_t(gguf.unknown) < gguf.tokens.size()) return gguf.unknown;
    const auto found = std::find(gguf.types.begin(), gguf.types.end(), std::int32_t(Proto::unknown));
    return found == gguf.types.end() ? -1 : std::int32_t(found - gguf.types.begin());
}

Proto gguf_proto(const TokenizerFiles& files, std::size_t inside) {
    const auto& gguf = *files.gguf;
    Proto proto;
    proto.model_type = 2;
    proto.add_dummy_prefix = gguf.add_space_prefix;
    proto.remove_extra_whitespaces = false;
    proto.unknown_id = unknown_id(gguf);
    proto.bos_id = gguf.bos;
    proto.eos_id = gguf.eos;
    std::unordered_set<std::string> seen;
    for (std::size_t i = 0; i < inside; ++i) {
        Proto::Piece piece{gguf.tokens[i], gguf.scores[i], static_cast<Proto::Type>(gguf.types[i])};
        // Conversions write user-defined pieces with real blanks.
        if (piece.type == Proto::user_defined) piece.text = replace_all(piece.text, " ", kMark);
        if (piece.type == Proto::byte) proto.byte_fallback = true;
        const bool unknown = static_cast<std::int32_t>(i) == proto.unknown_id;
        if (unknown != (piece.type == Proto::unknown)) piece.type = unknown ? Proto::unknown : Proto::unused;
        // Padding of a vocabulary may repeat a spelling, which the library refuses: it can never be found in
        // a text.
        if (piece.text.empty() || !seen.insert(piece.text).second)
            piece = {"\x01unused " + std::to_string(i), 0.0F, Proto::unused};
        proto.pieces.push_back(std::move(piece));
    }
    make_frames_control(proto);
    return proto;
}

void check_gguf(const TokenizerFiles& files) {
    const auto& gguf = *files.gguf;
    const auto check = [&](const char* what, std::size_t count) {
        if (count != gguf.tokens.size() || count == 0)
            throw Error(ErrorKind::input, files.label + ": expected as many " + what + " as tokens (" +
                                              std::to_string(gguf.tokens.size()) + "), found " +
                                              std::to_string(count) + ".");
    };
    check("token scores", gguf.scores.size());
    check("token types", gguf.types.size());
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const TokenizerFiles& files) {
    Proto proto = read_sentencepiece_proto(files.sentencepiece_model, files.label);
    const TokenizerConfig config = read_tokenizer_config(files.tokenizer_config_json, files.label);
    if (proto.whitespace_as_suffix)
        throw Error(ErrorKind::input, files.label +
                                          ": expected a SentencePiece model with blanks before words, found "
                                          "one with blanks after them, which is not supported.");
    SentencePieceParts parts;
    parts.label = files.label;
    parts.name = "SentencePiece";
    parts.model =
        sentencepiece_with_controls(files.sentencepiece_model, make_frames_control(proto), files.label);
    parts.has_prefix = proto.add_dummy_prefix && config.add_prefix_space.value_or(true);
    parts.trims_blanks = proto.remove_extra_whitespaces;
    parts.legacy = config.legacy;
    for (const Proto::Piece& piece : proto.pieces)
        parts.tokens.push_back(vocabulary_token(piece));
    for (AddedToken& token : added_tokens_of(parts.tokens))
        if (token.control) parts.added.push_back(std::move(token));
    add_config_tokens(config, proto, parts);
    parts.ids.bos = find(parts.tokens, config.bos_token);
    const auto size = static_cast<std::int32_t>(parts.tokens.size());
    if (parts.ids.bos < 0 && proto.bos_id >= 0 && proto.bos_id < size) parts.ids.bos = proto.bos_id;
    if (const std::int32_t eos = find(parts.tokens, config.eos_token); eos >= 0) parts.ids.eos.push_back(eos);
    if (proto.eos_id >= 0 && proto.eos_id < size) parts.ids.eos.push_back(proto.eos_id);
    if (parts.ids.bos >= 0 && config.add_bos_token.value_or(true)) parts.ids.prefix = {parts.ids.bos};
    return std::make_unique<SentencePieceTokenizer>(std::move(parts));
}

std::unique_ptr<Tokenizer> make_gguf_sentencepiece_tokenizer(const TokenizerFiles& files) {
    check_gguf(files);
    const auto& gguf = *files.gguf;
    // Tokens behind the model's own pieces were added later and are cut out of a text; user-defined pieces
    // among the model's own are found by the library.
    std::size_t inside = gguf.tokens.size();
    while (inside > 0 && gguf.types[inside - 1] != Proto::normal && gguf.types[inside - 1] != Proto::byte &&
           std::int32_t(inside - 1) != unknown_id(gguf))
        --inside;
    const Proto proto = gguf_proto(files, inside);
    SentencePieceParts parts;
    parts.label = files.label;
    parts.name = "SentencePiece (GGUF)";
    parts.model = write_sentencepiece_proto(proto);
    parts.has_prefix = gguf.add_space_prefix;
    for (std::size_t i = 0; i < gguf.tokens.size(); ++i)
        parts.tokens.push_back(
            vocabulary_token({gguf.tokens[i], 0.0F, static_cast<Proto::Type>(gguf.types[i])}));
    for (std::size_t i = 0; i < inside; ++i)  // as the library sees them
        if (proto.pieces[i].type == Proto::control) parts.tokens[i].kind = TokenKind::control;
    for (AddedToken& token : added_tokens_of(parts.tokens))
        if (token.control || static_cast<std::size_t>(token.id) >= inside)
            parts.added.push_back(std::move(token));
    parts.ids.bos = gguf.bos;
    for (const std::int32_t id : {gguf.eos, gguf.eot, gguf.eom})
        if (id >= 0) parts.ids.eos.push_back(id);
    if (gguf.add_bos && gguf.bos >= 0) parts.ids.prefix = {gguf.bos};
    return std::make_unique<SentencePieceTokenizer>(std::move(parts));
}

}  // namespace recto
