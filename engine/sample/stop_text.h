// Looks for stop strings in an answer's text as it grows, and holds back what may still become one: the
// longest tail that is a proper prefix of some stop string. The earliest match wins; among those that begin
// together, the shortest.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace recto {

class StopText {
  public:
    StopText() = default;
    StopText(std::vector<std::string> stop, bool include) : stop_(std::move(stop)), include_(include) {}

    struct Result {
        std::string text;                    // became certain
        const std::string* match = nullptr;  // the stop string that was completed: the text ends here
    };
    // Whole characters of valid UTF-8. A match must end inside `added`; with `counts` false (min_tokens not
    // reached) none is looked for.
    Result append(std::string_view added, bool counts);
    std::string flush();  // what is held back, when the answer ends otherwise

  private:
    std::size_t held_tail(std::string_view text) const;
    std::vector<std::string> stop_;
    bool include_ = false;
    std::string held_;
};

}  // namespace recto
