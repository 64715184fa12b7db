// Tokens → the syntax trees of expressions, with jinja2's grammar and precedence. The parser of statements
// (jinja_parser.cpp) builds on it.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja_ast.h"
#include "engine/text/jinja_token_reader.h"

namespace recto::jinja {

class ExpressionParser : protected TokenReader {
  protected:
    using TokenReader::TokenReader;

    // What a macro body mentions decides what it accepts.
    struct MacroUse {
        bool caller = false, varargs = false, kwargs = false;
    };
    std::vector<MacroUse> macro_uses_;  // of the macros around the current token

    // One a level of nesting, while that is parsed; refuses the one that is too deep.
    class Nesting {
      public:
        explicit Nesting(ExpressionParser& parser);
        ~Nesting() { --depth_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

      private:
        int& depth_;
    };

    ExprPtr parse_tuple(bool with_condition);
    ExprPtr parse_expression();
    // "|a(…)|b …" applied to `expr`; with `bare`, the first has no bar.
    ExprPtr parse_filters(ExprPtr expr, bool bare = false);

    ExprPtr make(ExprKind kind, int line, std::string text = "") const;
    void deepen(Expr& parent, const ExprPtr& child) const;
    void adopt(ExprPtr& parent, ExprPtr child) const;
    ExprPtr make(ExprKind kind, int line, ExprPtr a, ExprPtr b) const;
    ExprPtr make_constant(int line, Value value) const;

  private:
    ExprPtr parse_or();
    ExprPtr parse_and();
    ExprPtr parse_not();
    std::string take_comparison();
    ExprPtr parse_compare();
    template <class Next>
    ExprPtr parse_binary(std::initializer_list<std::string_view> ops, Next next);
    ExprPtr parse_sum();
    ExprPtr parse_concat();
    ExprPtr parse_product();
    ExprPtr parse_unary(bool with_filter);
    ExprPtr parse_primary();
    ExprPtr parse_name();
    Value parse_integer(const Token& token) const;
    ExprPtr parse_parentheses();
    ExprPtr parse_list();
    ExprPtr parse_dict();
    ExprPtr parse_postfix(ExprPtr expr);
    ExprPtr parse_dot(ExprPtr object);
    ExprPtr parse_subscript(ExprPtr object);
    ExprPtr parse_call(ExprPtr function);
    void parse_arguments(Expr& owner);
    void parse_argument(Expr& owner, Arguments& arguments);
    ExprPtr parse_filter_or_test(ExprPtr expr);
    std::string parse_dotted_name(const char* what);
    bool at_test_argument() const;
    ExprPtr parse_test(ExprPtr expr);

    int nesting_ = 0;
};

}  // namespace recto::jinja
