#include "engine/text/jinja_value.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja_unicode.h"

namespace recto::jinja {
namespace {

template <class Items>
int container_depth(const Items& items) {
    int depth = 0;
    for (const Value& item : items)
        depth = std::max(depth, depth_of(item));
    if (depth >= max_value_depth)
        throw Fault("values are nested deeper than " + std::to_string(max_value_depth) + " levels");
    return depth + 1;
}

bool has_items(const Value& value) {
    return value.is(Kind::list) || value.is(Kind::tuple) || value.is(Kind::view);
}

void append_items(Text& out, const Values& items, std::string_view open, std::string_view close,
                  bool trailing_comma) {
    out.append(open, false);
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out.append(", ", false);
        out.append(repr(items[i]));
    }
    if (trailing_comma) out.append(",", false);
    out.append(close, false);
}

Text repr_container(const Value& value) {
    Text out;
    switch (value.kind) {
        case Kind::list:
            append_items(out, value.items(), "[", "]", false);
            break;
        case Kind::tuple:
            append_items(out, value.items(), "(", ")", value.items().size() == 1);
            break;
        case Kind::view: {
            const std::string name = type_name(value);
            append_items(out, value.items(), name + "([", "])", false);
            break;
        }
        default: {
            assert(value.is(Kind::dict));
            out.append("{", false);
            const char* separator = "";
            for (const auto& [key, item] : value.entries().entries) {
                out.append(separator, false);
                out.append(repr(key));
                out.append(": ", false);
                out.append(repr(item));
                separator = ", ";
            }
            out.append("}", false);
        }
    }
    // One origin for the whole: a split inside would change how it is cut into tokens.
    return out.any_user() ? Text(out.bytes(), true) : out;
}

}  // namespace

Value Value::from(bool boolean) {
    Value value = of(Kind::boolean);
    value.integer = 0;
    value.boolean = boolean;
    return value;
}

Value Value::from(std::int64_t integer) {
    Value value = of(Kind::integer);
    value.integer = integer;
    return value;
}

Value Value::from(double real) {
    Value value = of(Kind::real);
    value.real = real;
    return value;
}

Value Value::from(Text text) {
    Value value = of(Kind::string);
    value.object = std::make_shared<const Text>(std::move(text));
    return value;
}

Value Value::undefined(std::string what) {
    Value value;
    value.object = std::make_shared<const std::string>(std::move(what));
    return value;
}

Value Value::function(std::string name) {
    Value value = of(Kind::function);
    value.object = std::make_shared<const std::string>(std::move(name));
    return value;
}

Value Value::sequence(Kind kind, Values items) {
    assert(kind == Kind::list || kind == Kind::tuple || kind == Kind::view);
    Value value = of(kind);
    const int depth = container_depth(items);
    value.object = std::make_shared<const List>(List{std::move(items), depth});
    return value;
}

Value Value::iterator(Values items) {
    Value value = of(Kind::iterator);
    const int depth = container_depth(items);
    value.object = std::make_shared<const Iterator>(Iterator{std::move(items), depth});
    return value;
}

Value Value::dict(Dict dict) {
    Value value = of(Kind::dict);
    value.object = std::make_shared<const Dict>(std::move(dict));
    return value;
}

Value Value::method(Value self, std::string name) {
    if (depth_of(self) >= max_value_depth) throw Fault("values are nested too deep");
    Value value = of(Kind::method);
    value.object = std::make_shared<const Method>(Method{std::move(self), std::move(name)});
    return value;
}

const Values& Value::items() const {
    assert(has_items(*this));
    return as<List>().items;
}

void Dict::set(const Value& key, Value value) {
    depth = std::max({depth, depth_of(key) + 1, depth_of(value) + 1});
    if (depth > max_value_depth)
        throw Fault("values are nested deeper than " + std::to_string(max_value_depth) + " levels");
    const auto [place, added] = index.try_emplace(hash_key(key), entries.size());
    if (added)
        entries.emplace_back(key, std::move(value));
    else
        entries[place->second].second = std::move(value);
}

const Value* Dict::find(const Value& key) const {
    const auto place = index.find(hash_key(key));
    return place == index.end() ? nullptr : &entries[place->second].second;
}

const Value* Dict::find(std::string_view key) const {
    const auto place = index.find("s" + std::string(key));
    return place == index.end() ? nullptr : &entries[place->second].second;
}

Value* Namespace::find(std::string_view name) {
    const auto place = std::find_if(attributes.begin(), attributes.end(),
                                    [&](const auto& attribute) { return attribute.first == name; });
    return place == attributes.end() ? nullptr : &place->second;
}

void Namespace::set(const std::string& name, Value value) {
    if (Value* place = find(name))
        *place = std::move(value);
    else
        attributes.emplace_back(name, std::move(value));
}

const char* type_name(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
            return "Undefined";
        case Kind::none:
            return "NoneType";
        case Kind::boolean:
            return "bool";
        case Kind::integer:
            return "int";
        case Kind::real:
            return "float";
        case Kind::string:
            return "str";
        case Kind::list:
            return "list";
        case Kind::tuple:
            return "tuple";
        case Kind::dict:
            return "dict";
        case Kind::range:
            return "range";
        case Kind::view:
            return value.integer == 0 ? "dict_keys" : value.integer == 1 ? "dict_values" : "dict_items";
        case Kind::iterator:
            return "generator";
        case Kind::space:
            return "Namespace";
        case Kind::loop:
            return "LoopContext";
        case Kind::macro:
            return "Macro";
        case Kind::method:
            return "builtin_function_or_method";
        case Kind::function:
            return "function";
        case Kind::cycler:
            return "Cycler";
        case Kind::joiner:
            return "Joiner";
    }
    return "?";
}

int depth_of(const Value& value) {
    switch (value.kind) {
        case Kind::list:
        case Kind::tuple:
        case Kind::view:
            return value.as<List>().depth;
        case Kind::dict:
            return value.entries().depth;
        case Kind::iterator:
            return value.as<Iterator>().depth;
        case Kind::method:
            return depth_of(value.as<Method>().self) + 1;
        case Kind::loop:
        case Kind::cycler:
            return static_cast<int>(value.integer);
        default:
            return 0;
    }
}

bool truth(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
        case Kind::none:
            return false;
        case Kind::boolean:
            return value.boolean;
        case Kind::integer:
            return value.integer != 0;
        case Kind::real:
            return value.real != 0;
        case Kind::string:
            return !value.text().empty();
        case Kind::list:
        case Kind::tuple:
        case Kind::view:
            return !value.items().empty();
        case Kind::dict:
            return !value.entries().entries.empty();
        case Kind::range:
            return value.as<Range>().length > 0;
        case Kind::loop:
            throw Fault("the truth of a loop object is not supported");
        default:
            return true;
    }
}

std::string hash_key(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
            return "u";
        case Kind::none:
            return "n";
        case Kind::boolean:
        case Kind::integer:
            return "i" + std::to_string(value.as_integer());
        case Kind::real: {
            const double real = value.real;
            if (real == std::floor(real) && std::fabs(real) < 9.2e18)
                return "i" + std::to_string(static_cast<std::int64_t>(real));
            return "f" + format_real(real);
        }
        case Kind::string:
            return "s" + value.bytes();
        case Kind::tuple: {
            std::string key = "t";
            for (const Value& item : value.items()) {
                const std::string part = hash_key(item);
                key += std::to_string(part.size()) + ":" + part;
            }
            return key;
        }
        default:
            throw Fault(std::string("a ") + type_name(value) + " cannot be a dictionary key");
    }
}

Values iterate(const Value& value) {
    Values out;
    switch (value.kind) {
        case Kind::undefined:
            return out;
        case Kind::list:
        case Kind::tuple:
        case Kind::view:
            return value.items();
        case Kind::dict:
            for (const auto& entry : value.entries().entries)
                out.push_back(entry.first);
            return out;
        case Kind::string: {
            const Text& text = value.text();
            const auto starts = code_point_starts(text.bytes());
            for (std::size_t i = 0; i + 1 < starts.size(); ++i)
                out.push_back(Value::from(text.slice(starts[i], starts[i + 1])));
            return out;
        }
        case Kind::range: {
            const Range& range = value.as<Range>();
            for (std::int64_t i = 0; i < range.length; ++i)
                out.push_back(Value::from(range.at(i)));
            return out;
        }
        case Kind::iterator: {
            const Iterator& iterator = value.as<Iterator>();
            out.assign(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.next),
                       iterator.items.end());
            iterator.next = iterator.items.size();
            return out;
        }
        default:
            throw Fault(std::string("a ") + type_name(value) + " cannot be iterated over");
    }
}

std::int64_t length(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
            return 0;
        case Kind::string:
            return static_cast<std::int64_t>(count_code_points(value.bytes()));
        case Kind::list:
        case Kind::tuple:
        case Kind::view:
            return static_cast<std::int64_t>(value.items().size());
        case Kind::dict:
            return static_cast<std::int64_t>(value.entries().entries.size());
        case Kind::range:
            return value.as<Range>().length;
        default:
            throw Fault(std::string("a ") + type_name(value) + " has no length");
    }
}

Text to_text(const Value& value) {
    if (value.is(Kind::string)) return value.text();
    if (value.is(Kind::undefined)) return {};
    return repr(value);
}

Text repr(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
            return Text("Undefined", false);
        case Kind::none:
            return Text("None", value.user);
        case Kind::boolean:
            return Text(value.boolean ? "True" : "False", value.user);
        case Kind::integer:
            return Text(std::to_string(value.integer), value.user);
        case Kind::real:
            return Text(format_real(value.real), value.user);
        case Kind::string:
            if (value.markup) throw Fault("the repr of a string marked safe is not supported");
            return Text(repr_string(value.bytes()), value.text().any_user());
        case Kind::list:
        case Kind::tuple:
        case Kind::view:
        case Kind::dict:
            return repr_container(value);
        case Kind::range: {
            const Range& range = value.as<Range>();
            std::string out = "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
            if (range.step != 1) out += ", " + std::to_string(range.step);
            return Text(out + ")", false);
        }
        default:
            throw Fault(std::string("printing a ") + type_name(value) + " is not supported");
    }
}

std::string format_real(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    std::string text(buffer, end);
    const std::size_t e = text.find('e');
    const int exponent = std::stoi(text.substr(e + 1));
    std::string mantissa = text.substr(0, e);
    if (exponent < -4 || exponent >= 16) {
        std::snprintf(buffer, sizeof buffer, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
        return mantissa + buffer;
    }
    std::string sign;
    if (mantissa[0] == '-') {
        sign = "-";
        mantissa.erase(0, 1);
    }
    std::erase(mantissa, '.');
    if (exponent < 0)
        return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + mantissa;
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (mantissa.size() <= whole) return sign + mantissa + std::string(whole - mantissa.size(), '0') + ".0";
    return sign + mantissa.substr(0, whole) + "." + mantissa.substr(whole);
}

std::string repr_string(std::string_view bytes) {
    const bool single = bytes.find('\'') != std::string_view::npos;
    const char quote = single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    for (std::size_t at = 0; at < bytes.size();) {
        const CodePoint point = code_point_at(bytes, at);
        const std::uint32_t c = point.value;
        char escape[16];
        if (c == static_cast<std::uint32_t>(quote) || c == '\\')
            out += {'\\', static_cast<char>(c)};
        else if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (is_printable(c))
            out += bytes.substr(at, point.length);
        else {
            std::snprintf(escape, sizeof escape,
                          c < 0x100     ? "\\x%02x"
                          : c < 0x10000 ? "\\u%04x"
                                        : "\\U%08x",
                          c);
            out += escape;
        }
        at += point.length;
    }
    out += quote;
    return out;
}

bool any_user(const Value& value) {
    switch (value.kind) {
        case Kind::string:
            return value.text().any_user();
        case Kind::list:
        case Kind::tuple:
        case Kind::view:
            return std::any_of(value.items().begin(), value.items().end(), any_user);
        case Kind::dict: {
            const auto& entries = value.entries().entries;
            return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
                return any_user(entry.first) || any_user(entry.second);
            });
        }
        default:
            return value.user;
    }
}

}  // namespace recto::jinja
