// Python's operators, and attribute and item access as jinja2's sandbox allows them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/text/jinja_machine.h"

namespace recto::jinja {
namespace {

[[noreturn]] void refuse(std::string_view op, const Value& a, const Value& b) {
    if (a.is(Kind::undefined)) throw Fault(a.name() + " is undefined");
    if (b.is(Kind::undefined)) throw Fault(b.name() + " is undefined");
    throw Fault("'" + std::string(op) + "' does not work on " + type_name(a) + " and " + type_name(b));
}

[[noreturn]] void overflow() {
    throw Fault("an integer does not fit 64 bits");
}

[[noreturn]] void divide_by_zero() {
    throw Fault("division by zero");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
    if (b == 0) divide_by_zero();
    if (a == std::numeric_limits<std::int64_t>::min() && b == -1) overflow();
    const std::int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
    if (b == 0) divide_by_zero();
    if (b == -1) return 0;
    const std::int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// CPython's float_divmod.
double real_modulo(double a, double b) {
    if (b == 0) divide_by_zero();
    double rest = std::fmod(a, b);
    if (rest != 0) return (b < 0) != (rest < 0) ? rest + b : rest;
    return std::copysign(0.0, b);
}

double real_floor_divide(double a, double b) {
    if (b == 0) divide_by_zero();
    const double rest = std::fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(0.0, a / b);
    const double floored = std::floor(quotient);
    return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) {
        if (base == 0) divide_by_zero();
        return Value::from(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
    if (base == 0 || base == 1) return Value::from(exponent == 0 ? std::int64_t{1} : base);
    if (base == -1) return Value::from(std::int64_t{exponent % 2 == 0 ? 1 : -1});
    std::int64_t result = 1;
    for (; exponent > 0; --exponent)  // at most 63 turns: then it overflows
        if (__builtin_mul_overflow(result, base, &result)) overflow();
    return Value::from(result);
}

Value integer_arithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (op == "+") {
        if (__builtin_add_overflow(a, b, &result)) overflow();
    } else if (op == "-") {
        if (__builtin_sub_overflow(a, b, &result)) overflow();
    } else if (op == "*") {
        if (__builtin_mul_overflow(a, b, &result)) overflow();
    } else if (op == "//") {
        result = floor_divide(a, b);
    } else if (op == "%") {
        result = floor_modulo(a, b);
    } else if (op == "/") {
        if (b == 0) divide_by_zero();
        return Value::from(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    } else {
        return integer_power(a, b);
    }
    return Value::from(result);
}

double real_power(double a, double b) {
    if (a == 0 && b < 0) divide_by_zero();
    if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
        throw Fault("complex numbers are not supported");
    const double result = std::pow(a, b);
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
        throw Fault("a number is too large for a float");
    return result;
}

Value real_arithmetic(std::string_view op, double a, double b) {
    if (op == "+") return Value::from(a + b);
    if (op == "-") return Value::from(a - b);
    if (op == "*") return Value::from(a * b);
    if (op == "//") return Value::from(real_floor_divide(a, b));
    if (op == "%") return Value::from(real_modulo(a, b));
    if (op == "**") return Value::from(real_power(a, b));
    if (b == 0) divide_by_zero();
    return Value::from(a / b);
}

Text escape(const Text& text) {
    Text out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text.bytes()[i];
        const char* entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '\'' ? "&#39;"
                             : c == '"'  ? "&#34;"
                                         : nullptr;
        if (entity != nullptr)
            out.append(entity, text.user_at(i));
        else
            out.append(text, i, i + 1);
    }
    return out;
}

// A string marked safe escapes what is added to it, as markupsafe does.
Value add_strings(Machine& machine, const Value& a, const Value& b) {
    machine.charge_text(a.text().size() + b.text().size());
    const bool markup = a.markup || b.markup;
    Text out = markup && !a.markup ? escape(a.text()) : a.text();
    out.append(markup && !b.markup ? escape(b.text()) : b.text());
    Value value = machine.make_text(std::move(out));
    value.markup = markup;
    return value;
}

Value repeat_items(Machine& machine, const Value& sequence, std::int64_t count) {
    const auto size = static_cast<std::int64_t>(sequence.items().size());
    if (count <= 0 || size == 0) return Value::sequence(sequence.kind, {});
    if (count > max_work / size) throw Fault("a list grows too long");
    machine.charge(count * size);
    Values items;
    for (std::int64_t i = 0; i < count; ++i)
        items.insert(items.end(), sequence.items().begin(), sequence.items().end());
    return Value::sequence(sequence.kind, std::move(items));
}

bool is_sequence(const Value& value) {
    return value.is(Kind::list) || value.is(Kind::tuple);
}

Value multiply(Machine& machine, const Value& a, const Value& b) {
    const Value& object = a.is_integral() ? b : a;
    const Value& count = a.is_integral() ? a : b;
    if (!count.is_integral()) refuse("*", a, b);
    if (object.is(Kind::string) && !object.markup)
        return Value::from(repeat(machine, object.text(), count.as_integer()));
    if (is_sequence(object)) return repeat_items(machine, object, count.as_integer());
    refuse("*", a, b);
}

// The bounds of a slice over `length` items, as Python computes them.
struct Bounds {
    std::int64_t start, stop, step, count;
};

std::int64_t slice_index(const Value& value) {
    if (value.is_integral()) return value.as_integer();
    if (value.is(Kind::undefined)) throw Fault(value.name() + " is undefined");
    throw Fault(std::string("a slice needs integers, not ") + type_name(value));
}

Bounds slice_bounds(std::int64_t length, const Value& start, const Value& stop, const Value& step) {
    Bounds bounds{0, 0, step.is(Kind::none) ? 1 : slice_index(step), 0};
    if (bounds.step == 0) throw Fault("the step of a slice is zero");
    bounds.step = std::clamp(bounds.step, -max_range * 10'000, max_range * 10'000);
    const bool down = bounds.step < 0;
    const std::int64_t low = down ? -1 : 0, high = down ? length - 1 : length;
    const auto bound = [&](const Value& value, std::int64_t otherwise) {
        if (value.is(Kind::none)) return otherwise;
        const std::int64_t index = slice_index(value);
        return std::clamp(index < 0 ? index + length : index, low, high);
    };
    bounds.start = bound(start, down ? high : low);
    bounds.stop = bound(stop, down ? low : high);
    const std::int64_t span = down ? bounds.start - bounds.stop : bounds.stop - bounds.start;
    if (span > 0) bounds.count = (span - 1) / std::abs(bounds.step) + 1;
    return bounds;
}

Value slice_text(Machine& machine, const Value& object, const Value& start, const Value& stop,
                 const Value& step) {
    const Text& text = object.text();
    const auto starts = code_point_starts(text.bytes());
    machine.charge(static_cast<std::int64_t>(text.size() / 8));
    const Bounds bounds = slice_bounds(static_cast<std::int64_t>(starts.size()) - 1, start, stop, step);
    Text out;
    if (bounds.step == 1 && bounds.count > 0) {
        const auto begin = static_cast<std::size_t>(bounds.start);
        out = text.slice(starts[begin], starts[begin + static_cast<std::size_t>(bounds.count)]);
    } else {
        for (std::int64_t i = 0; i < bounds.count; ++i) {
            const auto at = static_cast<std::size_t>(bounds.start + i * bounds.step);
            out.append(text, starts[at], starts[at + 1]);
        }
    }
    Value value = machine.make_text(std::move(out));
    value.markup = object.markup;
    return value;
}

// list.append and the like exist in Python, but the sandbox gives nothing for them, whatever keys a dict has.
bool is_mutator(const Value& object, std::string_view name) {
    static constexpr std::string_view of_list[] = {"append", "clear",  "extend",  "insert",
                                                   "pop",    "remove", "reverse", "sort"};
    static constexpr std::string_view of_dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
    const auto in = [&](const auto& names) {
        return std::find(std::begin(names), std::end(names), name) != std::end(names);
    };
    return object.is(Kind::list) ? in(of_list) : object.is(Kind::dict) && in(of_dict);
}

// getattr(); empty when the object has no such attribute.
std::optional<Value> own_attribute(const Value& object, const std::string& name) {
    if (name.starts_with("__") || is_mutator(object, name))
        return Value::undefined("the attribute '" + name + "'");
    if (object.is(Kind::space)) {
        if (const Value* value = object.space->find(name)) return *value;
        return std::nullopt;
    }
    if (object.is(Kind::loop)) return loop_attribute(object, name);
    if (has_method(object, name)) return Value::method(object, name);
    return std::nullopt;
}

// object[index]; empty where Python raises a lookup or type error.
std::optional<Value> own_item(Machine& machine, const Value& object, const Value& index) {
    if (object.is(Kind::dict)) {
        const bool hashable = !index.is(Kind::list) && !index.is(Kind::dict) && !index.is(Kind::range);
        if (const Value* value = hashable ? object.entries().find(index) : nullptr) return *value;
        return std::nullopt;
    }
    const bool indexable = is_sequence(object) || object.is(Kind::string) || object.is(Kind::range);
    if (!indexable || !index.is_integral()) return std::nullopt;
    const std::int64_t size = length(object);
    const std::int64_t wanted = index.as_integer();
    const std::int64_t at = wanted < 0 ? wanted + size : wanted;
    if (at < 0 || at >= size) return std::nullopt;
    if (object.is(Kind::range)) return Value::from(object.as<Range>().at(at));
    if (!object.is(Kind::string)) return object.items()[static_cast<std::size_t>(at)];
    return slice_text(machine, object, Value::from(at), Value::from(at + 1), Value::none());
}

}  // namespace

Value binary(Machine& machine, std::string_view op, const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) {
        Value result = a.is(Kind::real) || b.is(Kind::real)
                           ? real_arithmetic(op, a.as_real(), b.as_real())
                           : integer_arithmetic(op, a.as_integer(), b.as_integer());
        result.user = a.user || b.user;
        return result;
    }
    if (op == "%" && a.is(Kind::string)) {
        if (a.markup) throw Fault("'%' on a string marked safe is not supported");
        return percent_format(machine, a.text(), b);
    }
    if (op == "+" && a.is(Kind::string) && b.is(Kind::string)) return add_strings(machine, a, b);
    if (op == "+" && is_sequence(a) && a.kind == b.kind) {
        machine.charge(static_cast<std::int64_t>(a.items().size() + b.items().size()));
        Values items = a.items();
        items.insert(items.end(), b.items().begin(), b.items().end());
        return Value::sequence(a.kind, std::move(items));
    }
    if (op == "*") return multiply(machine, a, b);
    refuse(op, a, b);
}

Value negate(const Value& value) {
    if (value.is(Kind::undefined)) throw Fault(value.name() + " is undefined");
    if (!value.is_number()) throw Fault(std::string("'-' does not work on ") + type_name(value));
    Value result =
        value.is(Kind::real) ? Value::from(-value.real) : integer_arithmetic("-", 0, value.as_integer());
    result.user = value.user;
    return result;
}

bool compare_as(std::string_view op, const Value& a, const Value& b) {
    const auto is_nan = [](const Value& value) { return value.is(Kind::real) && std::isnan(value.real); };
    if (a.is_number() && b.is_number() && (is_nan(a) || is_nan(b))) return false;
    const int order = compare(a, b, std::string(op).c_str());
    if (op == "<") return order < 0;
    if (op == "<=") return order <= 0;
    if (op == ">") return order > 0;
    return order >= 0;
}

Value slice(Machine& machine, const Value& object, const Value& start, const Value& stop, const Value& step) {
    if (object.is(Kind::string)) return slice_text(machine, object, start, stop, step);
    if (is_sequence(object)) {
        const Bounds bounds = slice_bounds(length(object), start, stop, step);
        machine.charge(bounds.count);
        Values items;
        for (std::int64_t i = 0; i < bounds.count; ++i)
            items.push_back(object.items()[static_cast<std::size_t>(bounds.start + i * bounds.step)]);
        return Value::sequence(object.kind, std::move(items));
    }
    if (object.is(Kind::range)) {
        const Range& range = object.as<Range>();
        const Bounds bounds = slice_bounds(range.length, start, stop, step);
        Value value = Value::of(Kind::range);
        value.object = std::make_shared<const Range>(
            Range{range.at(bounds.start), range.at(bounds.stop), range.step * bounds.step, bounds.count});
        return value;
    }
    if (object.is(Kind::undefined)) throw Fault(object.name() + " is undefined");
    throw Fault(std::string("a ") + type_name(object) + " cannot be sliced");
}

Value Machine::attribute(const Value& object, const std::string& name) {
    if (object.is(Kind::undefined)) throw Fault(object.name() + " is undefined, so it has no '" + name + "'");
    if (auto value = own_attribute(object, name)) return *value;
    if (object.is(Kind::dict))
        if (const Value* value = object.entries().find(name)) return *value;
    return Value::undefined("the attribute '" + name + "'");
}

Value Machine::item(const Value& object, const Value& index) {
    if (object.is(Kind::undefined)) throw Fault(object.name() + " is undefined, so it has no items");
    if (auto value = own_item(*this, object, index)) return *value;
    if (!index.is(Kind::string)) return Value::undefined("the item " + to_text(index).bytes());
    if (auto value = own_attribute(object, index.bytes())) return *value;
    return Value::undefined("the item '" + index.bytes() + "'");
}

}  // namespace recto::jinja
