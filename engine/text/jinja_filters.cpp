// Filters, as jinja2 defines them (tojson as Hugging Face does).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "engine/text/jinja_machine.h"
#include "engine/text/jinja_unicode.h"

namespace recto::jinja {
namespace {

struct Call {
    Machine& machine;
    const std::string& name;
    const Value& input;
    const CallArguments& arguments;

    std::vector<std::optional<Value>> bind(std::initializer_list<std::string_view> names,
                                           std::size_t required = 0) const {
        return jinja::bind(arguments, names, "the filter '" + name + "'", required);
    }
    std::string callee() const { return "the filter '" + name + "'"; }
    std::int64_t integer(const std::optional<Value>& value, std::int64_t otherwise) const {
        return value ? integer_argument(*value, callee()) : otherwise;
    }
    Text text() const { return to_text(input); }
    Values items() const { return machine.items_of(input); }
    Value result(Text text) const { return machine.make_text(std::move(text)); }
};

bool flag(const std::optional<Value>& value, bool otherwise) {
    return value ? truth(*value) : otherwise;
}

// ---- attributes by path: "a.b.0" ----

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

// ---- text ----

Value trim(const Call& call) {
    const auto bound = call.bind({"chars"});
    const bool has_set = bound[0] && !bound[0]->is(Kind::none);
    const std::string* characters = has_set ? &text_argument(*bound[0], call.callee()).bytes() : nullptr;
    Value out = call.result(strip(call.text(), characters, true, true));
    out.markup = call.input.markup;
    return out;
}

// Capitalizes each word; words end at white space, hyphens and opening brackets.
Text title_filter(const Text& text) {
    Text out, word;
    const auto starts = code_point_starts(text.bytes());
    const auto flush = [&] {
        if (word.empty()) return;
        const auto cuts = code_point_starts(word.bytes());
        out.append(upper(word.slice(0, cuts[1])));
        out.append(lower(word.slice(cuts[1], word.size())));
        word = Text();
    };
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        const std::uint32_t c = code_point_at(text.bytes(), starts[i]).value;
        if (c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c)) {
            flush();
            out.append(text, starts[i], starts[i + 1]);
        } else {
            word.append(text, starts[i], starts[i + 1]);
        }
    }
    flush();
    return out;
}

Value change_case(const Call& call) {
    call.bind({});
    const Text text = call.text();
    call.machine.charge_text(text.size() * 4);
    Value out = call.result(call.name == "upper"        ? upper(text)
                            : call.name == "lower"      ? lower(text)
                            : call.name == "capitalize" ? capitalize(text)
                                                        : title_filter(text));
    out.markup = call.input.markup;
    return out;
}

Value replace_filter(const Call& call) {
    const auto bound = call.bind({"old", "new", "count"}, 2);
    const bool limited = bound[2] && !bound[2]->is(Kind::none);
    const std::int64_t count = limited ? std::max<std::int64_t>(-1, call.integer(bound[2], -1)) : -1;
    return call.result(
        replace(call.machine, call.text(), to_text(*bound[0]).bytes(), to_text(*bound[1]), count));
}

Value indent(const Call& call) {
    const auto bound = call.bind({"width", "first", "blank"});
    if (call.input.markup) throw Fault("indent on a string marked safe is not supported");
    Text indention(std::string(4, ' '), false);
    if (bound[0] && bound[0]->is(Kind::string))
        indention = bound[0]->text();
    else if (bound[0])
        indention = repeat(call.machine, Text(" ", false), call.integer(bound[0], 4));
    Text text = text_argument(call.input, call.callee());
    text.append("\n", false);  // so that an empty text has one line
    const Values lines = split_lines(text, false);
    const bool blank = flag(bound[2], false);
    Text out;
    if (flag(bound[1], false)) out.append(indention);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const Text& line = lines[i].text();
        if (i > 0) out.append("\n", false);
        if (i > 0 && (blank || !line.empty())) out.append(indention);
        out.append(line);
        call.machine.charge_text(line.size() + indention.size());
    }
    return call.result(std::move(out));
}

Value join_filter(const Call& call) {
    const auto bound = call.bind({"d", "attribute"});
    const bool by_attribute = bound[1] && !bound[1]->is(Kind::none);
    std::vector<Text> parts;
    for (const Value& item : call.items())
        parts.push_back(to_text(by_attribute ? by_path(call.machine, item, *bound[1]) : item));
    return call.result(join(call.machine, bound[0] ? to_text(*bound[0]) : Text(), parts));
}

Value center(const Call& call) {
    const auto bound = call.bind({"width"});
    const Value text = Value::from(call.text());
    const CallArguments arguments{{Value::from(call.integer(bound[0], 80))}, {}};
    return call_method(call.machine, Method{text, "center"}, arguments);
}

Value truncate(const Call& call) {
    const auto bound = call.bind({"length", "killwords", "end", "leeway"});
    const Text& text = text_argument(call.input, call.callee());
    const Text end = bound[2] ? text_argument(*bound[2], call.callee()) : Text("...", false);
    const std::int64_t limit = call.integer(bound[0], 255);
    const bool has_leeway = bound[3] && !bound[3]->is(Kind::none);
    const std::int64_t leeway = has_leeway ? call.integer(bound[3], 5) : 5;
    const auto end_size = static_cast<std::int64_t>(count_code_points(end.bytes()));
    if (limit < end_size || leeway < 0) throw Fault("truncate needs a length that holds its ending");
    const auto starts = code_point_starts(text.bytes());
    const auto size = static_cast<std::int64_t>(starts.size()) - 1;
    if (size - leeway <= limit) return call.input;
    std::size_t cut = starts[static_cast<std::size_t>(std::min(size, limit - end_size))];
    if (!flag(bound[1], false)) {
        const std::size_t blank = cut == 0 ? std::string::npos : text.bytes().rfind(' ', cut - 1);
        if (blank != std::string::npos) cut = blank;
    }
    Text out = text.slice(0, cut);
    out.append(end);
    return call.result(std::move(out));
}

bool is_word_character(std::uint32_t c) {
    return c == '_' || is_alpha(c) || is_decimal(c) || is_other_number(c);
}

Value count_words(const Call& call) {
    call.bind({});
    const Text text = call.text();
    std::int64_t words = 0;
    bool inside = false;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = code_point_at(text.bytes(), at);
        const bool word = is_word_character(point.value);
        words += word && !inside ? 1 : 0;
        inside = word;
        at += point.length;
    }
    return Value::from(words);
}

Value format_filter(const Call& call) {
    if (!call.arguments.positional.empty() && !call.arguments.named.empty())
        throw Fault("format takes positional or named arguments, not both");
    Value values = Value::tuple(call.arguments.positional);
    if (!call.arguments.named.empty()) {
        Dict dict;
        for (const auto& [name, value] : call.arguments.named)
            dict.set(Value::literal(name), value);
        values = Value::dict(std::move(dict));
    }
    return percent_format(call.machine, call.text(), values);
}

Value mark_safe(const Call& call) {
    call.bind({});
    Value out = Value::from(call.text());
    out.markup = true;
    return out;
}

Value string_filter(const Call& call) {
    call.bind({});
    return call.input.is(Kind::string) ? call.input : call.result(call.text());
}

// ---- numbers ----

// Python's float(text); empty if it is none.
std::optional<double> parse_real(std::string text) {
    const Text stripped = strip(Text(text, false), nullptr, true, true);
    text = stripped.bytes();
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digit = [&](std::size_t j) { return j < text.size() && text[j] >= '0' && text[j] <= '9'; };
        if (text[i] == '_' && (i == 0 || !digit(i - 1) || !digit(i + 1))) return std::nullopt;
    }
    std::erase(text, '_');
    std::string name = lower(Text(text, false)).bytes();
    const bool negative = name.starts_with("-");
    if (negative || name.starts_with("+")) name.erase(0, 1);
    if (name == "inf" || name == "infinity") return negative ? -HUGE_VAL : HUGE_VAL;
    if (name == "nan") return std::nan("");
    if (name.empty() || (name[0] != '.' && (name[0] < '0' || name[0] > '9'))) return std::nullopt;
    double value = 0;
    const auto result = std::from_chars(name.data(), name.data() + name.size(), value);
    if (result.ptr != name.data() + name.size()) return std::nullopt;
    if (result.ec == std::errc::result_out_of_range) value = std::strtod(name.c_str(), nullptr);
    return negative ? -value : value;
}

// Python's int(text, base); empty if it is none. Fault beyond 64 bits.
std::optional<std::int64_t> parse_integer(const std::string& given, int base) {
    std::string text = lower(strip(Text(given, false), nullptr, true, true)).bytes();
    const bool negative = text.starts_with("-");
    if (negative || text.starts_with("+")) text.erase(0, 1);
    const char* prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : nullptr;
    const bool prefixed = prefix != nullptr && text.starts_with(prefix);
    if (prefixed) text.erase(0, 2);
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '_' && ((i == 0 && !prefixed) || i + 1 == text.size() || text[i + 1] == '_'))
            return std::nullopt;
    std::erase(text, '_');
    if (text.empty() || text[0] == '-') return std::nullopt;
    if (negative) text.insert(0, "-");
    std::int64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (result.ptr != text.data() + text.size()) return std::nullopt;
    if (result.ec == std::errc::result_out_of_range)
        throw Fault("the number " + given + " does not fit 64 bits");
    return value;
}

std::optional<std::int64_t> truncated(double value) {
    if (std::isnan(value) || std::isinf(value)) return std::nullopt;
    if (std::fabs(value) >= 9.2e18) throw Fault("a number does not fit 64 bits");
    return static_cast<std::int64_t>(value);
}

Value to_integer(const Call& call) {
    const auto bound = call.bind({"default", "base"});
    const Value otherwise = bound[0] ? *bound[0] : Value::from(std::int64_t{0});
    std::optional<std::int64_t> number;
    bool user = call.input.user;
    if (call.input.is_integral()) {
        number = call.input.as_integer();
    } else if (call.input.is(Kind::real)) {
        if (std::isinf(call.input.real)) throw Fault("infinity cannot become an integer");
        number = truncated(call.input.real);
    } else if (call.input.is(Kind::string)) {
        const std::int64_t base = call.integer(bound[1], 10);
        if (base < 2 || base > 36) throw Fault("int supports bases 2 to 36");
        number = parse_integer(call.input.bytes(), static_cast<int>(base));
        if (!number)
            if (const auto real = parse_real(call.input.bytes())) {
                if (std::isinf(*real)) return otherwise;
                number = truncated(*real);
            }
        user = call.input.text().any_user();
    } else if (call.input.is(Kind::undefined)) {
        throw Fault(call.input.name() + " is undefined");
    }
    if (!number) return otherwise;
    Value out = Value::from(*number);
    out.user = user;
    return out;
}

Value to_real(const Call& call) {
    const auto bound = call.bind({"default"});
    std::optional<double> number;
    bool user = call.input.user;
    if (call.input.is_number()) {
        number = call.input.as_real();
    } else if (call.input.is(Kind::string)) {
        number = parse_real(call.input.bytes());
        user = call.input.text().any_user();
    } else if (call.input.is(Kind::undefined)) {
        throw Fault(call.input.name() + " is undefined");
    }
    if (!number) return bound[0] ? *bound[0] : Value::from(0.0);
    Value out = Value::from(*number);
    out.user = user;
    return out;
}

const Value& number_input(const Call& call) {
    if (call.input.is_number()) return call.input;
    if (call.input.is(Kind::undefined)) throw Fault(call.input.name() + " is undefined");
    throw Fault(call.callee() + " needs a number, not " + type_name(call.input));
}

Value absolute(const Call& call) {
    call.bind({});
    const Value& number = number_input(call);
    if (number.is(Kind::real)) return Value::from(std::fabs(number.real));
    return number.as_integer() < 0 ? negate(number) : Value::from(number.as_integer());
}

Value round_filter(const Call& call) {
    const auto bound = call.bind({"precision", "method"});
    const Value& number = number_input(call);
    const std::int64_t precision = call.integer(bound[0], 0);
    const std::string method = bound[1] ? text_argument(*bound[1], call.callee()).bytes() : "common";
    if (method != "common" && method != "ceil" && method != "floor")
        throw Fault("round knows the methods common, ceil and floor");
    if (precision < 0 || precision > 300) throw Fault("round supports precisions 0 to 300");
    if (method == "common") {
        if (number.is_integral()) return Value::from(number.as_integer());
        if (!std::isfinite(number.real)) return number;
        char buffer[1024];
        std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), number.real);
        return Value::from(std::strtod(buffer, nullptr));
    }
    const double scale = std::pow(10.0, static_cast<double>(precision));
    const double scaled = number.as_real() * scale;
    if (!std::isfinite(scaled)) throw Fault("round got a number that is not finite");
    return Value::from((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
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

// ---- sequences ----

Value default_filter(const Call& call) {
    const auto bound = call.bind({"default_value", "boolean"});
    const bool replaced = call.input.is(Kind::undefined) || (flag(bound[1], false) && !truth(call.input));
    if (!replaced) return call.input;
    return bound[0] ? *bound[0] : Value::literal("");
}

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

void refuse_iterator(const Call& call) {
    if (call.input.is(Kind::iterator))
        throw Fault(call.callee() + " does not work on a generator: use |list before it");
}

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

// The arguments behind the first `used` positional ones.
CallArguments rest(const CallArguments& arguments, std::size_t used) {
    CallArguments out;
    out.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used),
                          arguments.positional.end());
    out.named = arguments.named;
    return out;
}

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

using Function = Value (*)(const Call&);

struct Entry {
    std::string_view name;
    Function function;
};

Value json_filter(const Call& call) {
    return to_json(call.machine, call.input, call.arguments);
}

Value unsupported(const Call& call) {
    throw Fault(call.callee() + " is not supported");
}

// Sorted by name. Filters that no chat template uses and that are not worth their code are named as
// unsupported.
constexpr Entry filters[] = {
    {"abs", absolute},
    {"attr", unsupported},
    {"batch", batch},
    {"capitalize", change_case},
    {"center", center},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dict_sort},
    {"e", unsupported},
    {"escape", unsupported},
    {"filesizeformat", unsupported},
    {"first", first},
    {"float", to_real},
    {"forceescape", unsupported},
    {"format", format_filter},
    {"groupby", group_by},
    {"indent", indent},
    {"int", to_integer},
    {"items", items_filter},
    {"join", join_filter},
    {"last", last},
    {"length", length_filter},
    {"list", list_filter},
    {"lower", change_case},
    {"map", map},
    {"max", least_or_most},
    {"min", least_or_most},
    {"pprint", unsupported},
    {"random", unsupported},
    {"reject", select},
    {"rejectattr", select},
    {"replace", replace_filter},
    {"reverse", reverse},
    {"round", round_filter},
    {"safe", mark_safe},
    {"select", select},
    {"selectattr", select},
    {"slice", slice_filter},
    {"sort", sort},
    {"string", string_filter},
    {"striptags", unsupported},
    {"sum", sum},
    {"title", change_case},
    {"tojson", json_filter},
    {"trim", trim},
    {"truncate", truncate},
    {"unique", unique},
    {"upper", change_case},
    {"urlencode", unsupported},
    {"urlize", unsupported},
    {"wordcount", count_words},
    {"wordwrap", unsupported},
    {"xmlattr", unsupported},
};

const Entry* find_filter(std::string_view name) {
    const auto entry =
        std::lower_bound(std::begin(filters), std::end(filters), name,
                         [](const Entry& row, std::string_view wanted) { return row.name < wanted; });
    return entry != std::end(filters) && entry->name == name ? entry : nullptr;
}

}  // namespace

bool is_filter(std::string_view name) {
    return find_filter(name) != nullptr;
}

Value Machine::filter(const std::string& name, const Value& input, const CallArguments& arguments) {
    const Depth depth(*this);
    charge(2);
    const Entry* entry = find_filter(name);
    if (entry == nullptr) throw Fault("there is no filter '" + name + "'");
    return entry->function(Call{*this, name, input, arguments});
}

}  // namespace recto::jinja
