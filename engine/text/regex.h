// A compiled regular expression over valid UTF-8 (PCRE2 with Unicode classes, just-in-time compiled). The
// expression is immutable; a Matcher holds the scratch memory of one thread's search.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace recto {

class Regex {
  public:
    // The pattern is read as Oniguruma reads it (engine/text/oniguruma.h). Error(input) if it is not
    // understood; `label` begins the sentence. multiline: ^ and $ also match at line ends (what Oniguruma's
    // Ruby syntax always does).
    Regex(const std::string& pattern, const std::string& label, bool multiline = false);
    ~Regex();
    Regex(Regex&&) noexcept;
    Regex& operator=(Regex&&) noexcept;

    class Matcher {
      public:
        explicit Matcher(const Regex& regex);
        ~Matcher();
        Matcher(const Matcher&) = delete;
        Matcher& operator=(const Matcher&) = delete;

        // The first match that begins at `from` or later: fills begin and end. Error(runtime) if the search
        // exceeds PCRE2's limits on this text.
        bool find(std::string_view subject, std::size_t from);
        std::size_t begin = 0, end = 0;

      private:
        struct Scratch;
        std::unique_ptr<Scratch> scratch_;
    };

  private:
    struct Code;
    std::unique_ptr<Code> code_;
};

}  // namespace recto
