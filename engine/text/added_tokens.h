// Finds added tokens (control tokens and others that are never split) in a text: leftmost first, and of those
// that begin at one place the longest that is allowed there. Rules of a token (blanks it swallows, whole
// words only) as in Hugging Face's tokenizers library (AddedToken).
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace recto {

struct AddedToken {
    std::string text;
    std::int32_t id = -1;
    bool control = false;      // matched only where control tokens may be
    bool lstrip = false;       // swallows blanks before it
    bool rstrip = false;       // swallows blanks after it
    bool single_word = false;  // only between characters that are no part of a word
};

// Bytes of the text in which control tokens may not be found.
struct UserSpan {
    std::size_t begin, end;
};

class AddedTokenMatcher {
  public:
    explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

    struct Part {
        std::string_view text;
        std::int32_t token = -1;  // ≥ 0: this token; else plain text
    };
    // Cuts a text into tokens and what lies between them; empty parts are left out. `user` is sorted.
    std::vector<Part> cut(std::string_view text, const std::vector<UserSpan>& user) const;
    bool empty() const { return tokens_.empty(); }

  private:
    struct Node {
        std::int32_t token = -1;  // index into tokens_
        std::int32_t child = -1;  // first child
        std::int32_t sibling = -1;
        char byte = 0;
    };
    std::int32_t step(std::int32_t node, char byte) const;
    void insert(std::int32_t token);
    // The longest allowed token that begins at `at`; -1 if none.
    std::int32_t match(std::string_view text, std::size_t at, std::size_t user_begin) const;
    bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) const;

    std::vector<AddedToken> tokens_;
    std::vector<Node> nodes_;
    std::array<std::int32_t, 256> roots_{};  // node of each first byte, -1 if none
};

}  // namespace recto
