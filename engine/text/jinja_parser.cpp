#include "engine/text/jinja_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "engine/text/jinja_lexer.h"

namespace recto::jinja {
namespace {

// Bounds the recursion of parsing, evaluating and destroying.
constexpr int max_nesting = 120;
constexpr int max_depth = 400;

class Parser {
  public:
    explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

    Body run() {
        Body body = parse_body({});
        if (!at(TokenKind::end)) fail("unexpected '" + current().text + "'");
        return body;
    }

  private:
    // What a macro body mentions decides what it accepts.
    struct MacroUse {
        bool caller = false, varargs = false, kwargs = false;
    };

    class Nesting {
      public:
        explicit Nesting(Parser& parser) : depth_(parser.nesting_) {
            if (++depth_ > max_nesting) {
                --depth_;
                parser.fail("nested too deep");
            }
        }
        ~Nesting() { --depth_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

      private:
        int& depth_;
    };

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

    ExprPtr make(ExprKind kind, int line, std::string text = "") const {
        auto expr = std::make_unique<Expr>();
        expr->kind = kind;
        expr->line = line;
        expr->text = std::move(text);
        return expr;
    }

    void deepen(Expr& parent, const ExprPtr& child) const {
        if (!child) return;
        parent.depth = std::max(parent.depth, child->depth + 1);
        if (parent.depth > max_depth) fail_at(parent.line, "an expression is nested too deep");
    }

    void adopt(ExprPtr& parent, ExprPtr child) const {
        deepen(*parent, child);
        parent->children.push_back(std::move(child));
    }

    ExprPtr make(ExprKind kind, int line, ExprPtr a, ExprPtr b) const {
        auto expr = make(kind, line);
        adopt(expr, std::move(a));
        adopt(expr, std::move(b));
        return expr;
    }

    ExprPtr make_constant(int line, Value value) const {
        auto expr = make(ExprKind::constant, line);
        expr->constant = std::move(value);
        return expr;
    }

    // ---- statements ----

    // Up to a block tag that begins with one of `ends` (left as the current token), or the end of the
    // template.
    Body parse_body(std::initializer_list<std::string_view> ends) {
        const Nesting nesting(*this);
        Body body;
        while (!at(TokenKind::end)) {
            const int line = current().line;
            if (at(TokenKind::data)) {
                body.push_back(make_stmt(StmtKind::data, line));
                body.back()->text = current().text;
                skip();
            } else if (at(TokenKind::variable_begin)) {
                skip();
                body.push_back(make_stmt(StmtKind::output, line));
                body.back()->expr = parse_tuple(true);
                expect(TokenKind::variable_end, "'}}'");
            } else {
                expect(TokenKind::block_begin, "a tag");
                if (at(TokenKind::name) && std::find(ends.begin(), ends.end(), current().text) != ends.end())
                    return body;
                body.push_back(parse_statement());
                expect(TokenKind::block_end, "the end of the tag");
            }
        }
        if (ends.size() > 0)
            fail("expected {% " + std::string(*(ends.end() - 1)) + " %}, found the end of the template");
        return body;
    }

    // The body behind the current tag, and its end tag's name.
    Body parse_inner(std::initializer_list<std::string_view> ends) {
        expect(TokenKind::block_end, "the end of the tag");
        return parse_body(ends);
    }

    static StmtPtr make_stmt(StmtKind kind, int line) {
        auto stmt = std::make_unique<Stmt>();
        stmt->kind = kind;
        stmt->line = line;
        return stmt;
    }

    StmtPtr parse_statement() {
        const int line = current().line;
        const std::string name = expect_name("the name of a statement");
        if (name == "for") return parse_for(line);
        if (name == "if") return parse_if(line);
        if (name == "set") return parse_set(line);
        if (name == "macro") return parse_macro(line);
        if (name == "call") return parse_call_block(line);
        if (name == "filter") return parse_filter_block(line);
        if (name == "with") return parse_with(line);
        if (name == "print") {
            auto stmt = make_stmt(StmtKind::print, line);
            for (bool first = true; !at(TokenKind::block_end); first = false) {
                if (!first) expect_op(",");
                stmt->parts.push_back(parse_expression());
            }
            return stmt;
        }
        if (name == "generation") {
            auto stmt = make_stmt(StmtKind::generation, line);
            stmt->body = parse_outside_loops({"endgeneration"});
            return stmt;
        }
        if (name == "break" || name == "continue") {
            if (loops_ == 0) fail_at(line, "{% " + name + " %} outside of a loop");
            return make_stmt(name == "break" ? StmtKind::break_loop : StmtKind::continue_loop, line);
        }
        fail_at(line, "the statement '" + name + "' is not supported");
    }

    // break and continue do not reach out of blocks that collect their text.
    Body parse_outside_loops(std::initializer_list<std::string_view> ends) {
        const int loops = std::exchange(loops_, 0);
        Body body = parse_inner(ends);
        loops_ = loops;
        skip();
        return body;
    }

    StmtPtr parse_for(int line) {
        auto stmt = make_stmt(StmtKind::loop, line);
        stmt->target = parse_target(true, false);
        if (!take_name("in")) fail("expected 'in'" + describe_found());
        stmt->expr = parse_tuple(false);
        if (take_name("if")) stmt->condition = parse_expression();
        stmt->recursive = take_name("recursive");
        ++loops_;
        stmt->body = parse_inner({"else", "endfor"});
        --loops_;
        if (take_name("else")) stmt->otherwise = parse_inner({"endfor"});
        skip();
        return stmt;
    }

    StmtPtr parse_if(int line) {
        auto stmt = make_stmt(StmtKind::branch, line);
        while (true) {
            auto test = parse_tuple(false);
            auto body = parse_inner({"elif", "else", "endif"});
            stmt->branches.emplace_back(std::move(test), std::move(body));
            if (take_name("elif")) continue;
            if (take_name("else")) stmt->otherwise = parse_inner({"endif"});
            skip();
            return stmt;
        }
    }

    StmtPtr parse_set(int line) {
        auto stmt = make_stmt(StmtKind::set, line);
        stmt->target = parse_target(true, true);
        if (take_op("=")) {
            stmt->expr = parse_tuple(true);
            return stmt;
        }
        stmt->kind = StmtKind::set_block;
        if (at_op("|")) stmt->expr = parse_filters(nullptr);
        stmt->body = parse_outside_loops({"endset"});
        return stmt;
    }

    void parse_macro_body(MacroDefinition& macro, std::string_view end) {
        macro_uses_.emplace_back();
        macro.body = parse_outside_loops({end});
        const MacroUse use = macro_uses_.back();
        macro_uses_.pop_back();
        macro.uses_caller = use.caller;
        macro.uses_varargs = use.varargs;
        macro.uses_kwargs = use.kwargs;
    }

    StmtPtr parse_macro(int line) {
        auto stmt = make_stmt(StmtKind::macro, line);
        stmt->macro.name = expect_name("the macro's name");
        parse_signature(stmt->macro);
        parse_macro_body(stmt->macro, "endmacro");
        return stmt;
    }

    StmtPtr parse_call_block(int line) {
        auto stmt = make_stmt(StmtKind::call_block, line);
        stmt->macro.name = "caller";
        if (at_op("(")) parse_signature(stmt->macro);
        stmt->expr = parse_expression();
        if (stmt->expr->kind != ExprKind::call) fail_at(line, "expected a call");
        parse_macro_body(stmt->macro, "endcall");
        return stmt;
    }

    void parse_signature(MacroDefinition& macro) {
        expect_op("(");
        while (!at_op(")")) {
            if (!macro.parameters.empty()) expect_op(",");
            macro.parameters.push_back(expect_name("a parameter"));
            if (take_op("="))
                macro.defaults.push_back(parse_expression());
            else if (!macro.defaults.empty())
                fail("a parameter without a default follows one with a default");
        }
        expect_op(")");
    }

    StmtPtr parse_filter_block(int line) {
        auto stmt = make_stmt(StmtKind::filter_block, line);
        stmt->expr = parse_filters(nullptr, true);
        stmt->body = parse_outside_loops({"endfilter"});
        return stmt;
    }

    StmtPtr parse_with(int line) {
        auto stmt = make_stmt(StmtKind::with, line);
        while (!at(TokenKind::block_end)) {
            if (!stmt->assignments.empty()) expect_op(",");
            auto target = parse_target(false, false);
            expect_op("=");
            stmt->assignments.emplace_back(std::move(target), parse_expression());
        }
        stmt->body = parse_inner({"endwith"});
        skip();
        return stmt;
    }

    // A name, a namespace's attribute, or a tuple of targets.
    ExprPtr parse_target(bool with_tuple, bool with_namespace) {
        const int line = current().line;
        auto first = parse_single_target(with_namespace);
        if (!with_tuple || !at_op(",")) return first;
        auto tuple = make(ExprKind::tuple, line);
        adopt(tuple, std::move(first));
        while (take_op(",")) {
            if (at_name("in") || at_op(")") || at(TokenKind::block_end)) break;
            adopt(tuple, parse_single_target(with_namespace));
        }
        return tuple;
    }

    ExprPtr parse_single_target(bool with_namespace) {
        const Nesting nesting(*this);
        const int line = current().line;
        if (take_op("(")) {
            auto inner = parse_target(true, false);
            expect_op(")");
            return inner;
        }
        std::string name = expect_name("a name to assign to");
        static constexpr std::string_view reserved[] = {"true", "false", "none", "True", "False", "None"};
        if (std::find(std::begin(reserved), std::end(reserved), name) != std::end(reserved))
            fail_at(line, "cannot assign to '" + name + "'");
        auto target = make(ExprKind::name, line, name);
        if (!with_namespace || !take_op(".")) return target;
        auto attribute = make(ExprKind::attribute, line, expect_name("an attribute"));
        adopt(attribute, std::move(target));
        return attribute;
    }

    // ---- expressions ----

    ExprPtr parse_tuple(bool with_condition) {
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

    ExprPtr parse_expression() {
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

    ExprPtr parse_or() {
        auto left = parse_and();
        while (at_name("or")) {
            const int line = current().line;
            skip();
            left = make(ExprKind::logical_or, line, std::move(left), parse_and());
        }
        return left;
    }

    ExprPtr parse_and() {
        auto left = parse_not();
        while (at_name("and")) {
            const int line = current().line;
            skip();
            left = make(ExprKind::logical_and, line, std::move(left), parse_not());
        }
        return left;
    }

    ExprPtr parse_not() {
        if (!at_name("not")) return parse_compare();
        const Nesting nesting(*this);
        auto expr = make(ExprKind::logical_not, current().line);
        skip();
        adopt(expr, parse_not());
        return expr;
    }

    std::string take_comparison() {
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

    ExprPtr parse_compare() {
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
    ExprPtr parse_binary(std::initializer_list<std::string_view> ops, Next next) {
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

    ExprPtr parse_sum() {
        return parse_binary({"+", "-"}, [this] { return parse_concat(); });
    }

    ExprPtr parse_concat() {
        const int line = current().line;
        auto first = parse_product();
        if (!at_op("~")) return first;
        auto concat = make(ExprKind::concat, line);
        adopt(concat, std::move(first));
        while (take_op("~"))
            adopt(concat, parse_product());
        return concat;
    }

    ExprPtr parse_product() {
        return parse_binary({"*", "/", "//", "%"},
                            [this] { return parse_binary({"**"}, [this] { return parse_unary(true); }); });
    }

    ExprPtr parse_unary(bool with_filter) {
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

    ExprPtr parse_primary() {
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

    ExprPtr parse_name() {
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

    Value parse_integer(const Token& token) const {
        std::string_view digits = token.text;
        int base = 10;
        if (digits.size() > 2 && digits[0] == '0') {
            const char letter = static_cast<char>(digits[1] | 0x20);
            base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
            if (base != 10) digits.remove_prefix(2);
        }
        std::int64_t value = 0;
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
        if (result.ec != std::errc())
            fail_at(token.line, "the number " + token.text + " does not fit 64 bits");
        return Value::from(value);
    }

    ExprPtr parse_parentheses() {
        const int line = current().line;
        expect_op("(");
        if (take_op(")")) return make(ExprKind::tuple, line);
        auto inner = parse_tuple(true);
        expect_op(")");
        return inner;
    }

    ExprPtr parse_list() {
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

    ExprPtr parse_dict() {
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

    ExprPtr parse_postfix(ExprPtr expr) {
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

    ExprPtr parse_dot(ExprPtr object) {
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

    ExprPtr parse_subscript(ExprPtr object) {
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

    ExprPtr parse_call(ExprPtr function) {
        auto call = make(ExprKind::call, current().line);
        adopt(call, std::move(function));
        parse_arguments(*call);
        return call;
    }

    void parse_arguments(Expr& owner) {
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

    void parse_argument(Expr& owner, Arguments& arguments) {
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

    ExprPtr parse_filter_or_test(ExprPtr expr) {
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

    std::string parse_dotted_name(const char* what) {
        std::string name = expect_name(what);
        while (take_op("."))
            name += "." + expect_name(what);
        return name;
    }

    // "|a(…)|b …" applied to `expr`; with `bare`, the first has no bar.
    ExprPtr parse_filters(ExprPtr expr, bool bare = false) {
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

    bool at_test_argument() const {
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

    ExprPtr parse_test(ExprPtr expr) {
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

    std::vector<Token> tokens_;
    std::size_t next_ = 0;
    int nesting_ = 0;
    int loops_ = 0;
    std::vector<MacroUse> macro_uses_;
};

}  // namespace

Body parse(std::string_view source) {
    return Parser(source).run();
}

}  // namespace recto::jinja
