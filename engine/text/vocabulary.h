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

    // A turn end that the file calls an ordinary added token is a control token all the same: text of a user
    // that spells it must not end a turn.
    void make_control(std::int32_t id);

  private:
    std::vector<VocabularyToken> tokens_;
    std::unordered_map<std::string_view, std::int32_t> ids_;
};

// Spellings that end a turn in one family or another; those which a vocabulary holds as added tokens belong
// to its end-of-text set whatever the file declares.
std::vector<std::int32_t> turn_ends(const Vocabulary& vocabulary);

}  // namespace recto
