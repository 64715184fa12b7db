// Global functions of a template, and the binding of arguments to parameters.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "engine/text/jinja_machine.h"
#include "kernels/error.h"

namespace recto::jinja {
namespace {

Value make_range(const CallArguments& arguments) {
    const std::size_t count = arguments.positional.size();
    if (count < 1 || count > 3 || !arguments.named.empty()) throw Fault("range takes one to three integers");
    const auto at = [&](std::size_t i) { return integer_argument(arguments.positional[i], "range"); };
    Range range{count > 1 ? at(0) : 0, count > 1 ? at(1) : at(0), count > 2 ? at(2) : 1, 0};
    if (range.step == 0) throw Fault("the step of range is zero");
    const auto wide = [](std::int64_t value) { return static_cast<long double>(value); };
    const long double span = (wide(range.stop) - wide(range.start)) / wide(range.step);
    if (span > static_cast<long double>(max_range))
        throw Fault("range is longer than " + std::to_string(max_range) + " items");
    if (span > 0) {
        const std::int64_t whole = static_cast<std::int64_t>(span);
        range.length = whole + (wide(whole) < span ? 1 : 0);
    }
    Value value = Value::of(Kind::range);
    value.object = std::make_shared<const Range>(range);
    return value;
}

// dict(iterable or mapping, **more), also the start of a namespace
Dict make_dict(Machine& machine, const CallArguments& arguments, const char* callee) {
    if (arguments.positional.size() > 1)
        throw Fault(std::string(callee) + " takes one positional argument at most");
    Dict dict;
    if (!arguments.positional.empty()) {
        const Value& source = arguments.positional[0];
        if (source.is(Kind::dict)) {
            dict = source.entries();
            machine.charge(static_cast<std::int64_t>(dict.entries.size()) * 4);
        } else {
            for (const Value& pair : machine.items_of(source)) {
                const Values items = machine.items_of(pair);
                if (items.size() != 2) throw Fault(std::string(callee) + " needs pairs of key and value");
                dict.set(items[0], items[1]);
            }
        }
    }
    for (const auto& [name, value] : arguments.named)
        dict.set(Value::literal(name), value);
    return dict;
}

Value make_space(Machine& machine, const CallArguments& arguments) {
    const Dict dict = make_dict(machine, arguments, "namespace");
    Value value = Value::of(Kind::space);
    value.space = machine.make_namespace();
    for (const auto& [key, item] : dict.entries) {
        if (!key.is(Kind::string)) throw Fault("a namespace needs names as keys");
        value.space->set(key.bytes(), item);
    }
    return value;
}

[[noreturn]] void raise(const CallArguments& arguments) {
    const auto bound = bind(arguments, {"message"}, "raise_exception", 1);
    throw Error(ErrorKind::input, "The chat template refuses these messages: " + to_text(*bound[0]).bytes());
}

std::string two_digits(int value, char fill = '0') {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, fill == '0' ? "%02d" : fill == ' ' ? "%2d" : "%d", value);
    return buffer;
}

// One conversion of strftime in the C locale: the program's own locale must not change a prompt.
std::string format_time(char conversion, char fill, const std::tm& time, std::int64_t unix_s) {
    static constexpr const char* days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                           "Thursday", "Friday", "Saturday"};
    static constexpr const char* months[] = {"January",   "February", "March",    "April",
                                             "May",       "June",     "July",     "August",
                                             "September", "October",  "November", "December"};
    const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
    const auto all = [&](const char* format) {
        std::string out;
        for (const char* c = format; *c != 0; ++c)
            out += *c == '%' ? format_time(*++c, '0', time, unix_s) : std::string(1, *c);
        return out;
    };
    switch (conversion) {
        case 'a':
            return std::string(days[time.tm_wday]).substr(0, 3);
        case 'A':
            return days[time.tm_wday];
        case 'b':
        case 'h':
            return std::string(months[time.tm_mon]).substr(0, 3);
        case 'B':
            return months[time.tm_mon];
        case 'c':
            return all("%a %b %e %H:%M:%S %Y");
        case 'd':
            return two_digits(time.tm_mday, fill);
        case 'D':
        case 'x':
            return all("%m/%d/%y");
        case 'e':
            return two_digits(time.tm_mday, fill == '0' ? ' ' : fill);
        case 'F':
            return all("%Y-%m-%d");
        case 'H':
            return two_digits(time.tm_hour, fill);
        case 'I':
            return two_digits(hour12, fill);
        case 'j': {
            char buffer[16];
            std::snprintf(buffer, sizeof buffer, fill == '0' ? "%03d" : "%d", time.tm_yday + 1);
            return buffer;
        }
        case 'm':
            return two_digits(time.tm_mon + 1, fill);
        case 'M':
            return two_digits(time.tm_min, fill);
        case 'n':
            return "\n";
        case 'p':
            return time.tm_hour < 12 ? "AM" : "PM";
        case 'R':
            return all("%H:%M");
        case 's':
            return std::to_string(unix_s);
        case 'S':
            return two_digits(time.tm_sec, fill);
        case 't':
            return "\t";
        case 'T':
        case 'X':
            return all("%H:%M:%S");
        case 'u':
            return std::to_string(time.tm_wday == 0 ? 7 : time.tm_wday);
        case 'w':
            return std::to_string(time.tm_wday);
        case 'y':
            return two_digits(time.tm_year % 100, fill);
        case 'Y':
            return std::to_string(time.tm_year + 1900);
        case 'z':
        case 'Z':
            return "";  // datetime.now() has no zone
        case '%':
            return "%";
        default:
            throw Fault(std::string("strftime_now does not support '%") + conversion + "'");
    }
}

Value now(Machine& machine, const CallArguments& arguments) {
    const auto bound = bind(arguments, {"format"}, "strftime_now", 1);
    const Text& format = text_argument(*bound[0], "strftime_now");
    const std::int64_t unix_s = machine.now_unix_s() != 0 ? machine.now_unix_s() : std::time(nullptr);
    const auto clock = static_cast<std::time_t>(unix_s);
    std::tm time{};
    if (localtime_r(&clock, &time) == nullptr) throw Fault("the clock's time has no calendar date");
    const std::string& bytes = format.bytes();
    Text out;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (bytes[at] != '%' || at + 1 >= bytes.size()) {
            out.append(format, at, at + 1);
            continue;
        }
        const bool bare = bytes[at + 1] == '-' && at + 2 < bytes.size();
        at += bare ? 2 : 1;
        out.append(format_time(bytes[at], bare ? '-' : '0', time, unix_s), format.user_at(at));
    }
    return machine.make_text(std::move(out));
}

Value make_cycler(const CallArguments& arguments) {
    if (arguments.positional.empty() || !arguments.named.empty()) throw Fault("cycler needs items");
    Value value = Value::of(Kind::cycler);
    Value items = Value::list(arguments.positional);
    value.integer = depth_of(items);
    value.object = std::make_shared<const Cycler>(Cycler{std::move(items)});
    return value;
}

Value make_joiner(const CallArguments& arguments) {
    const auto bound = bind(arguments, {"sep"}, "joiner");
    Value value = Value::of(Kind::joiner);
    value.object = std::make_shared<const Joiner>(
        Joiner{bound[0] ? text_argument(*bound[0], "joiner") : Text(", ", false)});
    return value;
}

}  // namespace

bool is_function(std::string_view name) {
    static constexpr std::string_view names[] = {"range",  "dict",   "namespace",       "cycler",
                                                 "joiner", "lipsum", "raise_exception", "strftime_now"};
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value call_function(Machine& machine, const std::string& name, const CallArguments& arguments) {
    if (name == "range") return make_range(arguments);
    if (name == "dict") return Value::dict(make_dict(machine, arguments, "dict"));
    if (name == "namespace") return make_space(machine, arguments);
    if (name == "cycler") return make_cycler(arguments);
    if (name == "joiner") return make_joiner(arguments);
    if (name == "raise_exception") raise(arguments);
    if (name == "strftime_now") return now(machine, arguments);
    throw Fault("the function '" + name + "' is not supported");
}

std::vector<std::optional<Value>> bind(const CallArguments& arguments,
                                       std::initializer_list<std::string_view> names, std::string_view callee,
                                       std::size_t required) {
    std::vector<std::optional<Value>> bound(names.size());
    if (arguments.positional.size() > names.size())
        throw Fault(std::string(callee) + " takes at most " + std::to_string(names.size()) + " arguments");
    std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
    for (const auto& [name, value] : arguments.named) {
        const auto place = std::find(names.begin(), names.end(), name);
        if (place == names.end()) throw Fault(std::string(callee) + " takes no argument '" + name + "'");
        auto& slot = bound[static_cast<std::size_t>(place - names.begin())];
        if (slot) throw Fault(std::string(callee) + " got '" + name + "' twice");
        slot = value;
    }
    for (std::size_t i = 0; i < required; ++i)
        if (!bound[i])
            throw Fault(std::string(callee) + " needs the argument '" + std::string(*(names.begin() + i)) +
                        "'");
    return bound;
}

std::int64_t integer_argument(const Value& value, std::string_view callee) {
    if (value.is_integral()) return value.as_integer();
    if (value.is(Kind::undefined)) throw Fault(value.name() + " is undefined");
    throw Fault(std::string(callee) + " needs an integer, not " + type_name(value));
}

const Text& text_argument(const Value& value, std::string_view callee) {
    if (value.is(Kind::string)) return value.text();
    if (value.is(Kind::undefined)) throw Fault(value.name() + " is undefined");
    throw Fault(std::string(callee) + " needs a string, not " + type_name(value));
}

}  // namespace recto::jinja
