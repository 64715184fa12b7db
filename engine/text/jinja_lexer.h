// Cuts a template into tokens, with jinja2's white-space rules under trim_blocks and lstrip_blocks.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace recto::jinja {

enum class TokenKind : unsigned char {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,   // text is unescaped
    integer,  // text is decimal, hexadecimal (0x), octal (0o) or binary (0b), without underscores
    real,
    op,
    end,
};

struct Token {
    TokenKind kind;
    int line;
    std::string text;
};

// Error(input) with the line for what is no template.
std::vector<Token> tokenize(std::string_view source);

// Error(input): "Chat template, line N: what".
[[noreturn]] void fail_at(int line, const std::string& what);

}  // namespace recto::jinja
