// Filters of sequences and dictionaries.
#include <algorithm>
#include <cmath>

#include "engine/text/jinja_filters.h"
#include "engine/text/jinja_unicode.h"

namespace recto::jinja::filters {

namespace {

// "a.b.0"
Value by_path(Machine& machine, const Value& object, const Value& path) {
    if (path.is_integral()) return machine.item(object, path);
    Value value = object;
    const std::string& text = text_argument(path, "attribute").bytes();
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t dot = std::min(text.find('.', begin), text.size());
        const std::string part = text.substr(begin, dot - begin);
        const bool number =
            !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
        value = machine.item(
            value, number ? Value::from(static_cast<std::int64_t>(std::stol(part))) : Value::literal(part));
        begin = dot + 1;
    }
    return value;
}

Value ignore_case(const Value& value) {
    return value.is(Kind::string) ? Value::from(lower(value.text())) : value;
}

// The key to sort or compare an item by.
struct KeyOf {
    Machine& machine;
    std::optional<Value> attribute;
    bool case_sensitive;

    Value operator()(const Value& item) const {
        machine.charge(2);
        const bool has_path = attribute && !attribute->is(Kind::none);
        const Value value = has_path ? by_path(machine, item, *attribute) : item;
        return case_sensitive ? value : ignore_case(value);
    }
};

// "a,b" sorts by several attributes; the key is then a list.
Value multi_key(const KeyOf& key, const Value& item) {
    if (!key.attribute || !key.attribute->is(Kind::string)) return Value::list({key(item)});
    Values parts;
    const std::string& paths = key.attribute->bytes();
    for (std::size_t begin = 0; begin <= paths.size();) {
        const std::size_t comma = std::min(paths.find(',', begin), paths.size());
        const KeyOf one{key.machine, Value::literal(paths.substr(begin, comma - begin)), key.case_sensitive};
        parts.push_back(one(item));
        begin = comma + 1;
    }
    return Value::list(std::move(parts));
}

Values sorted(Machine& machine, Values items, std::vector<Value> keys, bool reverse) {
    std::vector<std::size_t> order(items.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    for (const Value& key : keys)  // an order that is none would leave std::stable_sort's rules
        if (key.is(Kind::real) && std::isnan(key.real)) throw Fault("sorting nan is not supported");
    // A merge sort of our own would buy nothing: an exception from the comparison leaves `order` valid.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        machine.charge(1);
        return reverse ? less(keys[b], keys[a]) : less(keys[a], keys[b]);
    });
    Values out;
    for (const std::size_t i : order)
        out.push_back(std::move(items[i]));
    return out;
}

}  // namespace

Value first(const Call& call) {
    call.bind({});
    if (call.input.is(Kind::iterator)) {
        const Iterator& iterator = call.input.as<Iterator>();
        if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
        return Value::undefined("the first item of an empty sequence");
    }
    const Values items = call.items();
    return items.empty() ? Value::undefined("the first item of an empty sequence") : items.front();
}

namespace {

void refuse_iterator(const Call& call) {
    if (call.input.is(Kind::iterator))
        throw Fault(call.callee() + " does not work on a generator: use |list before it");
}

}  // namespace

Value last(const Call& call) {
    call.bind({});
    refuse_iterator(call);
    const Values items = call.items();
    return items.empty() ? Value::undefined("the last item of an empty sequence") : items.back();
}

Value reverse(const Call& call) {
    call.bind({});
    if (call.input.is(Kind::string))
        return slice(call.machine, call.input, Value::none(), Value::none(), Value::from(std::int64_t{-1}));
    Values items = call.items();
    std::reverse(items.begin(), items.end());
    // Of a generator jinja2 makes a list, of everything else a reversed iterator.
    return call.input.is(Kind::iterator) ? Value::list(std::move(items)) : Value::iterator(std::move(items));
}

Value dict_sort(const Call& call) {
    const auto bound = call.bind({"case_sensitive", "by", "reverse"});
    if (!call.input.is(Kind::dict))
        throw Fault("dictsort needs a dictionary, not a " + std::string(type_name(call.input)));
    const std::string by = bound[1] ? to_text(*bound[1]).bytes() : "key";
    if (by != "key" && by != "value") throw Fault("dictsort sorts by \"key\" or \"value\"");
    const bool sensitive = flag(bound[0], false);
    Values items;
    std::vector<Value> keys;
    for (const auto& [key, value] : call.input.entries().entries) {
        const Value& by_value = by == "key" ? key : value;
        keys.push_back(sensitive ? by_value : ignore_case(by_value));
        items.push_back(Value::tuple({key, value}));
    }
    return Value::list(sorted(call.machine, std::move(items), std::move(keys), flag(bound[2], false)));
}

Value sort(const Call& call) {
    const auto bound = call.bind({"reverse", "case_sensitive", "attribute"});
    const KeyOf key{call.machine, bound[2], flag(bound[1], false)};
    Values items = call.items();
    std::vector<Value> keys;
    for (const Value& item : items)
        keys.push_back(multi_key(key, item));
    return Value::list(sorted(call.machine, std::move(items), std::move(keys), flag(bound[0], false)));
}

Value unique(const Call& call) {
    const auto bound = call.bind({"case_sensitive", "attribute"});
    const KeyOf key{call.machine, bound[1], flag(bound[0], false)};
    Dict seen;
    Values out;
    for (const Value& item : call.items()) {
        const Value by = key(item);
        if (seen.find(by) != nullptr) continue;
        seen.set(by, Value::none());
        out.push_back(item);
    }
    return Value::iterator(std::move(out));
}

Value least_or_most(const Call& call) {
    const auto bound = call.bind({"case_sensitive", "attribute"});
    const KeyOf key{call.machine, bound[1], flag(bound[0], false)};
    const Values items = call.items();
    if (items.empty()) return Value::undefined("an item of an empty sequence");
    std::size_t best = 0;
    Value best_key = key(items[0]);
    for (std::size_t i = 1; i < items.size(); ++i) {
        Value other = key(items[i]);
        if (call.name == "min" ? less(other, best_key) : less(best_key, other)) {
            best = i;
            best_key = std::move(other);
        }
    }
    return items[best];
}

Value items_filter(const Call& call) {
    call.bind({});
    if (call.input.is(Kind::undefined)) return Value::iterator({});
    if (!call.input.is(Kind::dict))
        throw Fault("items needs a dictionary, not a " + std::string(type_name(call.input)));
    Values items;
    for (const auto& [key, value] : call.input.entries().entries)
        items.push_back(Value::tuple({key, value}));
    call.machine.charge(static_cast<std::int64_t>(items.size()) * 4);
    return Value::iterator(std::move(items));
}

Value batch(const Call& call) {
    const auto bound = call.bind({"linecount", "fill_with"}, 1);
    const std::int64_t size = call.integer(bound[0], 1);
    const bool fills = bound[1] && !bound[1]->is(Kind::none);
    Values out, row;
    for (const Value& item : call.items()) {
        if (static_cast<std::int64_t>(row.size()) == size) out.push_back(Value::list(std::exchange(row, {})));
        row.push_back(item);
    }
    if (!row.empty()) {
        if (fills && size > max_range) throw Fault("batch got a size that is too large");
        while (fills && static_cast<std::int64_t>(row.size()) < size)
            row.push_back(*bound[1]);
        out.push_back(Value::list(std::move(row)));
    }
    return Value::iterator(std::move(out));
}

Value slice_filter(const Call& call) {
    const auto bound = call.bind({"slices", "fill_with"}, 1);
    const Values items = call.items();
    const std::int64_t slices = call.integer(bound[0], 1);
    if (slices == 0) throw Fault("division by zero");
    if (slices > max_range) throw Fault("slice got a count that is too large");
    const auto size = static_cast<std::int64_t>(items.size());
    const bool fills = bound[1] && !bound[1]->is(Kind::none);
    Values out;
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < slices; ++i) {
        const bool longer = i < size % slices;
        const std::int64_t end = begin + size / slices + (longer ? 1 : 0);
        Values part(items.begin() + begin, items.begin() + end);
        if (fills && !longer) part.push_back(*bound[1]);
        out.push_back(Value::list(std::move(part)));
        begin = end;
        call.machine.charge(4);
    }
    return Value::iterator(std::move(out));
}

Value group_by(const Call& call) {
    const auto bound = call.bind({"attribute", "default", "case_sensitive"}, 1);
    const bool sensitive = flag(bound[2], false);
    Values items = call.items();
    std::vector<Value> keys;
    const auto key_of = [&](const Value& item) {
        Value key = by_path(call.machine, item, *bound[0]);
        if (key.is(Kind::undefined) && bound[1]) key = *bound[1];
        return key;
    };
    for (const Value& item : items)
        keys.push_back(sensitive ? key_of(item) : ignore_case(key_of(item)));
    items = sorted(call.machine, std::move(items), keys, false);
    Values groups, members;
    Value group_key;
    const auto flush = [&] {
        if (members.empty()) return;
        Value shown = sensitive ? group_key : key_of(members[0]);
        groups.push_back(Value::tuple({std::move(shown), Value::list(std::exchange(members, {}))}));
    };
    for (const Value& item : items) {
        const Value key = sensitive ? key_of(item) : ignore_case(key_of(item));
        if (!members.empty() && !equal(key, group_key)) flush();
        group_key = key;
        members.push_back(item);
    }
    flush();
    return Value::list(std::move(groups));
}

namespace {

// The arguments behind the first `used` positional ones.
CallArguments rest(const CallArguments& arguments, std::size_t used) {
    CallArguments out;
    out.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used),
                          arguments.positional.end());
    out.named = arguments.named;
    return out;
}

}  // namespace

Value map(const Call& call) {
    Values out;
    const bool by_attribute = call.arguments.positional.empty();
    if (by_attribute) {
        const auto bound = call.bind({"attribute", "default"}, 1);
        for (const Value& item : call.items()) {
            Value value = by_path(call.machine, item, *bound[0]);
            if (value.is(Kind::undefined) && bound[1] && !bound[1]->is(Kind::none)) value = *bound[1];
            out.push_back(std::move(value));
        }
        return Value::iterator(std::move(out));
    }
    const std::string& filter = text_argument(call.arguments.positional[0], call.callee()).bytes();
    if (!is_filter(filter)) throw Fault("there is no filter '" + filter + "'");
    const CallArguments arguments = rest(call.arguments, 1);
    for (const Value& item : call.items())
        out.push_back(call.machine.filter(filter, item, arguments));
    return Value::iterator(std::move(out));
}

// select, reject, selectattr, rejectattr
Value select(const Call& call) {
    const bool by_attribute = call.name.ends_with("attr");
    const bool wanted = call.name.starts_with("select");
    const std::size_t skipped = by_attribute ? 1 : 0;
    const Values& positional = call.arguments.positional;
    if (positional.size() < skipped) throw Fault(call.callee() + " needs an attribute");
    const bool tests = positional.size() > skipped;
    const std::string test = tests ? text_argument(positional[skipped], call.callee()).bytes() : "";
    if (tests && !is_test(test)) throw Fault("there is no test '" + test + "'");
    const CallArguments arguments = rest(call.arguments, skipped + (tests ? 1 : 0));
    Values out;
    for (const Value& item : call.items()) {
        call.machine.charge(2);
        const Value subject = by_attribute ? by_path(call.machine, item, positional[0]) : item;
        if ((tests ? call.machine.test(test, subject, arguments) : truth(subject)) == wanted)
            out.push_back(item);
    }
    return Value::iterator(std::move(out));
}

Value list_filter(const Call& call) {
    call.bind({});
    return Value::list(call.items());
}

Value length_filter(const Call& call) {
    call.bind({});
    if (call.input.is(Kind::string)) call.machine.charge_text(call.input.text().size());
    return Value::from(length(call.input));
}

Value join_filter(const Call& call) {
    const auto bound = call.bind({"d", "attribute"});
    const bool by_attribute = bound[1] && !bound[1]->is(Kind::none);
    std::vector<Text> parts;
    for (const Value& item : call.items())
        parts.push_back(to_text(by_attribute ? by_path(call.machine, item, *bound[1]) : item));
    return call.result(join(call.machine, bound[0] ? to_text(*bound[0]) : Text(), parts));
}

Value sum(const Call& call) {
    const auto bound = call.bind({"attribute", "start"});
    const bool by_attribute = bound[0] && !bound[0]->is(Kind::none);
    Value total = bound[1] ? *bound[1] : Value::from(std::int64_t{0});
    if (total.is(Kind::string)) throw Fault("sum does not add strings");
    for (const Value& item : call.items())
        total =
            binary(call.machine, "+", total, by_attribute ? by_path(call.machine, item, *bound[0]) : item);
    return total;
}

}  // namespace recto::jinja::filters
