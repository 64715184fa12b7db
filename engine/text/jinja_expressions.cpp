// Expressions: evaluation of the syntax tree.
#include <utility>

#include "engine/text/jinja_machine.h"

namespace recto::jinja {

Value Machine::eval(const Expr& expr, const ScopePtr& scope) {
    const Depth depth(*this);
    charge(1);
    line_ = expr.line;
    const auto child = [&](std::size_t i) { return eval(*expr.children[i], scope); };
    switch (expr.kind) {
        case ExprKind::constant:
            return expr.constant;
        case ExprKind::name:
            return eval_name(expr, scope);
        case ExprKind::list:
        case ExprKind::tuple:
        case ExprKind::dict:
            return eval_container(expr, scope);
        case ExprKind::negate:
            return jinja::negate(child(0));
        case ExprKind::plus: {
            Value value = child(0);
            if (!value.is_number()) throw Fault(std::string("'+' does not work on ") + type_name(value));
            if (!value.is(Kind::boolean)) return value;
            return Value::from(value.as_integer());
        }
        case ExprKind::logical_not:
            return Value::from(!truth(child(0)));
        case ExprKind::logical_and: {
            Value left = child(0);
            return truth(left) ? child(1) : left;
        }
        case ExprKind::logical_or: {
            Value left = child(0);
            return truth(left) ? left : child(1);
        }
        case ExprKind::binary: {
            const Value left = child(0), right = child(1);
            return binary(*this, expr.ops[0], left, right);
        }
        case ExprKind::concat:
            return eval_concat(expr, scope);
        case ExprKind::compare:
            return eval_compare(expr, scope);
        case ExprKind::condition:
            if (truth(child(0))) return child(1);
            if (expr.children.size() > 2) return child(2);
            return Value::undefined("the inline if-expression without else");
        case ExprKind::attribute:
            return attribute(child(0), expr.text);
        case ExprKind::item: {
            const Value object = child(0), index = child(1);
            return item(object, index);
        }
        case ExprKind::slice:
            return eval_slice(expr, scope);
        case ExprKind::call: {
            const Value callee = child(0);
            return call(callee, eval_arguments(expr.arguments, scope));
        }
        case ExprKind::filter:
            return eval_filter(expr, child(0), scope);
        case ExprKind::test: {
            const Value input = child(0);
            return Value::from(test(expr.text, input, eval_arguments(expr.arguments, scope)));
        }
    }
    return {};
}

Value Machine::eval_name(const Expr& expr, const ScopePtr& scope) {
    if (const Value* value = scope->find(expr.text)) return *value;
    if (is_function(expr.text)) return Value::function(expr.text);
    if (expr.text == "self") throw Fault("'self' is not supported");
    return Value::undefined("'" + expr.text + "'");
}

Value Machine::eval_container(const Expr& expr, const ScopePtr& scope) {
    charge(static_cast<std::int64_t>(expr.children.size()));
    Values items;
    for (const ExprPtr& child : expr.children)
        items.push_back(eval(*child, scope));
    if (expr.kind == ExprKind::list) return Value::list(std::move(items));
    if (expr.kind == ExprKind::tuple) return Value::tuple(std::move(items));
    Dict dict;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
        dict.set(items[i], std::move(items[i + 1]));
    return Value::dict(std::move(dict));
}

Value Machine::eval_concat(const Expr& expr, const ScopePtr& scope) {
    Text out;
    for (const ExprPtr& child : expr.children) {
        out.append(to_text(eval(*child, scope)));
        charge_text(out.size());
    }
    return Value::from(std::move(out));
}

Value Machine::eval_compare(const Expr& expr, const ScopePtr& scope) {
    Value left = eval(*expr.children[0], scope);
    for (std::size_t i = 0; i < expr.ops.size(); ++i) {
        Value right = eval(*expr.children[i + 1], scope);
        const std::string& op = expr.ops[i];
        if (right.is(Kind::string) && left.is(Kind::string)) charge_text(right.text().size());
        bool holds = false;
        if (op == "==" || op == "!=")
            holds = equal(left, right) == (op == "==");
        else if (op == "in" || op == "not in")
            holds = contains(right, left) == (op == "in");
        else
            holds = compare_as(op, left, right);
        if (!holds) return Value::from(false);
        left = std::move(right);
    }
    return Value::from(true);
}

Value Machine::eval_slice(const Expr& expr, const ScopePtr& scope) {
    const Value object = eval(*expr.children[0], scope);
    const auto bound = [&](std::size_t i) {
        return expr.children[i] ? eval(*expr.children[i], scope) : Value::none();
    };
    const Value start = bound(1), stop = bound(2), step = bound(3);
    return slice(*this, object, start, stop, step);
}

Value Machine::eval_filter(const Expr& expr, const Value& input, const ScopePtr& scope) {
    const CallArguments arguments = eval_arguments(expr.arguments, scope);
    line_ = expr.line;
    return filter(expr.text, input, arguments);
}

// A filter chain of a block: the innermost filter has no input of its own.
Value Machine::apply_filters(const Expr& expr, const Value& input, const ScopePtr& scope) {
    const Depth depth(*this);
    return eval_filter(expr, expr.children[0] ? apply_filters(*expr.children[0], input, scope) : input,
                       scope);
}

CallArguments Machine::eval_arguments(const Arguments& arguments, const ScopePtr& scope) {
    CallArguments out;
    for (const ExprPtr& expr : arguments.positional)
        out.positional.push_back(eval(*expr, scope));
    if (arguments.star)
        for (Value& value : items_of(eval(*arguments.star, scope)))
            out.positional.push_back(std::move(value));
    for (const auto& [name, expr] : arguments.named)
        out.named.emplace_back(name, eval(*expr, scope));
    if (!arguments.star_star) return out;
    const Value named = eval(*arguments.star_star, scope);
    if (!named.is(Kind::dict)) throw Fault("'**' needs a dictionary");
    for (const auto& [key, value] : named.entries().entries) {
        if (!key.is(Kind::string)) throw Fault("'**' needs a dictionary with string keys");
        for (const auto& other : out.named)
            if (other.first == key.bytes()) throw Fault("the argument '" + key.bytes() + "' is given twice");
        out.named.emplace_back(key.bytes(), value);
    }
    return out;
}

Value Machine::call(const Value& callee, CallArguments arguments) {
    const Depth depth(*this);
    charge(2);
    switch (callee.kind) {
        case Kind::macro:
            return call_macro(*callee.macro, arguments);
        case Kind::loop:
            return call_loop(callee, arguments);
        case Kind::method:
            return call_method(*this, callee.as<Method>(), arguments);
        case Kind::function:
            return call_function(*this, callee.name(), arguments);
        case Kind::joiner: {
            if (!arguments.positional.empty() || !arguments.named.empty())
                throw Fault("a joiner takes no arguments");
            const Joiner& joiner = callee.as<Joiner>();
            return Value::from(std::exchange(joiner.used, true) ? joiner.separator : Text());
        }
        case Kind::undefined:
            throw Fault(callee.name() + " is undefined");
        default:
            throw Fault(std::string("a ") + type_name(callee) + " cannot be called");
    }
}

}  // namespace recto::jinja
