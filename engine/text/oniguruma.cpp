#include "engine/text/oniguruma.h"

#include <string_view>
#include <vector>

#include "engine/text/utf8.h"
#include "kernels/error.h"

namespace recto {

namespace {

// What stands inside [ ] for a class escape; empty if PCRE2 means the same.
std::string_view class_content(char escape) {
    switch (escape) {
        case 's':
        case 'S':
            return R"(\t-\r\x{85}\p{Z})";
        case 'w':
        case 'W':
            return R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
        case 'h':
        case 'H':
            return "0-9a-fA-F";
        default:
            return {};
    }
}

class Translator {
  public:
    Translator(const std::string& pattern, const std::string& label) : in_(pattern), label_(label) {}

    std::string run() {
        while (at_ < in_.size()) {
            const char c = in_[at_];
            const bool quantifier = c == '*' || c == '+' || c == '?' || c == '{';
            if (c == ')' && !groups_.empty()) {
                atom_ = groups_.back();
                groups_.pop_back();
            } else if (!quantifier) {
                atom_ = out_.size();
            }
            switch (c) {
                case '\\':
                    escape();
                    break;
                case '[':
                    character_class();
                    break;
                case '{':
                    repeat();
                    break;
                case '(':
                    groups_.push_back(out_.size());
                    [[fallthrough]];
                default:
                    copy_character();
            }
        }
        return std::move(out_);
    }

  private:
    [[noreturn]] void unsupported(const std::string& what) const {
        throw Error(ErrorKind::input, label_ + ": expected a pre-tokenizer pattern without " + what +
                                          ", found \"" + in_ + "\".");
    }
    bool more() const { return at_ < in_.size(); }
    void copy() { out_ += in_[at_++]; }
    void copy_character() {
        copy();
        while (more() && !is_utf8_start(in_[at_]))
            copy();
    }

    void escape() {
        const char next = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
        if (const std::string_view content = class_content(next); !content.empty()) {
            const bool negated = next < 'a';
            ((out_ += negated ? "[^" : "[") += content) += ']';
            at_ += 2;
            return;
        }
        if (next == 'b' || next == 'B') unsupported("word borders (\"\\b\")");
        copy();
        if (!more()) return;
        copy_character();
        if ((next == 'p' || next == 'P' || next == 'x') && more() && in_[at_] == '{')
            while (more() && out_.back() != '}')
                copy();
    }

    void character_class() {
        copy();
        if (more() && in_[at_] == '^') copy();
        if (more() && in_[at_] == ']') copy();
        while (more() && in_[at_] != ']') {
            if (in_.compare(at_, 2, "&&") == 0) unsupported("intersections of character classes (\"&&\")");
            if (in_.compare(at_, 2, "[:") == 0) {
                const std::size_t end = in_.find(":]", at_);
                if (end == std::string::npos) unsupported("an unfinished \"[:\"");
                while (at_ < end + 2)
                    copy();
            } else if (in_[at_] == '[') {
                unsupported("a character class inside a character class");
            } else if (in_[at_] == '\\') {
                escape_in_class();
            } else {
                copy_character();
            }
        }
        if (more()) copy();
    }

    void escape_in_class() {
        const char next = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
        const std::string_view content = class_content(next);
        if (content.empty()) {
            copy();
            if (more()) copy_character();
            return;
        }
        if (next < 'a') unsupported(std::string("\"\\") + next + "\" inside a character class");
        out_ += content;
        at_ += 2;
    }

    void repeat() {
        const std::size_t end = in_.find('}', at_);
        const bool counts =
            end != std::string::npos && end > at_ + 1 && in_.find_first_not_of("0123456789,", at_ + 1) == end;
        if (!counts) {
            copy();
            return;
        }
        while (at_ <= end)
            copy();
        if (more() && in_[at_] == '+') {
            out_.insert(atom_, "(?:");
            out_ += ')';
        }
    }

    const std::string& in_;
    const std::string& label_;
    std::string out_;
    std::size_t at_ = 0;
    std::size_t atom_ = 0;             // where in out_ the last atom begins
    std::vector<std::size_t> groups_;  // where open groups begin
};

}  // namespace

std::string oniguruma_to_pcre2(const std::string& pattern, const std::string& label) {
    return Translator(pattern, label).run();
}

}  // namespace recto
