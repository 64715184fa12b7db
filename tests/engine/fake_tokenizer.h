// A vocabulary of 50 pieces with everything that makes text awkward: pieces of several letters, a stop
// string's parts spread over them, characters of several bytes, some split over two tokens, control tokens.
#pragma once
#include <array>
#include <string>

#include "engine/text/tokenizer.h"

namespace recto::test {

class FakeTokenizer : public Tokenizer {
  public:
    static constexpr int vocab = 50;
    static constexpr std::int32_t eos_id = 0, turn_end_id = 1;

    FakeTokenizer() {
        std::size_t n = 0;
        for (const char* s : {"<eos>", "<turn>", "EN", "D of", "é", "\xE4\xBD", "\xA0", "\xC3", "你", " ",
                              "ab", "bc", "abc", "\xF0\x9F", "\x98\x80", "END"})
            pieces_[n++] = s;
        for (char c = 'a'; n < pieces_.size(); ++n, c = char(c == 'z' ? 'A' : c + 1))
            pieces_[n] = std::string(1, c);
    }
    std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions&) const override {
        std::vector<std::int32_t> ids;
        while (!text.empty()) {
            std::int32_t best = -1;
            for (std::int32_t id = 2; id < vocab; ++id)
                if (text.starts_with(bytes(id)) && (best < 0 || bytes(id).size() > bytes(best).size()))
                    best = id;
            if (best >= 0) ids.push_back(best);
            text.remove_prefix(best < 0 ? 1 : bytes(best).size());
        }
        return ids;
    }
    int size() const override { return vocab; }
    std::string_view bytes(std::int32_t id) const override {
        return id >= 0 && id < vocab ? std::string_view(pieces_[std::size_t(id)]) : std::string_view();
    }
    std::string_view spelling(std::int32_t id) const override { return bytes(id); }
    bool is_special(std::int32_t id) const override { return id == eos_id || id == turn_end_id; }
    std::int32_t find(std::string_view spelling) const override {
        for (std::int32_t id = 0; id < vocab; ++id)
            if (bytes(id) == spelling) return id;
        return -1;
    }
    std::int32_t bos() const override { return -1; }
    std::span<const std::int32_t> eos() const override { return eos_; }
    bool adds_bos() const override { return false; }
    bool strips_leading_space() const override { return false; }
    std::string describe() const override { return "fake"; }

  private:
    std::array<std::string, vocab> pieces_;
    std::array<std::int32_t, 2> eos_{eos_id, turn_end_id};
};

}  // namespace recto::test
