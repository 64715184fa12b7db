#include "engine/text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "engine/text/jinja_text.h"
#include "engine/text/jinja_unicode.h"
#include "kernels/error.h"

namespace recto::jinja {
namespace {

// One kind of line end, and no newline at the very end (keep_trailing_newline is off).
std::string normalize(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out += source[i];
            continue;
        }
        out += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

bool is_name_start(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(normalize(source)) {}

    std::vector<Token> run() {
        while (at_ < source_.size())
            lex_data();
        add(TokenKind::end, "");
        return std::move(tokens_);
    }

  private:
    std::string_view rest() const { return std::string_view(source_).substr(at_); }
    bool looking_at(std::string_view text) const { return rest().starts_with(text); }
    void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

    void advance(std::size_t count) {
        const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
        line_ += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(count), '\n'));
        at_ += count;
    }

    std::size_t space_after(std::size_t at) const {  // end of the white space that begins at `at`
        while (at < source_.size()) {
            const CodePoint point = code_point_at(source_, at);
            if (!is_space(point.value)) break;
            at += point.length;
        }
        return at;
    }

    void skip_space() { advance(space_after(at_) - at_); }

    // Template text up to the next tag; then the tag.
    void lex_data() {
        const std::size_t begin = at_;
        std::size_t tag = source_.find('{', begin);
        while (tag != std::string::npos && tag + 1 < source_.size() && source_[tag + 1] != '%' &&
               source_[tag + 1] != '{' && source_[tag + 1] != '#')
            tag = source_.find('{', tag + 1);
        if (tag == std::string::npos || tag + 1 >= source_.size()) {
            add(TokenKind::data, source_.substr(begin));
            advance(source_.size() - begin);
            return;
        }
        const char kind = source_[tag + 1];
        std::size_t after = tag + 2;
        char sign = 0;
        if (after < source_.size() && (source_[after] == '-' || source_[after] == '+'))
            sign = source_[after++];
        add_stripped(begin, tag, sign, kind != '{');
        advance(after - begin);
        if (kind == '#')
            lex_comment();
        else if (kind == '%' && begins_raw())
            lex_raw();
        else
            lex_code(kind == '{');
    }

    // Text [begin, end) before a tag: `-` strips all white space, and a block tag alone on its line takes the
    // blanks before it away, unless it says `+`.
    void add_stripped(std::size_t begin, std::size_t end, char sign, bool block) {
        std::string text = source_.substr(begin, end - begin);
        if (sign == '-') {
            const auto starts = code_point_starts(text);
            std::size_t keep = starts.size() - 1;
            while (keep > 0 && is_space(code_point_at(text, starts[keep - 1]).value))
                --keep;
            text.resize(starts[keep]);
        } else if (sign != '+' && block) {
            const std::size_t newline = text.rfind('\n');
            const std::size_t line_begin = newline == std::string::npos ? 0 : newline + 1;
            if ((line_begin > 0 || line_starting_) && line_begin < text.size()) {
                std::size_t i = line_begin;
                while (i < text.size()) {
                    const CodePoint point = code_point_at(text, i);
                    if (!is_space(point.value)) break;
                    i += point.length;
                }
                if (i == text.size()) text.resize(line_begin);
            }
        }
        if (!text.empty()) add(TokenKind::data, std::move(text));
    }

    // At "%}", "-%}", "+%}" or the comment's ends: goes behind it and what it swallows.
    bool take_end(std::string_view close, bool plus_allowed, bool trims_newline) {
        const std::size_t begin = at_;
        if (looking_at("-" + std::string(close))) {
            advance(close.size() + 1);
            skip_space();
        } else if (plus_allowed && looking_at("+" + std::string(close))) {
            advance(close.size() + 1);
        } else if (looking_at(close)) {
            advance(close.size());
            if (trims_newline && looking_at("\n")) advance(1);
        } else {
            return false;
        }
        line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
        return true;
    }

    void lex_comment() {
        const std::size_t close = source_.find("#}", at_);
        if (close == std::string::npos) fail_at(line_, "a comment {# is never closed");
        std::size_t begin = close;
        if (begin > at_ && (source_[begin - 1] == '-' || source_[begin - 1] == '+')) --begin;
        advance(begin - at_);
        take_end("#}", true, true);
    }

    bool begins_raw() const {
        std::size_t at = space_after(at_);
        if (!std::string_view(source_).substr(at).starts_with("raw")) return false;
        at = space_after(at + 3);
        const auto tail = std::string_view(source_).substr(at);
        return tail.starts_with("%}") || tail.starts_with("-%}");
    }

    void lex_raw() {
        skip_space();
        advance(3);
        skip_space();
        take_end("%}", false, false);
        const std::size_t begin = at_;
        for (std::size_t tag = source_.find("{%", begin); tag != std::string::npos;
             tag = source_.find("{%", tag + 1)) {
            std::size_t at = tag + 2;
            char sign = 0;
            if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) sign = source_[at++];
            at = space_after(at);
            if (!std::string_view(source_).substr(at).starts_with("endraw")) continue;
            at = space_after(at + 6);
            const auto tail = std::string_view(source_).substr(at);
            if (!tail.starts_with("%}") && !tail.starts_with("-%}") && !tail.starts_with("+%}")) continue;
            add_stripped(begin, tag, sign, true);
            advance(at - begin);
            take_end("%}", true, true);
            return;
        }
        fail_at(line_, "a raw block is never closed");
    }

    void lex_code(bool variable) {
        add(variable ? TokenKind::variable_begin : TokenKind::block_begin, "");
        const char* close = variable ? "}}" : "%}";
        std::vector<char> open;
        while (true) {
            if (at_ >= source_.size()) fail_at(line_, std::string("a tag is never closed with ") + close);
            if (open.empty()) {
                const int line = line_;
                if (take_end(close, !variable, !variable)) {
                    tokens_.push_back({variable ? TokenKind::variable_end : TokenKind::block_end, line, ""});
                    return;
                }
            }
            if (space_after(at_) > at_)
                skip_space();
            else if (is_digit(source_[at_]))
                lex_number();
            else if (is_name_start(source_[at_]))
                lex_name();
            else if (source_[at_] == '"' || source_[at_] == '\'')
                lex_string();
            else
                lex_operator(open);
        }
    }

    void lex_name() {
        std::size_t end = at_;
        while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end])))
            ++end;
        add(TokenKind::name, source_.substr(at_, end - at_));
        advance(end - at_);
    }

    // digits with single underscores between them
    std::size_t digits_after(std::size_t at) const {
        if (at >= source_.size() || !is_digit(source_[at])) return at;
        while (true) {
            while (at < source_.size() && is_digit(source_[at]))
                ++at;
            if (at + 1 < source_.size() && source_[at] == '_' && is_digit(source_[at + 1]))
                ++at;
            else
                return at;
        }
    }

    void add_number(TokenKind kind, std::size_t end) {
        std::string text = source_.substr(at_, end - at_);
        std::erase(text, '_');
        add(kind, std::move(text));
        advance(end - at_);
    }

    bool lex_real() {
        if (at_ > 0 && source_[at_ - 1] == '.') return false;
        const std::size_t whole = digits_after(at_);
        std::size_t end = whole;
        if (end < source_.size() && source_[end] == '.' && digits_after(end + 1) > end + 1)
            end = digits_after(end + 1);
        std::size_t exponent = end;
        if (exponent < source_.size() && (source_[exponent] == 'e' || source_[exponent] == 'E')) {
            ++exponent;
            if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-'))
                ++exponent;
            if (digits_after(exponent) > exponent) end = digits_after(exponent);
        }
        if (end == whole) return false;
        add_number(TokenKind::real, end);
        return true;
    }

    std::size_t based_digits_after(std::size_t at, int base) const {
        const auto valid = [&](std::size_t i) {
            if (i >= source_.size()) return false;
            const int c = std::tolower(static_cast<unsigned char>(source_[i]));
            const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
            return digit < base;
        };
        while (true) {
            if (valid(at))
                ++at;
            else if (at < source_.size() && source_[at] == '_' && valid(at + 1))
                at += 2;
            else
                return at;
        }
    }

    void lex_number() {
        if (lex_real()) return;
        if (source_[at_] == '0' && at_ + 1 < source_.size()) {
            const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(source_[at_ + 1])));
            const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
            if (base != 0 && based_digits_after(at_ + 2, base) > at_ + 2)
                return add_number(TokenKind::integer, based_digits_after(at_ + 2, base));
        }
        if (source_[at_] == '0') return add_number(TokenKind::integer, based_digits_after(at_, 1));
        add_number(TokenKind::integer, digits_after(at_));
    }

    void lex_string() {
        const char quote = source_[at_];
        std::size_t end = at_ + 1;
        while (end < source_.size() && source_[end] != quote)
            end += source_[end] == '\\' ? 2 : 1;
        if (end >= source_.size()) fail_at(line_, "a string is never closed");
        add(TokenKind::string, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
        advance(end + 1 - at_);
    }

    // Python's unicode-escape rules; an unknown escape stays as it is.
    std::string unescape(std::string_view body) const {
        std::string out;
        for (std::size_t i = 0; i < body.size(); ++i) {
            if (body[i] != '\\') {
                out += body[i];
                continue;
            }
            const char c = body[++i];  // the lexer saw a character behind every backslash
            static constexpr std::string_view from = "abfnrtv\\'\"", to = "\a\b\f\n\r\t\v\\'\"";
            const std::size_t simple = from.find(c);
            if (simple != std::string_view::npos)
                out += to[simple];
            else if (c == '\n')
                continue;
            else if (c == 'x' || c == 'u' || c == 'U')
                i += append_coded(out, body.substr(i + 1), c == 'x' ? 2 : c == 'u' ? 4 : 8);
            else if (c >= '0' && c <= '7')
                i += append_octal(out, body.substr(i)) - 1;
            else if (c == 'N')
                fail_at(line_, "character names in strings (\\N) are not supported");
            else
                out += {'\\', c};
        }
        return out;
    }

    std::size_t append_coded(std::string& out, std::string_view digits, std::size_t count) const {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (i >= digits.size() || std::isxdigit(static_cast<unsigned char>(digits[i])) == 0)
                fail_at(line_, "a string has an escape with too few hexadecimal digits");
            const int c = std::tolower(static_cast<unsigned char>(digits[i]));
            value = value * 16 + static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
            fail_at(line_, "a string has an escape that is no Unicode character");
        append_utf8(out, value);
        return count;
    }

    static std::size_t append_octal(std::string& out, std::string_view digits) {
        std::uint32_t value = 0;
        std::size_t count = 0;
        while (count < 3 && count < digits.size() && digits[count] >= '0' && digits[count] <= '7')
            value = value * 8 + static_cast<std::uint32_t>(digits[count++] - '0');
        append_utf8(out, value);
        return count;
    }

    void lex_operator(std::vector<char>& open) {
        static constexpr std::array<std::string_view, 26> operators = {
            "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
        const auto found =
            std::find_if(operators.begin(), operators.end(), [&](auto op) { return looking_at(op); });
        if (found == operators.end()) {
            const CodePoint point = code_point_at(source_, at_);
            fail_at(line_, "unexpected character '" + source_.substr(at_, point.length) + "'");
        }
        const char c = (*found)[0];
        if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
        if (c == ')' || c == ']' || c == '}') {
            if (open.empty() || open.back() != c) fail_at(line_, std::string("unexpected '") + c + "'");
            open.pop_back();
        }
        add(TokenKind::op, std::string(*found));
        advance(found->size());
    }

    std::string source_;
    std::size_t at_ = 0;
    int line_ = 1;
    bool line_starting_ = true;
    std::vector<Token> tokens_;
};

}  // namespace

void fail_at(int line, const std::string& what) {
    throw Error(ErrorKind::input, "Chat template, line " + std::to_string(line) + ": " + what);
}

std::vector<Token> tokenize(std::string_view source) {
    return Lexer(source).run();
}

}  // namespace recto::jinja
