#include "engine/text/chat_template.h"

#include <algorithm>

#include "engine/text/jinja_machine.h"
#include "engine/text/jinja_parser.h"
#include "kernels/error.h"

namespace recto {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Text;
using jinja::Value;
using jinja::Values;

// Only these may become part of a control token such as <|assistant|>; any other role is the person's text.
bool is_known_role(std::string_view role) {
    static constexpr std::string_view roles[] = {"system", "user",      "assistant", "tool",
                                                 "model",  "developer", "function",  "ipython"};
    return std::find(std::begin(roles), std::end(roles), role) != std::end(roles);
}

Value from_json(const Json& json, bool user, int depth) {
    if (depth > jinja::max_value_depth - 4)
        throw Error(ErrorKind::input, "A message or template variable is nested too deep: at most " +
                                          std::to_string(jinja::max_value_depth - 4) +
                                          " levels can be rendered.");
    Value value;
    switch (json.type()) {
        case Json::value_t::null:
            value = Value::none();
            break;
        case Json::value_t::boolean:
            value = Value::from(json.get<bool>());
            break;
        case Json::value_t::number_integer:
            value = Value::from(json.get<std::int64_t>());
            break;
        case Json::value_t::number_unsigned: {
            const auto number = json.get<std::uint64_t>();
            if (number > static_cast<std::uint64_t>(INT64_MAX))
                throw Error(ErrorKind::input,
                            "The number " + std::to_string(number) +
                                " in a message or template variable does not fit 64 signed bits.");
            value = Value::from(static_cast<std::int64_t>(number));
            break;
        }
        case Json::value_t::number_float:
            value = Value::from(json.get<double>());
            break;
        case Json::value_t::string:
            return Value::from(Text(json.get_ref<const std::string&>(), user));
        case Json::value_t::array: {
            Values items;
            for (const Json& item : json)
                items.push_back(from_json(item, user, depth + 1));
            return Value::list(std::move(items));
        }
        case Json::value_t::object: {
            Dict dict;
            for (const auto& [key, item] : json.items())
                dict.set(Value::from(Text(key, user)), from_json(item, user, depth + 1));
            return Value::dict(std::move(dict));
        }
        default:
            throw Error(ErrorKind::input, "A message or template variable holds binary data.");
    }
    value.user = user;
    return value;
}

// Keys without a value are dropped: a template that asks "is defined" must not find None.
Value from_message(const Json& message) {
    if (!message.is_object()) return from_json(message, true, 1);
    Dict dict;
    for (const auto& [key, item] : message.items()) {
        if (item.is_null()) continue;
        const bool known_role =
            key == "role" && item.is_string() && is_known_role(item.get_ref<const std::string&>());
        dict.set(Value::from(Text(key, true)), from_json(item, !known_role, 2));
    }
    return Value::dict(std::move(dict));
}

std::vector<std::pair<std::string, Value>> make_globals(const Json& messages,
                                                        const TemplateOptions& options) {
    if (!messages.is_array()) throw Error(ErrorKind::input, "The messages are no JSON list.");
    if (!options.variables.is_object())
        throw Error(ErrorKind::input, "The template variables are no JSON object.");
    Values list;
    for (const Json& message : messages)
        list.push_back(from_message(message));
    std::vector<std::pair<std::string, Value>> globals;
    const auto set = [&](const std::string& name, Value value) {
        for (auto& global : globals)
            if (global.first == name) {
                global.second = std::move(value);
                return;
            }
        globals.emplace_back(name, std::move(value));
    };
    set("messages", Value::list(std::move(list)));
    set("tools", Value::none());
    set("documents", Value::none());
    set("add_generation_prompt", Value::from(options.add_generation_prompt));
    set("bos_token", Value::literal(options.bos_token));
    set("eos_token", Value::literal(options.eos_token));
    for (const auto& [name, value] : options.variables.items()) {
        const bool special = name.ends_with("_token") && value.is_string();
        set(name, from_json(value, !special, 1));
    }
    return globals;
}

}  // namespace

struct ChatTemplate::Program {
    std::string source;
    jinja::Body body;
};

ChatTemplate::ChatTemplate(std::string source) {
    auto body = jinja::parse(source);
    program_ = std::make_unique<const Program>(Program{std::move(source), std::move(body)});
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::vector<TextPiece> ChatTemplate::render(const Json& messages, const TemplateOptions& options) const {
    jinja::Machine machine(options.now_unix_s, options.cancelled);
    return machine.render(program_->body, make_globals(messages, options)).pieces();
}

std::string ChatTemplate::render_text(const Json& messages, const TemplateOptions& options) const {
    std::string out;
    for (const TextPiece& piece : render(messages, options))
        out += piece.text;
    return out;
}

const std::string& ChatTemplate::source() const {
    return program_->source;
}

}  // namespace recto
