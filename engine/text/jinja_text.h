// A string that knows where each of its bytes came from: written by the template, or taken from the person's
// data. Origin survives concatenation, slicing and every transformation that works character by character.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace recto::jinja {

class Text {
  public:
    Text() = default;
    Text(std::string_view bytes, bool user) { append(bytes, user); }

    const std::string& bytes() const { return bytes_; }
    std::size_t size() const { return bytes_.size(); }
    bool empty() const { return bytes_.empty(); }
    bool any_user() const;
    bool user_at(std::size_t byte) const;  // byte < size()

    void append(std::string_view bytes, bool user);
    void append(const Text& other) { append(other, 0, other.size()); }
    void append(const Text& other, std::size_t begin, std::size_t end);  // bytes [begin, end) of `other`
    Text slice(std::size_t begin, std::size_t end) const;                // bytes [begin, end)
    std::vector<TextPiece> pieces() const;                               // maximal runs of one origin

  private:
    struct Run {
        std::size_t end;
        bool user;
    };
    std::string bytes_;
    std::vector<Run> runs_;  // ascending ends; the last one is bytes_.size(); neighbours differ in origin
};

// One character of UTF-8. A byte that begins no valid sequence counts as a character of its own.
struct CodePoint {
    std::uint32_t value;
    std::size_t length;  // bytes
};
CodePoint code_point_at(std::string_view bytes, std::size_t at);
std::size_t count_code_points(std::string_view bytes);
std::vector<std::size_t> code_point_starts(
    std::string_view bytes);  // one more than characters: the last is size()
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace recto::jinja
