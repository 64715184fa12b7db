// Filters of text.
#include <algorithm>

#include "engine/text/jinja_filters.h"
#include "engine/text/jinja_unicode.h"

namespace recto::jinja::filters {

Value trim(const Call& call) {
    const auto bound = call.bind({"chars"});
    const bool has_set = bound[0] && !bound[0]->is(Kind::none);
    const std::string* characters = has_set ? &text_argument(*bound[0], call.callee()).bytes() : nullptr;
    Value out = call.result(strip(call.text(), characters, true, true));
    out.markup = call.input.markup;
    return out;
}

namespace {

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

}  // namespace

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

namespace {

bool is_word_character(std::uint32_t c) {
    return c == '_' || is_alpha(c) || is_decimal(c) || is_other_number(c);
}

}  // namespace

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

}  // namespace recto::jinja::filters
