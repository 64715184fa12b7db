// Tests: what stands behind `is`.
#include <algorithm>
#include <cmath>

#include "engine/text/jinja_machine.h"
#include "engine/text/jinja_unicode.h"

namespace recto::jinja {
namespace {

struct Call {
    Machine& machine;
    std::string_view name;
    const Value& input;
    const CallArguments& arguments;

    void expect(std::size_t count) const {
        if (!arguments.named.empty() || arguments.positional.size() != count)
            throw Fault("the test '" + std::string(name) + "' got a wrong number of arguments");
    }
    const Value& operand() const {
        expect(1);
        return arguments.positional[0];
    }
};

bool is_mapping(const Value& value) {
    return value.is(Kind::dict);
}

// What Python's iter() takes.
bool is_iterable(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
        case Kind::string:
        case Kind::list:
        case Kind::tuple:
        case Kind::dict:
        case Kind::range:
        case Kind::view:
        case Kind::iterator:
        case Kind::loop:
            return true;
        default:
            return false;
    }
}

// What has a length and items.
bool is_sequence(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
        case Kind::string:
        case Kind::list:
        case Kind::tuple:
        case Kind::dict:
        case Kind::range:
            return true;
        default:
            return false;
    }
}

bool is_callable(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
        case Kind::macro:
        case Kind::method:
        case Kind::function:
        case Kind::loop:
        case Kind::joiner:
            return true;
        default:
            return false;
    }
}

bool has_case(const Call& call, bool (*wanted)(std::uint32_t), bool (*unwanted)(std::uint32_t)) {
    const Text text = to_text(call.input);
    call.machine.charge_text(text.size());
    bool any = false;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = code_point_at(text.bytes(), at);
        if (unwanted(point.value) || is_title(point.value)) return false;
        any |= wanted(point.value);
        at += point.length;
    }
    return any;
}

// value % divisor == rest
bool leaves(const Call& call, const Value& divisor, std::int64_t rest) {
    if (call.input.is(Kind::string)) throw Fault("the test '" + std::string(call.name) + "' needs a number");
    return equal(binary(call.machine, "%", call.input, divisor), Value::from(rest));
}

// Identity. Equal numbers are one object in Python only when small, so the others are not guessed.
bool is_same(const Value& a, const Value& b) {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
        case Kind::none:
            return true;
        case Kind::boolean:
            return a.boolean == b.boolean;
        case Kind::integer:
            if (a.integer != b.integer) return false;
            if (a.integer < -5 || a.integer > 256)
                throw Fault("the test 'sameas' of large numbers is not supported");
            return true;
        case Kind::space:
            return a.space == b.space;
        case Kind::macro:
            return a.macro == b.macro;
        case Kind::real:
        case Kind::string:
        case Kind::undefined:
        case Kind::function:
        case Kind::method:
            throw Fault(std::string("the test 'sameas' of a ") + type_name(a) + " is not supported");
        default:
            return a.object == b.object;
    }
}

bool is_order(std::string_view name, std::string_view& op) {
    static constexpr std::pair<std::string_view, std::string_view> names[] = {
        {">", ">"}, {"gt", ">"}, {"greaterthan", ">"}, {">=", ">="}, {"ge", ">="},
        {"<", "<"}, {"lt", "<"}, {"lessthan", "<"},    {"<=", "<="}, {"le", "<="},
    };
    for (const auto& [other, spelling] : names)
        if (other == name) {
            op = spelling;
            return true;
        }
    return false;
}

using Predicate = bool (*)(const Call&);

struct Entry {
    std::string_view name;
    std::size_t operands;
    Predicate predicate;
};

constexpr Entry tests[] = {
    {"defined", 0, [](const Call& c) { return !c.input.is(Kind::undefined); }},
    {"undefined", 0, [](const Call& c) { return c.input.is(Kind::undefined); }},
    {"none", 0, [](const Call& c) { return c.input.is(Kind::none); }},
    {"boolean", 0, [](const Call& c) { return c.input.is(Kind::boolean); }},
    {"true", 0, [](const Call& c) { return c.input.is(Kind::boolean) && c.input.boolean; }},
    {"false", 0, [](const Call& c) { return c.input.is(Kind::boolean) && !c.input.boolean; }},
    {"integer", 0, [](const Call& c) { return c.input.is(Kind::integer); }},
    {"float", 0, [](const Call& c) { return c.input.is(Kind::real); }},
    {"number", 0, [](const Call& c) { return c.input.is_number(); }},
    {"string", 0, [](const Call& c) { return c.input.is(Kind::string); }},
    {"mapping", 0, [](const Call& c) { return is_mapping(c.input); }},
    {"sequence", 0, [](const Call& c) { return is_sequence(c.input); }},
    {"iterable", 0, [](const Call& c) { return is_iterable(c.input); }},
    {"callable", 0, [](const Call& c) { return is_callable(c.input); }},
    {"escaped", 0, [](const Call& c) { return c.input.markup; }},
    {"lower", 0, [](const Call& c) { return has_case(c, is_lower, is_upper); }},
    {"upper", 0, [](const Call& c) { return has_case(c, is_upper, is_lower); }},
    {"odd", 0, [](const Call& c) { return leaves(c, Value::from(std::int64_t{2}), 1); }},
    {"even", 0, [](const Call& c) { return leaves(c, Value::from(std::int64_t{2}), 0); }},
    {"divisibleby", 1, [](const Call& c) { return leaves(c, c.operand(), 0); }},
    {"in", 1, [](const Call& c) { return contains(c.operand(), c.input); }},
    {"==", 1, [](const Call& c) { return equal(c.input, c.operand()); }},
    {"eq", 1, [](const Call& c) { return equal(c.input, c.operand()); }},
    {"equalto", 1, [](const Call& c) { return equal(c.input, c.operand()); }},
    {"!=", 1, [](const Call& c) { return !equal(c.input, c.operand()); }},
    {"ne", 1, [](const Call& c) { return !equal(c.input, c.operand()); }},
    {"sameas", 1, [](const Call& c) { return is_same(c.input, c.operand()); }},
    {"filter", 0, [](const Call& c) { return c.input.is(Kind::string) && is_filter(c.input.bytes()); }},
    {"test", 0, [](const Call& c) { return c.input.is(Kind::string) && is_test(c.input.bytes()); }},
};

const Entry* find_test(std::string_view name) {
    const auto entry =
        std::find_if(std::begin(tests), std::end(tests), [&](const Entry& e) { return e.name == name; });
    return entry == std::end(tests) ? nullptr : entry;
}

}  // namespace

bool is_test(std::string_view name) {
    std::string_view op;
    return find_test(name) != nullptr || is_order(name, op);
}

bool Machine::test(const std::string& name, const Value& input, const CallArguments& arguments) {
    charge(2);
    const Call call{*this, name, input, arguments};
    std::string_view op;
    if (is_order(name, op)) return compare_as(op, input, call.operand());
    const Entry* entry = find_test(name);
    if (entry == nullptr) throw Fault("there is no test '" + name + "'");
    call.expect(entry->operands);
    return entry->predicate(call);
}

}  // namespace recto::jinja
