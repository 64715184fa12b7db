// Statements; their expressions are ExpressionParser's.
#include "engine/text/jinja_parser.h"

#include <algorithm>
#include <initializer_list>

#include "engine/text/jinja_expression_parser.h"

namespace recto::jinja {
namespace {

class Parser : ExpressionParser {
  public:
    explicit Parser(std::string_view source) : ExpressionParser(source) {}

    Body run() {
        Body body = parse_body({});
        if (!at(TokenKind::end)) fail("unexpected '" + current().text + "'");
        return body;
    }

  private:
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

    int loops_ = 0;
};

}  // namespace

Body parse(std::string_view source) {
    return Parser(source).run();
}

}  // namespace recto::jinja
