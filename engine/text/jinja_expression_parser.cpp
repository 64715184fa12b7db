#include "engine/text/jinja_expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace recto::jinja {
namespace {

// Bound the recursion of parsing, evaluating and destroying. A chain of operators is deep without nesting.
constexpr int max_nesting = 120;
constexpr int max_depth = 400;

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : depth_(parser.nesting_) {
    if (++depth_ > max_nesting) {
        --depth_;
        parser.fail("nested too deep");
    }
}

ExprPtr ExpressionParser::make(ExprKind kind, int line, std::string text) const {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = line;
    expr->text = std::move(text);
    return expr;
}

void ExpressionParser::deepen(Expr& parent, const ExprPtr& child) const {
    if (!child) return;
    parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > max_depth) fail_at(parent.line, "an expression is nested too deep");
}

void ExpressionParser::adopt(ExprPtr& parent, ExprPtr child) const {
    deepen(*parent, child);
    parent->children.push_back(std::move(child));
}

ExprPtr ExpressionParser::make(ExprKind kind, int line, ExprPtr a, ExprPtr b) const {
    auto expr = make(kind, line);
    adopt(expr, std::move(a));
    adopt(expr, std::move(b));
    return expr;
}

ExprPtr ExpressionParser::make_constant(int line, Value value) const {
    auto expr = make(ExprKind::constant, line);
    expr->constant = std::move(value);
    return expr;
}

ExprPtr ExpressionParser::parse_tuple(bool with_condition) {
    const int line = current().line;
    auto first = with_condition ? parse_expression() : parse_or();
    if (!at_op(",")) return first;
    auto tuple = make(ExprKind::tuple, line);
    adopt(tuple, std::move(first));
    while (take_op(",")) {
        if (at(TokenKind::variable_end) || at(TokenKind::block_end) || at_op(")") || at_name("recursive"))
            break;
        adopt(tuple, with_condition ? parse_expression() : parse_or());
    }
    return tuple;
}

ExprPtr ExpressionParser::parse_expression() {
    const Nesting nesting(*this);
    auto expr = parse_or();
    while (at_name("if")) {
        const int line = current().line;
        skip();
        auto test = parse_or();
        auto condition = make(ExprKind::condition, line, std::move(test), std::move(expr));
        if (take_name("else")) adopt(condition, parse_expression());
        expr = std::move(condition);
    }
    return expr;
}

ExprPtr ExpressionParser::parse_or() {
    auto left = parse_and();
    while (at_name("or")) {
        const int line = current().line;
        skip();
        left = make(ExprKind::logical_or, line, std::move(left), parse_and());
    }
    return left;
}

ExprPtr ExpressionParser::parse_and() {
    auto left = parse_not();
    while (at_name("and")) {
        const int line = current().line;
        skip();
        left = make(ExprKind::logical_and, line, std::move(left), parse_not());
    }
    return left;
}

ExprPtr ExpressionParser::parse_not() {
    if (!at_name("not")) return parse_compare();
    const Nesting nesting(*this);
    auto expr = make(ExprKind::logical_not, current().line);
    skip();
    adopt(expr, parse_not());
    return expr;
}

std::string ExpressionParser::take_comparison() {
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
        if (take_op(op)) return std::string(op);
    if (take_name("in")) return "in";
    if (at_name("not") && ahead().kind == TokenKind::name && ahead().text == "in") {
        skip();
        skip();
        return "not in";
    }
    return "";
}

ExprPtr ExpressionParser::parse_compare() {
    const int line = current().line;
    auto left = parse_sum();
    std::string op = take_comparison();
    if (op.empty()) return left;
    auto compare = make(ExprKind::compare, line);
    adopt(compare, std::move(left));
    for (; !op.empty(); op = take_comparison()) {
        compare->ops.push_back(op);
        adopt(compare, parse_sum());
    }
    return compare;
}

template <class Next>
ExprPtr ExpressionParser::parse_binary(std::initializer_list<std::string_view> ops, Next next) {
    auto left = next();
    while (at(TokenKind::op) && std::find(ops.begin(), ops.end(), current().text) != ops.end()) {
        const int line = current().line;
        std::string op = current().text;
        skip();
        left = make(ExprKind::binary, line, std::move(left), next());
        left->ops.push_back(std::move(op));
    }
    return left;
}

ExprPtr ExpressionParser::parse_sum() {
    return parse_binary({"+", "-"}, [this] { return parse_concat(); });
}

ExprPtr ExpressionParser::parse_concat() {
    const int line = current().line;
    auto first = parse_product();
    if (!at_op("~")) return first;
    auto concat = make(ExprKind::concat, line);
    adopt(concat, std::move(first));
    while (take_op("~"))
        adopt(concat, parse_product());
    return concat;
}

ExprPtr ExpressionParser::parse_product() {
    return parse_binary({"*", "/", "//", "%"},
                        [this] { return parse_binary({"**"}, [this] { return parse_unary(true); }); });
}

ExprPtr ExpressionParser::parse_unary(bool with_filter) {
    const Nesting nesting(*this);
    const int line = current().line;
    ExprPtr expr;
    if (at_op("-") || at_op("+")) {
        expr = make(at_op("-") ? ExprKind::negate : ExprKind::plus, line);
        skip();
        adopt(expr, parse_unary(false));
    } else {
        expr = parse_primary();
    }
    expr = parse_postfix(std::move(expr));
    return with_filter ? parse_filter_or_test(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::parse_primary() {
    const Token token = current();
    switch (token.kind) {
        case TokenKind::name:
            return parse_name();
        case TokenKind::string: {
            std::string text;
            for (; at(TokenKind::string); skip())
                text += current().text;
            return make_constant(token.line, Value::literal(text));
        }
        case TokenKind::integer:
            skip();
            return make_constant(token.line, parse_integer(token));
        case TokenKind::real:
            skip();
            return make_constant(token.line, Value::from(std::strtod(token.text.c_str(), nullptr)));
        default:
            break;
    }
    if (at_op("(")) return parse_parentheses();
    if (at_op("[")) return parse_list();
    if (at_op("{")) return parse_dict();
    fail("expected an expression" + describe_found());
}

ExprPtr ExpressionParser::parse_name() {
    const int line = current().line;
    const std::string name = current().text;
    skip();
    if (name == "true" || name == "True") return make_constant(line, Value::from(true));
    if (name == "false" || name == "False") return make_constant(line, Value::from(false));
    if (name == "none" || name == "None") return make_constant(line, Value::none());
    for (MacroUse& use : macro_uses_) {
        use.caller |= name == "caller";
        use.varargs |= name == "varargs";
        use.kwargs |= name == "kwargs";
    }
    return make(ExprKind::name, line, name);
}

Value ExpressionParser::parse_integer(const Token& token) const {
    std::string_view digits = token.text;
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0') {
        const char letter = static_cast<char>(digits[1] | 0x20);
        base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
        if (base != 10) digits.remove_prefix(2);
    }
    std::int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (result.ec != std::errc()) fail_at(token.line, "the number " + token.text + " does not fit 64 bits");
    return Value::from(value);
}

ExprPtr ExpressionParser::parse_parentheses() {
    const int line = current().line;
    expect_op("(");
    if (take_op(")")) return make(ExprKind::tuple, line);
    auto inner = parse_tuple(true);
    expect_op(")");
    return inner;
}

ExprPtr ExpressionParser::parse_list() {
    auto list = make(ExprKind::list, current().line);
    expect_op("[");
    while (!at_op("]")) {
        if (!list->children.empty()) expect_op(",");
        if (at_op("]")) break;
        adopt(list, parse_expression());
    }
    expect_op("]");
    return list;
}

ExprPtr ExpressionParser::parse_dict() {
    auto dict = make(ExprKind::dict, current().line);
    expect_op("{");
    while (!at_op("}")) {
        if (!dict->children.empty()) expect_op(",");
        if (at_op("}")) break;
        adopt(dict, parse_expression());
        expect_op(":");
        adopt(dict, parse_expression());
    }
    expect_op("}");
    return dict;
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr expr) {
    while (true) {
        if (at_op("."))
            expr = parse_dot(std::move(expr));
        else if (at_op("["))
            expr = parse_subscript(std::move(expr));
        else if (at_op("("))
            expr = parse_call(std::move(expr));
        else
            return expr;
    }
}

ExprPtr ExpressionParser::parse_dot(ExprPtr object) {
    const int line = current().line;
    expect_op(".");
    if (at(TokenKind::integer)) {
        auto index = make_constant(line, parse_integer(current()));
        skip();
        return make(ExprKind::item, line, std::move(object), std::move(index));
    }
    auto attribute = make(ExprKind::attribute, line, expect_name("an attribute"));
    adopt(attribute, std::move(object));
    return attribute;
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
    const int line = current().line;
    expect_op("[");
    ExprPtr first;
    if (!at_op(":")) {
        first = parse_expression();
        if (at_op(",")) fail("subscripts with commas are not supported");
    }
    if (take_op("]")) return make(ExprKind::item, line, std::move(object), std::move(first));
    auto slice = make(ExprKind::slice, line, std::move(object), std::move(first));
    expect_op(":");
    adopt(slice, at_op(":") || at_op("]") ? nullptr : parse_expression());
    const bool has_step = take_op(":");
    adopt(slice, has_step && !at_op("]") ? parse_expression() : nullptr);
    expect_op("]");
    return slice;
}

ExprPtr ExpressionParser::parse_call(ExprPtr function) {
    auto call = make(ExprKind::call, current().line);
    adopt(call, std::move(function));
    parse_arguments(*call);
    return call;
}

void ExpressionParser::parse_arguments(Expr& owner) {
    Arguments& arguments = owner.arguments;
    expect_op("(");
    bool first = true;
    while (!at_op(")")) {
        if (!first) {
            expect_op(",");
            if (at_op(")")) break;
        }
        first = false;
        parse_argument(owner, arguments);
    }
    expect_op(")");
}

void ExpressionParser::parse_argument(Expr& owner, Arguments& arguments) {
    if (take_op("*")) {
        if (arguments.star || arguments.star_star) fail("misplaced '*' in a call");
        arguments.star = parse_expression();
        deepen(owner, arguments.star);
    } else if (take_op("**")) {
        if (arguments.star_star) fail("misplaced '**' in a call");
        arguments.star_star = parse_expression();
        deepen(owner, arguments.star_star);
    } else if (at(TokenKind::name) && ahead().kind == TokenKind::op && ahead().text == "=") {
        if (arguments.star_star) fail("a named argument follows '**'");
        std::string name = current().text;
        skip();
        skip();
        for (const auto& [other, value] : arguments.named)
            if (other == name) fail("the argument '" + name + "' is repeated");
        arguments.named.emplace_back(std::move(name), parse_expression());
        deepen(owner, arguments.named.back().second);
    } else {
        if (arguments.star || arguments.star_star || !arguments.named.empty())
            fail("a positional argument follows a named one");
        arguments.positional.push_back(parse_expression());
        deepen(owner, arguments.positional.back());
    }
}

ExprPtr ExpressionParser::parse_filter_or_test(ExprPtr expr) {
    while (true) {
        if (at_op("|"))
            expr = parse_filters(std::move(expr));
        else if (at_name("is"))
            expr = parse_test(std::move(expr));
        else if (at_op("("))
            expr = parse_call(std::move(expr));
        else
            return expr;
    }
}

std::string ExpressionParser::parse_dotted_name(const char* what) {
    std::string name = expect_name(what);
    while (take_op("."))
        name += "." + expect_name(what);
    return name;
}

ExprPtr ExpressionParser::parse_filters(ExprPtr expr, bool bare) {
    while (bare || at_op("|")) {
        if (!bare) skip();
        bare = false;
        const int line = current().line;
        auto filter = make(ExprKind::filter, line, parse_dotted_name("a filter's name"));
        adopt(filter, std::move(expr));
        if (at_op("(")) parse_arguments(*filter);
        expr = std::move(filter);
    }
    return expr;
}

bool ExpressionParser::at_test_argument() const {
    switch (current().kind) {
        case TokenKind::name:
            return !at_name("else") && !at_name("or") && !at_name("and");
        case TokenKind::string:
        case TokenKind::integer:
        case TokenKind::real:
            return true;
        default:
            return at_op("[") || at_op("{");
    }
}

ExprPtr ExpressionParser::parse_test(ExprPtr expr) {
    const int line = current().line;
    skip();
    const bool negated = take_name("not");
    auto test = make(ExprKind::test, line, parse_dotted_name("a test's name"));
    adopt(test, std::move(expr));
    if (at_op("(")) {
        parse_arguments(*test);
    } else if (at_test_argument()) {
        if (at_name("is")) fail("tests cannot be chained with 'is'");
        test->arguments.positional.push_back(parse_postfix(parse_primary()));
        deepen(*test, test->arguments.positional.back());
    }
    if (!negated) return test;
    auto inverse = make(ExprKind::logical_not, line);
    adopt(inverse, std::move(test));
    return inverse;
}

}  // namespace recto::jinja
