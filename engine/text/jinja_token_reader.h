// Walks a template's tokens: what both halves of the parser, expressions and statements, read them by.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja_lexer.h"

namespace recto::jinja {

class TokenReader {
  protected:
    explicit TokenReader(std::string_view source) : tokens_(tokenize(source)) {}

    const Token& current() const { return tokens_[next_]; }
    const Token& ahead() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
    bool at(TokenKind kind) const { return current().kind == kind; }
    bool at_op(std::string_view op) const { return at(TokenKind::op) && current().text == op; }
    bool at_name(std::string_view name) const { return at(TokenKind::name) && current().text == name; }
    void skip() {
        if (next_ + 1 < tokens_.size()) ++next_;
    }

    bool take_op(std::string_view op) {
        if (!at_op(op)) return false;
        skip();
        return true;
    }

    bool take_name(std::string_view name) {
        if (!at_name(name)) return false;
        skip();
        return true;
    }

    [[noreturn]] void fail(const std::string& what) const { fail_at(current().line, what); }

    void expect(TokenKind kind, const char* what) {
        if (!at(kind)) fail(std::string("expected ") + what + describe_found());
        skip();
    }

    void expect_op(std::string_view op) {
        if (!take_op(op)) fail("expected '" + std::string(op) + "'" + describe_found());
    }

    std::string expect_name(const char* what) {
        if (!at(TokenKind::name)) fail(std::string("expected ") + what + describe_found());
        std::string name = current().text;
        skip();
        return name;
    }

    std::string describe_found() const {
        switch (current().kind) {
            case TokenKind::end:
                return ", found the end of the template";
            case TokenKind::block_end:
                return ", found the end of the tag";
            case TokenKind::variable_end:
                return ", found '}}'";
            default:
                return ", found '" + current().text + "'";
        }
    }

  private:
    std::vector<Token> tokens_;
    std::size_t next_ = 0;
};

}  // namespace recto::jinja
