// Python's two ways of formatting: `"%s: %d" % values` and `"{}: {name}".format(…)`.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja_machine.h"

namespace recto::jinja {
namespace {

struct Spec {
    bool minus = false, plus = false, blank = false, zero = false, alternate = false;
    std::int64_t width = 0, precision = -1;
};

constexpr std::int64_t max_width = 10'000;

class PercentFormatter {
  public:
    PercentFormatter(Machine& machine, const Text& format, const Value& values)
        : machine_(machine), format_(format), bytes_(format.bytes()), values_(values) {}

    Text run() {
        while (at_ < bytes_.size()) {
            const std::size_t percent = std::min(bytes_.find('%', at_), bytes_.size());
            out_.append(format_, at_, percent);
            at_ = percent + 1;
            if (percent < bytes_.size()) convert();
            machine_.charge_text(out_.size() / 16);
        }
        const bool has_items = values_.is(Kind::dict) || values_.is(Kind::list) || values_.is(Kind::range) ||
                               values_.is(Kind::undefined);
        const std::size_t given = values_.is(Kind::tuple) ? values_.items().size() : has_items ? next_ : 1;
        if (next_ < given && !by_name_) throw Fault("'%' got more values than the format uses");
        return std::move(out_);
    }

  private:
    char peek() const {
        if (at_ >= bytes_.size()) throw Fault("a format ends after '%'");
        return bytes_[at_];
    }

    Value next_value() {
        if (!values_.is(Kind::tuple)) {
            if (next_++ > 0) throw Fault("'%' got fewer values than the format uses");
            return values_;
        }
        if (next_ >= values_.items().size()) throw Fault("'%' got fewer values than the format uses");
        return values_.items()[next_++];
    }

    std::int64_t number() {
        if (peek() == '*') {
            ++at_;
            return integer_argument(next_value(), "'%*'");
        }
        std::int64_t value = 0;
        for (; peek() >= '0' && peek() <= '9'; ++at_) {
            value = value * 10 + (peek() - '0');
            if (value > max_width) throw Fault("a width in a format is too large");
        }
        return value;
    }

    std::optional<Value> named_value() {
        if (peek() != '(') return std::nullopt;
        const std::size_t close = bytes_.find(')', at_);
        if (close == std::string::npos) throw Fault("a format has '%(' without ')'");
        if (!values_.is(Kind::dict)) throw Fault("'%(name)' needs a dictionary");
        const std::string name = bytes_.substr(at_ + 1, close - at_ - 1);
        at_ = close + 1;
        by_name_ = true;
        const Value* value = values_.entries().find(name);
        if (value == nullptr) throw Fault("the format's '" + name + "' is not in the dictionary");
        return *value;
    }

    void convert() {
        const std::optional<Value> named = named_value();
        Spec spec;
        for (;; ++at_) {
            const char c = peek();
            spec.minus |= c == '-';
            spec.plus |= c == '+';
            spec.blank |= c == ' ';
            spec.zero |= c == '0';
            spec.alternate |= c == '#';
            if (std::string_view("-+ 0#").find(c) == std::string_view::npos) break;
        }
        spec.width = number();
        if (spec.width < 0) {
            spec.minus = true;
            spec.width = -spec.width;
        }
        if (peek() == '.') {
            ++at_;
            spec.precision = std::max<std::int64_t>(0, number());
        }
        if (spec.width > max_width || spec.precision > max_width)
            throw Fault("a width in a format is too large");
        while (peek() == 'l' || peek() == 'h' || peek() == 'L')
            ++at_;
        const char kind = peek();
        const std::size_t place = at_++;
        if (kind == '%')
            out_.append(format_, place, place + 1);
        else
            write(kind, spec, named ? *named : next_value());
    }

    void write(char kind, const Spec& spec, const Value& value) {
        switch (kind) {
            case 's':
                return pad_text(to_text(value), spec);
            case 'r':
                return pad_text(repr(value), spec);
            case 'd':
            case 'i':
            case 'u':
                return write_integer(spec, value);
            case 'x':
            case 'X':
            case 'o':
                return write_based(kind, spec, value);
            case 'e':
            case 'E':
            case 'f':
            case 'F':
            case 'g':
            case 'G':
                return write_real(kind, spec, value);
            case 'c':
                return write_character(spec, value);
            default:
                throw Fault(std::string("the format '%") + kind + "' is not supported");
        }
    }

    void pad_text(Text text, const Spec& spec) {
        const auto starts = code_point_starts(text.bytes());
        auto count = static_cast<std::int64_t>(starts.size()) - 1;
        if (spec.precision >= 0 && spec.precision < count) {
            text = text.slice(0, starts[static_cast<std::size_t>(spec.precision)]);
            count = spec.precision;
        }
        const std::string blanks(static_cast<std::size_t>(std::max<std::int64_t>(0, spec.width - count)),
                                 ' ');
        if (!spec.minus) out_.append(blanks, false);
        out_.append(text);
        if (spec.minus) out_.append(blanks, false);
    }

    // sign, prefix and digits apart, so that zeros go between them
    void pad_number(bool negative, const std::string& prefix, std::string digits, const Spec& spec,
                    bool user) {
        const std::string sign = negative ? "-" : spec.plus ? "+" : spec.blank ? " " : "";
        const auto width = static_cast<std::size_t>(spec.width);
        const std::size_t used = sign.size() + prefix.size() + digits.size();
        const std::size_t missing = width > used ? width - used : 0;
        std::string text = sign + prefix + digits;
        if (spec.minus)
            text.append(missing, ' ');
        else if (spec.zero)
            text = sign + prefix + std::string(missing, '0') + digits;
        else
            text.insert(0, missing, ' ');
        out_.append(text, user);
    }

    void write_integer(const Spec& spec, const Value& value) {
        std::int64_t integer = 0;
        if (value.is(Kind::real)) {
            if (!(std::fabs(value.real) < 9.2e18)) throw Fault("'%d' needs a number that fits 64 bits");
            integer = static_cast<std::int64_t>(value.real);
        } else {
            integer = integer_argument(value, "'%d'");
        }
        std::string digits = std::to_string(integer);
        if (integer < 0) digits.erase(0, 1);
        if (spec.precision > static_cast<std::int64_t>(digits.size()))
            digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
        pad_number(integer < 0, "", std::move(digits), spec, value.user);
    }

    void write_based(char kind, const Spec& spec, const Value& value) {
        const std::int64_t integer = integer_argument(value, "'%x'");
        const std::uint64_t size =
            integer < 0 ? 0 - static_cast<std::uint64_t>(integer) : static_cast<std::uint64_t>(integer);
        char buffer[32];
        std::snprintf(buffer, sizeof buffer,
                      kind == 'x'   ? "%llx"
                      : kind == 'X' ? "%llX"
                                    : "%llo",
                      static_cast<unsigned long long>(size));
        std::string digits = buffer;
        if (spec.precision > static_cast<std::int64_t>(digits.size()))
            digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
        pad_number(integer < 0, spec.alternate ? std::string("0") + kind : "", std::move(digits), spec,
                   value.user);
    }

    void write_real(char kind, const Spec& spec, const Value& value) {
        if (!value.is_number()) throw Fault(std::string("'%f' needs a number, not ") + type_name(value));
        if (spec.precision > 400) throw Fault("a precision in a format is too large");
        const double real = value.as_real();
        const std::string format = std::string("%") + (spec.alternate ? "#" : "") + ".*" + kind;
        char buffer[1024];
        std::snprintf(buffer, sizeof buffer, format.c_str(),
                      spec.precision < 0 ? 6 : static_cast<int>(spec.precision), std::fabs(real));
        pad_number(std::signbit(real) && !std::isnan(real), "", buffer, spec, value.user);
    }

    void write_character(const Spec& spec, const Value& value) {
        if (value.is(Kind::string) && count_code_points(value.bytes()) == 1)
            return pad_text(value.text(), spec);
        const std::int64_t code = integer_argument(value, "'%c'");
        if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            throw Fault("'%c' needs a character");
        std::string bytes;
        append_utf8(bytes, static_cast<std::uint32_t>(code));
        pad_text(Text(bytes, value.user), spec);
    }

    Machine& machine_;
    const Text& format_;
    const std::string& bytes_;
    const Value& values_;
    std::size_t at_ = 0;
    std::size_t next_ = 0;
    bool by_name_ = false;
    Text out_;
};

// The value of a replacement field: "", "0" or "name".
Value field_value(const std::string& field, const CallArguments& arguments, std::size_t& automatic) {
    if (field.find_first_of(".[") != std::string::npos)
        throw Fault("attributes and items in str.format fields are not supported");
    const bool numeric = field.find_first_not_of("0123456789") == std::string::npos;
    if (!numeric) {
        for (const auto& [name, value] : arguments.named)
            if (name == field) return value;
        throw Fault("str.format got no value named '" + field + "'");
    }
    if (field.size() > 6) throw Fault("str.format has a field number that is too large");
    const std::size_t index = field.empty() ? automatic++ : static_cast<std::size_t>(std::stoul(field));
    if (index >= arguments.positional.size()) throw Fault("str.format got fewer values than the format uses");
    return arguments.positional[index];
}

}  // namespace

Value percent_format(Machine& machine, const Text& format, const Value& values) {
    return machine.make_text(PercentFormatter(machine, format, values).run());
}

Value brace_format(Machine& machine, const Text& format, const CallArguments& arguments) {
    const std::string& bytes = format.bytes();
    Text out;
    std::size_t automatic = 0;
    bool numbered = false;
    for (std::size_t at = 0; at < bytes.size();) {
        const char c = bytes[at];
        if (c != '{' && c != '}') {
            const std::size_t next = std::min(bytes.find_first_of("{}", at), bytes.size());
            out.append(format, at, next);
            at = next;
            continue;
        }
        if (at + 1 < bytes.size() && bytes[at + 1] == c) {
            out.append(format, at, at + 1);
            at += 2;
            continue;
        }
        const std::size_t close = bytes.find('}', at);
        if (c == '}' || close == std::string::npos) throw Fault("str.format has a single brace");
        std::string field = bytes.substr(at + 1, close - at - 1);
        if (field.find('{') != std::string::npos)
            throw Fault("nested fields in str.format are not supported");
        bool as_repr = false;
        if (field.size() >= 2 && (field.ends_with("!s") || field.ends_with("!r"))) {
            as_repr = field.ends_with("!r");
            field.resize(field.size() - 2);
        }
        if (field.find_first_of(":!") != std::string::npos)
            throw Fault("format specifications in str.format are not supported");
        numbered |= !field.empty() && field.find_first_not_of("0123456789") == std::string::npos;
        const Value value = field_value(field, arguments, automatic);
        if (numbered && automatic > 0) throw Fault("str.format mixes automatic and numbered fields");
        out.append(as_repr ? repr(value) : to_text(value));
        machine.charge_text(out.size());
        at = close + 1;
    }
    return machine.make_text(std::move(out));
}

}  // namespace recto::jinja
