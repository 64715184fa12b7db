// The syntax tree of a template.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/jinja_value.h"

namespace recto::jinja {

enum class ExprKind : std::uint8_t {
    constant,
    name,
    list,
    tuple,
    dict,  // children: key, value, key, value …
    negate,
    plus,
    logical_not,
    logical_and,
    logical_or,
    binary,  // ops[0]
    concat,
    compare,    // children[0] ops[0] children[1] ops[1] …
    condition,  // children: test, then[, otherwise]
    attribute,  // children[0].text
    item,       // children[0][children[1]]
    slice,      // children[0][1:2:3]; absent bounds are null
    call,       // children[0](arguments)
    filter,     // children[0]|text(arguments); children[0] is null in filter blocks
    test,       // children[0] is text(arguments)
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Arguments {
    std::vector<ExprPtr> positional;
    std::vector<std::pair<std::string, ExprPtr>> named;
    ExprPtr star, star_star;
};

struct Expr {
    ExprKind kind;
    int line = 0;
    int depth = 1;
    std::string text;
    Value constant;
    std::vector<ExprPtr> children;
    std::vector<std::string> ops;
    Arguments arguments;
};

enum class StmtKind : std::uint8_t {
    data,
    output,
    print,      // parts, one after the other
    loop,       // for target in expr[ if condition] body else otherwise
    branch,     // branches, then otherwise
    set,        // target = expr
    set_block,  // target[ | expr] = body
    macro,
    call_block,    // expr is the call; macro holds the body
    filter_block,  // expr is a filter chain over the body
    with,          // assignments, body
    generation,    // body, in a scope of its own
    break_loop,
    continue_loop,
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct MacroDefinition {
    std::string name;
    std::vector<std::string> parameters;
    std::vector<ExprPtr> defaults;  // of the last parameters
    Body body;
    bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Stmt {
    StmtKind kind;
    int line = 0;
    std::string text;
    ExprPtr target, expr, condition;
    bool recursive = false;
    Body body, otherwise;
    std::vector<ExprPtr> parts;
    std::vector<std::pair<ExprPtr, Body>> branches;
    std::vector<std::pair<ExprPtr, ExprPtr>> assignments;
    MacroDefinition macro;
};

}  // namespace recto::jinja
