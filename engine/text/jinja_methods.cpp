// Methods of Python's values. Names that Python has and this interpreter lacks are known, so that calling one
// is a named error instead of "undefined".
#include <algorithm>
#include <array>

#include "engine/text/jinja_machine.h"
#include "engine/text/jinja_unicode.h"

namespace recto::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

bool in(std::string_view name, Names names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

struct Call {
    Machine& machine;
    const std::string& name;
    const CallArguments& arguments;

    std::size_t count() const { return arguments.positional.size(); }
    const Value& at(std::size_t i) const { return arguments.positional[i]; }

    void expect(std::size_t least, std::size_t most) const {
        if (!arguments.named.empty()) throw Fault("'" + name + "' takes no named arguments");
        if (count() < least || count() > most) throw Fault("'" + name + "' got a wrong number of arguments");
    }
    const Text& text(std::size_t i) const { return text_argument(at(i), "'" + name + "'"); }
    std::int64_t integer(std::size_t i) const { return integer_argument(at(i), "'" + name + "'"); }
};

// ---- str ----

// A range of characters as find(sub, start, end) takes it, in bytes.
struct Window {
    std::size_t begin, end;
    bool valid;
};

Window window(const std::vector<std::size_t>& starts, const Call& call, std::size_t first) {
    const auto length = static_cast<std::int64_t>(starts.size()) - 1;
    const auto bound = [&](std::size_t i, std::int64_t otherwise) {
        if (i >= call.count() || call.at(i).is(Kind::none)) return otherwise;
        const std::int64_t index = call.integer(i);
        return index < 0 ? std::max<std::int64_t>(0, index + length) : index;
    };
    const std::int64_t begin = bound(first, 0), end = std::min(bound(first + 1, length), length);
    if (begin > end) return {0, 0, false};
    return {starts[static_cast<std::size_t>(begin)], starts[static_cast<std::size_t>(end)], true};
}

Value find(const Call& call, const Text& text, bool backwards, bool must_exist) {
    call.expect(1, 3);
    const auto starts = code_point_starts(text.bytes());
    const Window part = window(starts, call, 1);
    std::int64_t result = -1;
    if (part.valid) {
        const auto view = std::string_view(text.bytes()).substr(part.begin, part.end - part.begin);
        const std::size_t found =
            backwards ? view.rfind(call.text(0).bytes()) : view.find(call.text(0).bytes());
        if (found != std::string_view::npos)
            result = std::lower_bound(starts.begin(), starts.end(), part.begin + found) - starts.begin();
    } else {
        call.text(0);
    }
    if (result < 0 && must_exist) throw Fault("'" + call.name + "' did not find the text");
    return Value::from(result);
}

Value count(const Call& call, const Text& text) {
    call.expect(1, 3);
    const auto starts = code_point_starts(text.bytes());
    const Window part = window(starts, call, 1);
    const std::string& wanted = call.text(0).bytes();
    if (!part.valid) return Value::from(std::int64_t{0});
    const auto view = std::string_view(text.bytes()).substr(part.begin, part.end - part.begin);
    if (wanted.empty()) return Value::from(count_code_points(view) + 1);
    std::int64_t result = 0;
    for (std::size_t at = view.find(wanted); at != std::string_view::npos;
         at = view.find(wanted, at + wanted.size()))
        ++result;
    return Value::from(result);
}

Value starts_or_ends(const Call& call, const Text& text, bool ends) {
    call.expect(1, 3);
    const auto starts = code_point_starts(text.bytes());
    const Window part = window(starts, call, 1);
    const auto view = std::string_view(text.bytes()).substr(part.begin, part.end - part.begin);
    const auto matches = [&](const Value& value) {
        const std::string& affix = text_argument(value, "'" + call.name + "'").bytes();
        return part.valid && (ends ? view.ends_with(affix) : view.starts_with(affix));
    };
    if (!call.at(0).is(Kind::tuple)) return Value::from(matches(call.at(0)));
    const Values& choices = call.at(0).items();
    return Value::from(std::any_of(choices.begin(), choices.end(), matches));
}

Value strip(const Call& call, const Text& text) {
    call.expect(0, 1);
    const bool has_set = call.count() > 0 && !call.at(0).is(Kind::none);
    const std::string* characters = has_set ? &call.text(0).bytes() : nullptr;
    if (characters != nullptr) call.machine.charge(static_cast<std::int64_t>(characters->size()));
    return Value::from(jinja::strip(text, characters, call.name != "rstrip", call.name != "lstrip"));
}

Values split_at(const Text& text, const std::string& separator, std::int64_t limit, bool backwards) {
    const std::string& bytes = text.bytes();
    Values parts;
    if (!backwards) {
        std::size_t at = 0;
        for (std::size_t found; limit-- != 0 && (found = bytes.find(separator, at)) != std::string::npos;) {
            parts.push_back(Value::from(text.slice(at, found)));
            at = found + separator.size();
        }
        parts.push_back(Value::from(text.slice(at, bytes.size())));
        return parts;
    }
    std::size_t end = bytes.size();
    while (limit-- != 0 && end >= separator.size()) {
        const std::size_t found = bytes.rfind(separator, end - separator.size());
        if (found == std::string::npos) break;
        parts.push_back(Value::from(text.slice(found + separator.size(), end)));
        end = found;
    }
    parts.push_back(Value::from(text.slice(0, end)));
    std::reverse(parts.begin(), parts.end());
    return parts;
}

Values split_at_space(const Text& text, std::int64_t limit, bool backwards) {
    const std::string& bytes = text.bytes();
    const auto starts = code_point_starts(bytes);
    const auto space = [&](std::size_t i) { return is_space(code_point_at(bytes, starts[i]).value); };
    Values parts;
    std::size_t begin = 0, end = starts.size() - 1;
    while (true) {
        if (!backwards) {
            while (begin < end && space(begin))
                ++begin;
            if (begin == end) break;
            std::size_t stop = begin;
            while (stop < end && !space(stop))
                ++stop;
            if (limit-- == 0) stop = end;
            parts.push_back(Value::from(text.slice(starts[begin], starts[stop])));
            begin = stop;
        } else {
            while (end > begin && space(end - 1))
                --end;
            if (begin == end) break;
            std::size_t stop = end;
            while (stop > begin && !space(stop - 1))
                --stop;
            if (limit-- == 0) stop = begin;
            parts.push_back(Value::from(text.slice(starts[stop], starts[end])));
            end = stop;
        }
    }
    if (backwards) std::reverse(parts.begin(), parts.end());
    return parts;
}

Value split(const Call& call, const Text& text) {
    const auto bound = bind(call.arguments, {"sep", "maxsplit"}, call.name);
    const std::int64_t limit = bound[1] ? integer_argument(*bound[1], call.name) : -1;
    const bool backwards = call.name == "rsplit";
    Values parts;
    if (!bound[0] || bound[0]->is(Kind::none)) {
        parts = split_at_space(text, std::max<std::int64_t>(limit, -1), backwards);
    } else {
        const std::string& separator = text_argument(*bound[0], call.name).bytes();
        if (separator.empty()) throw Fault("'" + call.name + "' got an empty separator");
        parts = split_at(text, separator, std::max<std::int64_t>(limit, -1), backwards);
    }
    call.machine.charge(static_cast<std::int64_t>(parts.size()) * 8);
    return Value::list(std::move(parts));
}

Value partition(const Call& call, const Text& text) {
    call.expect(1, 1);
    const std::string& separator = call.text(0).bytes();
    if (separator.empty()) throw Fault("'" + call.name + "' got an empty separator");
    const bool backwards = call.name == "rpartition";
    const std::size_t found = backwards ? text.bytes().rfind(separator) : text.bytes().find(separator);
    const auto part = [&](std::size_t begin, std::size_t end) { return Value::from(text.slice(begin, end)); };
    if (found == std::string::npos) {
        Values parts(3, Value::literal(""));
        parts[backwards ? 2 : 0] = Value::from(text);
        return Value::tuple(std::move(parts));
    }
    const std::size_t after = found + separator.size();
    return Value::tuple({part(0, found), call.at(0), part(after, text.size())});
}

// ljust, rjust, center, zfill
Value pad(const Call& call, const Text& text) {
    const bool zeros = call.name == "zfill";
    call.expect(1, zeros ? 1 : 2);
    const auto size = static_cast<std::int64_t>(count_code_points(text.bytes()));
    const std::int64_t missing = std::max<std::int64_t>(0, call.integer(0) - size);
    const Text fill = call.count() > 1 ? call.text(1) : Text(zeros ? "0" : " ", false);
    if (count_code_points(fill.bytes()) != 1) throw Fault("'" + call.name + "' needs one fill character");
    std::int64_t left = missing;
    if (call.name == "ljust") left = 0;
    if (call.name == "center") left = missing / 2 + (missing & (size + missing) & 1);
    const bool has_sign = zeros && (text.bytes().starts_with("-") || text.bytes().starts_with("+"));
    Text out = has_sign ? text.slice(0, 1) : Text();
    out.append(repeat(call.machine, fill, left));
    out.append(text, has_sign ? 1 : 0, text.size());
    out.append(repeat(call.machine, fill, missing - left));
    return call.machine.make_text(std::move(out));
}

Value remove_affix(const Call& call, const Text& text) {
    call.expect(1, 1);
    const std::string& affix = call.text(0).bytes();
    if (call.name == "removeprefix" && text.bytes().starts_with(affix))
        return Value::from(text.slice(affix.size(), text.size()));
    if (call.name == "removesuffix" && text.bytes().ends_with(affix))
        return Value::from(text.slice(0, text.size() - affix.size()));
    return Value::from(text);
}

template <class Test>
bool all_characters(const std::string& bytes, Test test) {
    for (std::size_t at = 0; at < bytes.size();) {
        const CodePoint point = code_point_at(bytes, at);
        if (!test(point.value)) return false;
        at += point.length;
    }
    return true;
}

// isupper, islower, istitle: at least one cased character, and none of the other case.
bool cased_as(const std::string& bytes, bool (*wanted)(std::uint32_t), bool (*unwanted)(std::uint32_t)) {
    bool any = false;
    const bool clean = all_characters(bytes, [&](std::uint32_t c) {
        any |= wanted(c);
        return !unwanted(c) && !is_title(c);
    });
    return clean && any;
}

bool is_digit_character(std::uint32_t c) {
    if (is_other_number(c)) throw Fault("the class of numerals such as ½ is not supported");
    return is_decimal(c);
}

Value classify(const Call& call, const Text& text) {
    call.expect(0, 0);
    const std::string& bytes = text.bytes();
    const std::string& name = call.name;
    if (name == "isascii")
        return Value::from(all_characters(bytes, [](std::uint32_t c) { return c < 0x80; }));
    if (name == "isupper") return Value::from(cased_as(bytes, is_upper, is_lower));
    if (name == "islower") return Value::from(cased_as(bytes, is_lower, is_upper));
    if (bytes.empty()) return Value::from(name == "isprintable");
    if (name == "isspace") return Value::from(all_characters(bytes, is_space));
    if (name == "isalpha") return Value::from(all_characters(bytes, is_alpha));
    if (name == "isdecimal") return Value::from(all_characters(bytes, is_decimal));
    if (name == "isprintable") return Value::from(all_characters(bytes, is_printable));
    if (name == "isdigit" || name == "isnumeric")
        return Value::from(all_characters(bytes, is_digit_character));
    return Value::from(
        all_characters(bytes, [](std::uint32_t c) { return is_alpha(c) || is_digit_character(c); }));
}

Value join_method(const Call& call, const Text& separator) {
    call.expect(1, 1);
    std::vector<Text> parts;
    for (const Value& item : call.machine.items_of(call.at(0)))
        parts.push_back(text_argument(item, "'join'"));
    return Value::from(join(call.machine, separator, parts));
}

Value replace_method(const Call& call, const Text& text) {
    call.expect(2, 3);
    const std::int64_t limit = call.count() > 2 ? call.integer(2) : -1;
    return Value::from(
        replace(call.machine, text, call.text(0).bytes(), call.text(1), std::max<std::int64_t>(limit, -1)));
}

Value split_lines_method(const Call& call, const Text& text) {
    const auto bound = bind(call.arguments, {"keepends"}, call.name);
    Values lines = split_lines(text, bound[0] && truth(*bound[0]));
    call.machine.charge(static_cast<std::int64_t>(lines.size()) * 8);
    return Value::list(std::move(lines));
}

Value change_case(const Call& call, const Text& text) {
    call.expect(0, 0);
    if (call.name == "upper") return Value::from(upper(text));
    if (call.name == "lower") return Value::from(lower(text));
    if (call.name == "title") return Value::from(title(text));
    if (call.name == "swapcase") return Value::from(swap_case(text));
    return Value::from(capitalize(text));
}

constexpr std::array string_methods = {
    std::string_view("capitalize"),   std::string_view("casefold"),     std::string_view("center"),
    std::string_view("count"),        std::string_view("encode"),       std::string_view("endswith"),
    std::string_view("expandtabs"),   std::string_view("find"),         std::string_view("format"),
    std::string_view("format_map"),   std::string_view("index"),        std::string_view("isalnum"),
    std::string_view("isalpha"),      std::string_view("isascii"),      std::string_view("isdecimal"),
    std::string_view("isdigit"),      std::string_view("isidentifier"), std::string_view("islower"),
    std::string_view("isnumeric"),    std::string_view("isprintable"),  std::string_view("isspace"),
    std::string_view("istitle"),      std::string_view("isupper"),      std::string_view("join"),
    std::string_view("ljust"),        std::string_view("lower"),        std::string_view("lstrip"),
    std::string_view("maketrans"),    std::string_view("partition"),    std::string_view("removeprefix"),
    std::string_view("removesuffix"), std::string_view("replace"),      std::string_view("rfind"),
    std::string_view("rindex"),       std::string_view("rjust"),        std::string_view("rpartition"),
    std::string_view("rsplit"),       std::string_view("rstrip"),       std::string_view("split"),
    std::string_view("splitlines"),   std::string_view("startswith"),   std::string_view("strip"),
    std::string_view("swapcase"),     std::string_view("title"),        std::string_view("translate"),
    std::string_view("upper"),        std::string_view("zfill"),
};

[[noreturn]] void unsupported(const std::string& name, const Value& self) {
    throw Fault("the method '" + name + "' of " + type_name(self) + " is not supported");
}

Value call_string(const Call& call, const Value& self) {
    if (self.markup) throw Fault("methods of a string marked safe are not supported");
    const Text& text = self.text();
    const std::string& name = call.name;
    call.machine.charge_text(text.size() * 4);
    if (in(name, {"find", "index"})) return find(call, text, false, name == "index");
    if (in(name, {"rfind", "rindex"})) return find(call, text, true, name == "rindex");
    if (name == "count") return count(call, text);
    if (in(name, {"startswith", "endswith"})) return starts_or_ends(call, text, name == "endswith");
    if (in(name, {"strip", "lstrip", "rstrip"})) return strip(call, text);
    if (in(name, {"split", "rsplit"})) return split(call, text);
    if (in(name, {"partition", "rpartition"})) return partition(call, text);
    if (in(name, {"ljust", "rjust", "center", "zfill"})) return pad(call, text);
    if (in(name, {"removeprefix", "removesuffix"})) return remove_affix(call, text);
    if (in(name, {"upper", "lower", "title", "swapcase", "capitalize"})) return change_case(call, text);
    if (in(name, {"isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric",
                  "isprintable", "isspace", "isupper"}))
        return classify(call, text);
    if (name == "join") return join_method(call, text);
    if (name == "replace") return replace_method(call, text);
    if (name == "splitlines") return split_lines_method(call, text);
    if (name == "format") return brace_format(call.machine, text, call.arguments);
    unsupported(name, self);
}

// ---- dict, list, tuple ----

Value make_view(Values items, std::int64_t which) {
    Value view = Value::sequence(Kind::view, std::move(items));
    view.integer = which;
    return view;
}

Value call_dict(const Call& call, const Value& self) {
    const Dict& dict = self.entries();
    const std::string& name = call.name;
    if (name == "get") {
        call.expect(1, 2);
        if (const Value* value = dict.find(call.at(0))) return *value;
        return call.count() > 1 ? call.at(1) : Value::none();
    }
    if (!in(name, {"keys", "values", "items", "copy"})) unsupported(name, self);
    call.expect(0, 0);
    call.machine.charge(static_cast<std::int64_t>(dict.entries.size()) * 4);
    if (name == "copy") return self;
    Values items;
    for (const auto& [key, value] : dict.entries)
        items.push_back(name == "keys" ? key : name == "values" ? value : Value::tuple({key, value}));
    return make_view(std::move(items), name == "keys" ? 0 : name == "values" ? 1 : 2);
}

Value call_sequence(const Call& call, const Value& self) {
    const Values& items = self.items();
    const std::string& name = call.name;
    call.machine.charge(static_cast<std::int64_t>(items.size()));
    if (name == "copy") {
        call.expect(0, 0);
        return self;
    }
    if (name == "count") {
        call.expect(1, 1);
        return Value::from(static_cast<std::int64_t>(std::count_if(
            items.begin(), items.end(), [&](const Value& item) { return equal(item, call.at(0)); })));
    }
    call.expect(1, 1);
    const auto place =
        std::find_if(items.begin(), items.end(), [&](const Value& item) { return equal(item, call.at(0)); });
    if (place == items.end()) throw Fault("'index' did not find the item");
    return Value::from(static_cast<std::int64_t>(place - items.begin()));
}

// ---- loop, cycler ----

bool is_scalar(const Value& value) {
    return value.is_number() || value.is(Kind::string) || value.is(Kind::none) || value.is(Kind::undefined);
}

Value call_loop_method(const Call& call, const Value& self) {
    const Loop& loop = self.as<Loop>();
    if (!call.arguments.named.empty()) throw Fault("'" + call.name + "' takes no named arguments");
    if (call.name == "cycle") {
        if (call.count() == 0) throw Fault("loop.cycle needs items");
        return call.at(loop.index % call.count());
    }
    if (!std::all_of(call.arguments.positional.begin(), call.arguments.positional.end(), is_scalar))
        throw Fault("loop.changed is supported for strings and numbers only");
    const Values& now = call.arguments.positional;
    const bool same = loop.last_changed && loop.last_changed->size() == now.size() &&
                      std::equal(now.begin(), now.end(), loop.last_changed->begin(), equal);
    loop.last_changed = now;
    return Value::from(!same);
}

Value call_cycler(const Call& call, const Value& self) {
    call.expect(0, 0);
    const Cycler& cycler = self.as<Cycler>();
    if (call.name == "reset") {
        cycler.next = 0;
        return Value::none();
    }
    const Values& items = cycler.items.items();
    const std::size_t at = cycler.next;
    cycler.next = (at + 1) % items.size();
    return items[at];
}

}  // namespace

bool has_method(const Value& object, std::string_view name) {
    switch (object.kind) {
        case Kind::string:
            return std::find(string_methods.begin(), string_methods.end(), name) != string_methods.end();
        case Kind::dict:
            return in(name, {"get", "keys", "values", "items", "copy", "fromkeys"});
        case Kind::list:
            return in(name, {"copy", "count", "index"});
        case Kind::tuple:
            return in(name, {"count", "index"});
        case Kind::range:
            return in(name, {"start", "stop", "step", "count", "index"});
        case Kind::boolean:
        case Kind::integer:
            return in(name, {"real", "imag", "numerator", "denominator", "bit_length", "bit_count",
                             "conjugate", "to_bytes", "from_bytes", "as_integer_ratio"});
        case Kind::real:
            return in(name,
                      {"real", "imag", "is_integer", "hex", "fromhex", "conjugate", "as_integer_ratio"});
        case Kind::view:
            return in(name, {"isdisjoint", "mapping"});
        case Kind::macro:
            return in(name, {"name", "arguments", "catch_kwargs", "catch_varargs", "caller"});
        case Kind::iterator:
            return in(name, {"send", "throw", "close"});
        case Kind::cycler:
            return in(name, {"next", "reset", "current", "items", "pos"});
        default:
            return false;
    }
}

Value call_method(Machine& machine, const Method& method, const CallArguments& arguments) {
    const Call call{machine, method.name, arguments};
    const Value& self = method.self;
    switch (self.kind) {
        case Kind::string:
            return call_string(call, self);
        case Kind::dict:
            return call_dict(call, self);
        case Kind::list:
        case Kind::tuple:
            return call_sequence(call, self);
        case Kind::loop:
            return call_loop_method(call, self);
        case Kind::cycler:
            if (in(method.name, {"next", "reset"})) return call_cycler(call, self);
            break;
        default:
            break;
    }
    unsupported(method.name, self);
}

Value loop_attribute(const Value& handle, std::string_view name) {
    const Loop& loop = handle.as<Loop>();
    const Values& items = loop.items.items();
    const std::size_t size = items.size(), index = loop.index;
    if (name == "index") return Value::from(index + 1);
    if (name == "index0") return Value::from(index);
    if (name == "revindex")
        return Value::from(static_cast<std::int64_t>(size) - static_cast<std::int64_t>(index));
    if (name == "revindex0")
        return Value::from(static_cast<std::int64_t>(size) - static_cast<std::int64_t>(index) - 1);
    if (name == "first") return Value::from(index == 0);
    if (name == "last") return Value::from(index + 1 >= size);
    if (name == "length") return Value::from(size);
    if (name == "depth") return Value::from(std::int64_t{loop.depth} + 1);
    if (name == "depth0") return Value::from(std::int64_t{loop.depth});
    if (name == "previtem")
        return index > 0 && index - 1 < size ? items[index - 1]
                                             : Value::undefined("there is no previous item: it");
    if (name == "nextitem")
        return index + 1 < size ? items[index + 1] : Value::undefined("there is no next item: it");
    if (name == "cycle" || name == "changed") return Value::method(handle, std::string(name));
    return Value::undefined("the loop's '" + std::string(name) + "'");
}

}  // namespace recto::jinja
