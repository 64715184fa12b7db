// Statements: what a template does, scope by scope.
#include <algorithm>
#include <cassert>

#include "engine/text/jinja_lexer.h"
#include "engine/text/jinja_machine.h"

namespace recto::jinja {

const Value* Scope::find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get())
        for (const auto& [other, value] : scope->variables)
            if (other == name) return &value;
    return nullptr;
}

void Scope::set(const std::string& name, Value value) {
    for (auto& [other, old] : variables)
        if (other == name) {
            old = std::move(value);
            return;
        }
    variables.emplace_back(name, std::move(value));
}

namespace {

std::shared_ptr<Scope> inner(const std::shared_ptr<Scope>& scope) {
    auto made = std::make_shared<Scope>();
    made->parent = scope;
    return made;
}

}  // namespace

Text Machine::render(const Body& body, std::vector<std::pair<std::string, Value>> globals) {
    const CountedWork counted(work_);
    auto outermost = std::make_shared<Scope>();
    outermost->variables = std::move(globals);
    Text out;
    out_ = &out;
    try {
        run_body(body, inner(outermost));
    } catch (const Fault& fault) {
        fail_at(line_, fault.what());
    }
    return out;
}

void Machine::charge_text(std::size_t bytes) {
    if (bytes > max_text_bytes)
        throw Fault("a text grows beyond " + std::to_string(max_text_bytes >> 20) + " MiB");
    charge(static_cast<std::int64_t>(bytes / 16) + 1);
}

Values Machine::items_of(const Value& value) {
    // A character of a text becomes a value of its own, a hundred times as large: counted before it is made.
    if (value.is(Kind::string)) charge(static_cast<std::int64_t>(value.bytes().size()) * 32);
    Values items = iterate(value);
    charge(static_cast<std::int64_t>(items.size()));
    return items;
}

Namespace* Machine::make_namespace() {
    charge(4);
    namespaces_.push_back(std::make_unique<Namespace>());
    return namespaces_.back().get();
}

void Machine::write(const Text& text) {
    charge_text(text.size());
    if (out_->size() + text.size() > max_text_bytes) charge_text(out_->size() + text.size());
    out_->append(text);
}

Text Machine::capture(const Body& body, const ScopePtr& scope) {
    Text captured;
    Text* const outer = std::exchange(out_, &captured);
    try {
        run_body(body, scope);
    } catch (...) {
        out_ = outer;
        throw;
    }
    out_ = outer;
    return captured;
}

Machine::Flow Machine::run_body(const Body& body, const ScopePtr& scope) {
    for (const StmtPtr& stmt : body)
        if (const Flow flow = run(*stmt, scope); flow != Flow::normal) return flow;
    return Flow::normal;
}

Machine::Flow Machine::run(const Stmt& stmt, const ScopePtr& scope) {
    const Depth depth(*this);
    charge(1);
    line_ = stmt.line;
    switch (stmt.kind) {
        case StmtKind::data:
            write(Text(stmt.text, false));
            break;
        case StmtKind::output:
            write(to_text(eval(*stmt.expr, scope)));
            break;
        case StmtKind::print:
            for (const ExprPtr& part : stmt.parts)
                write(to_text(eval(*part, scope)));
            break;
        case StmtKind::branch:
            return run_branch(stmt, scope);
        case StmtKind::loop:
            run_loop(stmt, eval(*stmt.expr, scope), scope, 0);
            break;
        case StmtKind::set:
            assign(*stmt.target, eval(*stmt.expr, scope), scope);
            break;
        case StmtKind::set_block:
            run_set_block(stmt, scope);
            break;
        case StmtKind::macro:
            scope->set(stmt.macro.name, make_macro(stmt.macro, scope));
            break;
        case StmtKind::call_block:
            run_call_block(stmt, scope);
            break;
        case StmtKind::filter_block:
            run_filter_block(stmt, scope);
            break;
        case StmtKind::with:
            return run_with(stmt, scope);
        case StmtKind::generation:
            write(capture(stmt.body, inner(scope)));
            break;
        case StmtKind::break_loop:
            return Flow::break_loop;
        case StmtKind::continue_loop:
            return Flow::continue_loop;
    }
    return Flow::normal;
}

Machine::Flow Machine::run_branch(const Stmt& stmt, const ScopePtr& scope) {
    for (const auto& [test, body] : stmt.branches)
        if (truth(eval(*test, scope))) return run_body(body, scope);
    return run_body(stmt.otherwise, scope);
}

void Machine::run_set_block(const Stmt& stmt, const ScopePtr& scope) {
    Value value = make_text(capture(stmt.body, inner(scope)));
    if (stmt.expr) value = apply_filters(*stmt.expr, value, scope);
    assign(*stmt.target, value, scope);
}

void Machine::run_filter_block(const Stmt& stmt, const ScopePtr& scope) {
    const Value body = make_text(capture(stmt.body, inner(scope)));
    write(to_text(apply_filters(*stmt.expr, body, scope)));
}

void Machine::run_call_block(const Stmt& stmt, const ScopePtr& scope) {
    const Value callee = eval(*stmt.expr->children[0], scope);
    CallArguments arguments = eval_arguments(stmt.expr->arguments, scope);
    arguments.named.emplace_back("caller", make_macro(stmt.macro, scope));
    write(to_text(call(callee, std::move(arguments))));
}

Machine::Flow Machine::run_with(const Stmt& stmt, const ScopePtr& scope) {
    const ScopePtr block = inner(scope);
    std::vector<Value> values;
    for (const auto& assignment : stmt.assignments)
        values.push_back(eval(*assignment.second, scope));
    for (std::size_t i = 0; i < values.size(); ++i)
        assign(*stmt.assignments[i].first, values[i], block);
    return run_body(stmt.body, block);
}

Values Machine::filtered_items(const Stmt& stmt, const Value& iterable, const ScopePtr& scope) {
    Values items = items_of(iterable);
    if (!stmt.condition) return items;
    Values kept;
    for (Value& item : items) {
        const ScopePtr test = inner(scope);
        assign(*stmt.target, item, test);
        if (truth(eval(*stmt.condition, test))) kept.push_back(std::move(item));
    }
    return kept;
}

void Machine::run_loop(const Stmt& stmt, const Value& iterable, const ScopePtr& scope, int depth) {
    const auto loop = std::make_shared<Loop>();
    loop->items = Value::list(filtered_items(stmt, iterable, scope));
    loop->depth = depth;
    loop->statement = &stmt;
    loop->outer = scope;
    Value handle = Value::of(Kind::loop);
    handle.integer = depth_of(loop->items);
    handle.object = loop;
    const Values& items = loop->items.items();
    bool completed = false;  // jinja2 runs `else` unless some turn reached its end without break or continue
    for (; loop->index < items.size(); ++loop->index) {
        charge(4);
        const ScopePtr turn = inner(scope);
        turn->set("loop", handle);
        assign(*stmt.target, items[loop->index], turn);
        const Flow flow = run_body(stmt.body, turn);
        if (flow == Flow::break_loop) break;
        completed |= flow == Flow::normal;
    }
    if (!completed) run_body(stmt.otherwise, inner(scope));
}

void Machine::assign(const Expr& target, const Value& value, const ScopePtr& scope) {
    if (target.kind == ExprKind::name) {
        scope->set(target.text, value);
        return;
    }
    if (target.kind == ExprKind::attribute) {
        const Value object = eval(*target.children[0], scope);
        if (!object.is(Kind::space))
            throw Fault("only attributes of a namespace can be set, not of a " +
                        std::string(type_name(object)));
        object.space->set(target.text, value);
        return;
    }
    assert(target.kind == ExprKind::tuple);
    const Values items = items_of(value);
    if (items.size() != target.children.size())
        throw Fault("expected " + std::to_string(target.children.size()) + " values to assign, found " +
                    std::to_string(items.size()));
    for (std::size_t i = 0; i < items.size(); ++i)
        assign(*target.children[i], items[i], scope);
}

Value Machine::make_macro(const MacroDefinition& definition, const ScopePtr& scope) {
    charge(4);
    macros_.push_back(std::make_unique<Macro>(Macro{&definition, scope}));
    Value value = Value::of(Kind::macro);
    value.macro = macros_.back().get();
    return value;
}

// jinja2's Macro.__call__: positional, then named, then defaults (evaluated now); the rest to varargs and
// kwargs.
Value Machine::call_macro(const Macro& macro, CallArguments& arguments) {
    const MacroDefinition& definition = *macro.definition;
    const ScopePtr scope = inner(macro.scope);
    const std::size_t count = definition.parameters.size();
    Values varargs;
    for (std::size_t i = count; i < arguments.positional.size(); ++i)
        varargs.push_back(arguments.positional[i]);
    if (!varargs.empty() && !definition.uses_varargs)
        throw Fault("the macro '" + definition.name + "' takes at most " + std::to_string(count) +
                    " arguments");
    std::vector<bool> given(count, false);
    Dict kwargs;
    std::optional<Value> caller;
    for (std::size_t i = 0; i < std::min(count, arguments.positional.size()); ++i) {
        scope->set(definition.parameters[i], arguments.positional[i]);
        given[i] = true;
    }
    for (auto& [name, value] : arguments.named) {
        const auto place = std::find(definition.parameters.begin(), definition.parameters.end(), name);
        if (place != definition.parameters.end()) {
            const auto i = static_cast<std::size_t>(place - definition.parameters.begin());
            if (given[i]) throw Fault("the macro '" + definition.name + "' got '" + name + "' twice");
            scope->set(name, value);
            given[i] = true;
        } else if (name == "caller" && definition.uses_caller) {
            caller = value;
        } else if (definition.uses_kwargs) {
            kwargs.set(Value::literal(name), value);
        } else {
            throw Fault("the macro '" + definition.name + "' takes no argument '" + name + "'");
        }
    }
    const std::size_t first_default = count - definition.defaults.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (given[i]) continue;
        const std::string& name = definition.parameters[i];
        scope->set(name, i >= first_default ? eval(*definition.defaults[i - first_default], scope)
                                            : Value::undefined("the parameter '" + name + "'"));
    }
    if (definition.uses_varargs) scope->set("varargs", Value::tuple(std::move(varargs)));
    if (definition.uses_kwargs) scope->set("kwargs", Value::dict(std::move(kwargs)));
    if (definition.uses_caller) scope->set("caller", caller ? *caller : Value::undefined("'caller'"));
    const int line = line_;
    Value result = make_text(capture(definition.body, scope));
    line_ = line;
    return result;
}

Value Machine::call_loop(const Value& callee, const CallArguments& arguments) {
    const Loop& loop = callee.as<Loop>();
    if (!loop.statement->recursive) throw Fault("the loop is not marked 'recursive'");
    if (arguments.positional.size() != 1 || !arguments.named.empty())
        throw Fault("loop() takes one iterable");
    const ScopePtr outer = loop.outer.lock();
    if (!outer) throw Fault("a loop was called after its end");
    Text captured;
    Text* const before = std::exchange(out_, &captured);
    try {
        run_loop(*loop.statement, arguments.positional[0], outer, loop.depth + 1);
    } catch (...) {
        out_ = before;
        throw;
    }
    out_ = before;
    return make_text(std::move(captured));
}

}  // namespace recto::jinja
