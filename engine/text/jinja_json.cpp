// The tojson filter as Hugging Face defines it: json.dumps with ensure_ascii off, no HTML escapes.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja_machine.h"

namespace recto::jinja {
namespace {

class JsonWriter {
  public:
    JsonWriter(Machine& machine, bool ensure_ascii, std::optional<std::string> indent,
               std::string item_separator, std::string key_separator, bool sort_keys)
        : machine_(machine),
          ensure_ascii_(ensure_ascii),
          indent_(std::move(indent)),
          item_separator_(std::move(item_separator)),
          key_separator_(std::move(key_separator)),
          sort_keys_(sort_keys) {}

    void write(const Value& value, int level) {
        machine_.charge(1);
        switch (value.kind) {
            case Kind::none:
                out_ += "null";
                break;
            case Kind::boolean:
                out_ += value.boolean ? "true" : "false";
                break;
            case Kind::integer:
                out_ += std::to_string(value.integer);
                break;
            case Kind::real:
                out_ += real(value.real);
                break;
            case Kind::string:
                write_string(value.bytes());
                break;
            case Kind::list:
            case Kind::tuple:
                write_list(value.items(), level);
                break;
            case Kind::dict:
                write_dict(value.entries(), level);
                break;
            case Kind::undefined:
                throw Fault(value.name() + " is undefined: tojson cannot print it");
            default:
                throw Fault(std::string("tojson cannot print a ") + type_name(value));
        }
        if (out_.size() > max_text_bytes) machine_.charge_text(out_.size());
    }

    std::string take() { return std::move(out_); }

  private:
    static std::string real(double value) {
        if (std::isnan(value)) return "NaN";
        if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
        return format_real(value);
    }

    void append_escape(std::uint32_t unit) {
        char buffer[8];
        std::snprintf(buffer, sizeof buffer, "\\u%04x", unit & 0xFFFFu);
        out_ += buffer;
    }

    void write_string(const std::string& bytes) {
        machine_.charge_text(bytes.size());
        out_ += '"';
        for (std::size_t at = 0; at < bytes.size();) {
            const CodePoint point = code_point_at(bytes, at);
            const std::uint32_t c = point.value;
            static constexpr std::string_view from = "\"\\\n\r\t\f\b", to = "\"\\nrtfb";
            const std::size_t simple = c < 0x80 ? from.find(static_cast<char>(c)) : std::string_view::npos;
            if (simple != std::string_view::npos) {
                out_ += '\\';
                out_ += to[simple];
            } else if (c < 0x20 || (ensure_ascii_ && (c == 0x7F ? false : c > 0x7F && c < 0x10000))) {
                append_escape(c);
            } else if (ensure_ascii_ && c >= 0x10000) {
                append_escape(0xD800 + ((c - 0x10000) >> 10));
                append_escape(0xDC00 + ((c - 0x10000) & 0x3FF));
            } else {
                out_.append(bytes, at, point.length);
            }
            at += point.length;
        }
        out_ += '"';
    }

    void new_line(int level) {
        if (!indent_) return;
        out_ += '\n';
        machine_.charge_text(indent_->size() * static_cast<std::size_t>(level));
        for (int i = 0; i < level; ++i)
            out_ += *indent_;
    }

    void write_list(const Values& items, int level) {
        out_ += '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out_ += item_separator_;
            new_line(level + 1);
            write(items[i], level + 1);
        }
        if (!items.empty()) new_line(level);
        out_ += ']';
    }

    static std::string key_text(const Value& key) {
        switch (key.kind) {
            case Kind::string:
                return key.bytes();
            case Kind::none:
                return "null";
            case Kind::boolean:
                return key.boolean ? "true" : "false";
            case Kind::integer:
                return std::to_string(key.integer);
            case Kind::real:
                return real(key.real);
            default:
                throw Fault(std::string("tojson cannot print a ") + type_name(key) + " as a key");
        }
    }

    void write_dict(const Dict& dict, int level) {
        std::vector<const std::pair<Value, Value>*> entries;
        for (const auto& entry : dict.entries)
            entries.push_back(&entry);
        if (sort_keys_)
            std::stable_sort(entries.begin(), entries.end(),
                             [](auto* a, auto* b) { return less(a->first, b->first); });
        out_ += '{';
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (i > 0) out_ += item_separator_;
            new_line(level + 1);
            write_string(key_text(entries[i]->first));
            out_ += key_separator_;
            write(entries[i]->second, level + 1);
        }
        if (!entries.empty()) new_line(level);
        out_ += '}';
    }

    Machine& machine_;
    bool ensure_ascii_;
    std::optional<std::string> indent_;
    std::string item_separator_, key_separator_;
    bool sort_keys_;
    std::string out_;
};

}  // namespace

Value to_json(Machine& machine, const Value& value, const CallArguments& arguments) {
    const auto bound = bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, "tojson");
    std::optional<std::string> indent;
    if (bound[1] && bound[1]->is(Kind::string))
        indent = bound[1]->bytes();
    else if (bound[1] && !bound[1]->is(Kind::none)) {
        const std::int64_t width = integer_argument(*bound[1], "tojson");
        if (width > 1000) throw Fault("the indent of tojson is too large");
        indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ');
    }
    std::string item_separator = indent ? "," : ", ", key_separator = ": ";
    if (bound[2] && !bound[2]->is(Kind::none)) {
        const Values separators = machine.items_of(*bound[2]);
        if (separators.size() != 2) throw Fault("tojson needs two separators");
        item_separator = text_argument(separators[0], "tojson").bytes();
        key_separator = text_argument(separators[1], "tojson").bytes();
    }
    JsonWriter writer(machine, bound[0] && truth(*bound[0]), indent, item_separator, key_separator,
                      bound[3] && truth(*bound[3]));
    writer.write(value, 0);
    // One origin for the whole: a split inside would change how it is cut into tokens.
    return machine.make_text(Text(writer.take(), any_user(value)));
}

}  // namespace recto::jinja
