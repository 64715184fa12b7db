// Filters of numbers, and what makes numbers of text.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "engine/text/jinja_filters.h"
#include "engine/text/jinja_unicode.h"

namespace recto::jinja::filters {

namespace {

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
    if (negative) text.insert(text.begin(), '-');
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

}  // namespace

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

namespace {

const Value& number_input(const Call& call) {
    if (call.input.is_number()) return call.input;
    if (call.input.is(Kind::undefined)) throw Fault(call.input.name() + " is undefined");
    throw Fault(call.callee() + " needs a number, not " + type_name(call.input));
}

}  // namespace

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

}  // namespace recto::jinja::filters
