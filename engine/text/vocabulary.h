// The tokens of a model: spelling, bytes, kind, and the way back from a spelling to an id. Every tokenizer
// has one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace recto {

enum class TokenKind : std::uint8_t {
    normal,        // made by the model's own merges or pieces
    user_defined,  // always found whole in a text, printed like text
    control,       // never text: begins, ends and frames turns
    unused,        // a hole in the numbering
};

struct VocabularyToken {
    std::string spelling;  // as the vocabulary writes it
    std::string bytes;     // what it stands for in a text
    TokenKind kind = TokenKind::normal;
};

class Vocabulary {
  public:
    explicit Vocabulary(std::vector<VocabularyToken> tokens);
    Vocabulary(const Vocabulary&) = delete;
    Vocabulary& operator=(const Vocabulary&) = delete;

    int size() const { return static_cast<int>(tokens_.size()); }
    bool contains(std::int32_t id) const { return id >= 0 && id < size(); }
    const VocabularyToken& operator[](std::int32_t id) const { return tokens_[static_cast<std::size_t>(id)]; }
    std::int32_t find(std::string_view spelling) const;  // -1 if absent; of equal spellings the last one

    void make_control(std::int32_t id);

  private:
    std::vector<VocabularyToken> tokens_;
    std::unordered_map<std::string_view, std::int32_t> ids_;
};

// Tokens that frame the turns of a chat in one family or another. Files often list them as ordinary added
// tokens, and text of a user that spells one must not frame a turn: a vocabulary's user-defined tokens of
// these spellings are control tokens.
bool frames_turns(std::string_view spelling);
// Those of them that end a turn and that the vocabulary holds as control tokens: they belong to its
// end-of-text set whatever the file declares.
std::vector<std::int32_t> turn_ends(const Vocabulary& vocabulary);

}  // namespace recto
