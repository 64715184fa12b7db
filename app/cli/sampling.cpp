#include "app/cli/sampling.h"

#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <type_traits>

#include "app/cli/common.h"
#include "engine/json_text.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

using Value = nlohmann::ordered_json;
using Setter = std::function<void(SamplingParams&, const Value&)>;

struct Parameter {
    Setter set;
    bool list = false;  // the flag may be repeated
    bool flag = false;  // no value on the command line
    const char* help = "";
};

// The JSON library would turn 4294967297 into 1, 1.5 into 1 and true into 1.
template <class T>
T exact(const Value& v) {
    if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        const bool fits = v.is_number_unsigned()
                              ? v.get<std::uint64_t>() <= std::uint64_t(Limits::max())
                              : v.is_number_integer() && v.get<std::int64_t>() >= std::int64_t(Limits::min());
        if (!fits)
            throw std::invalid_argument("must be a whole number from " + std::to_string(Limits::min()) +
                                        " to " + std::to_string(Limits::max()));
    } else if constexpr (std::is_floating_point_v<T>) {
        if (!v.is_number()) throw std::invalid_argument("must be a number");
    }
    return v.get<T>();
}

template <class T>
Setter number(T SamplingParams::*member) {
    return [member](SamplingParams& p, const Value& v) { p.*member = exact<T>(v); };
}
template <class T>
Setter optional_number(std::optional<T> SamplingParams::*member) {
    return [member](SamplingParams& p, const Value& v) {
        if (v.is_null())
            p.*member = std::nullopt;
        else
            p.*member = exact<T>(v);
    };
}
Setter boolean(bool SamplingParams::*member) {
    return [member](SamplingParams& p, const Value& v) { p.*member = v.get<bool>(); };
}
template <class T>
Setter list(std::vector<T> SamplingParams::*member) {
    return [member](SamplingParams& p, const Value& v) {
        std::vector<T> values;
        for (const Value& item : v.is_array() ? v : Value::array({v}))
            values.push_back(exact<T>(item));
        p.*member = std::move(values);
    };
}

void set_early_stopping(SamplingParams& p, const Value& v) {
    if (v.is_boolean())
        p.early_stopping = v.get<bool>() ? EarlyStopping::yes : EarlyStopping::no;
    else if (v == "never")
        p.early_stopping = EarlyStopping::never;
    else
        throw std::invalid_argument("must be true, false or \"never\"");
}

// Naming a width asks for the search.
void set_beam_width(SamplingParams& p, const Value& v) {
    p.beam_width = exact<int>(v);
    p.use_beam_search = true;
}

// "Nothing is allowed" is no request; vLLM refuses it too.
void set_allowed_token_ids(SamplingParams& p, const Value& v) {
    list (&SamplingParams::allowed_token_ids)(p, v);
    if (p.allowed_token_ids.empty()) throw std::invalid_argument("must have at least one token id");
}

std::int32_t token_id(const std::string& text) {
    return exact<std::int32_t>(parse_value(text));
}

// {"123": -1.5} as in the OpenAI protocol, or ["123=-1.5"] from the command line.
void set_logit_bias(SamplingParams& p, const Value& v) {
    p.logit_bias.clear();
    if (v.is_object()) {
        for (const auto& [id, bias] : v.items())
            p.logit_bias.emplace_back(token_id(id), exact<float>(bias));
        return;
    }
    for (const auto& item : v) {
        const std::string text = item.get<std::string>();
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos)
            throw Error(ErrorKind::argument, "logit_bias must be ID=BIAS, got " + text);
        p.logit_bias.emplace_back(token_id(text.substr(0, equals)),
                                  exact<float>(parse_value(text.substr(equals + 1))));
    }
}

const std::map<std::string, Parameter>& parameters() {
    static const std::map<std::string, Parameter> table = {
        {"n", {number(&SamplingParams::n), false, false, "outputs a prompt"}},
        {"best_of",
         {optional_number(&SamplingParams::best_of), false, false,
          "sequences to run, of which the n most probable are returned"}},
        {"temperature", {number(&SamplingParams::temperature), false, false, "0 is greedy"}},
        {"top_k",
         {number(&SamplingParams::top_k), false, false, "keep the k most probable tokens; 0 or -1: off"}},
        {"top_p",
         {number(&SamplingParams::top_p), false, false,
          "keep the most probable tokens up to this sum, (0, 1]"}},
        {"min_p",
         {number(&SamplingParams::min_p), false, false,
          "keep tokens with p at least this share of the best, [0, 1]"}},
        {"repetition_penalty",
         {number(&SamplingParams::repetition_penalty), false, false, "over prompt and output, > 0"}},
        {"frequency_penalty",
         {number(&SamplingParams::frequency_penalty), false, false, "a count in the output, [-2, 2]"}},
        {"presence_penalty",
         {number(&SamplingParams::presence_penalty), false, false, "once a token in the output, [-2, 2]"}},
        {"seed", {optional_number(&SamplingParams::seed), false, false, "own generator of the request"}},
        {"stop", {list(&SamplingParams::stop), true, false, "end at this text (repeatable)"}},
        {"stop_token_ids", {list(&SamplingParams::stop_token_ids), true, false, "end at these token ids"}},
        {"include_stop_str_in_output",
         {boolean(&SamplingParams::include_stop_str_in_output), false, true,
          "keep the text that ended the answer"}},
        {"ignore_eos",
         {boolean(&SamplingParams::ignore_eos), false, true, "go on after the end-of-text token"}},
        {"max_tokens", {optional_number(&SamplingParams::max_tokens), false, false, "tokens an output (16)"}},
        {"min_tokens", {number(&SamplingParams::min_tokens), false, false, "no end before so many tokens"}},
        {"logprobs",
         {optional_number(&SamplingParams::logprobs), false, false,
          "log probabilities of the k best tokens, 0 … 20"}},
        {"prompt_logprobs",
         {optional_number(&SamplingParams::prompt_logprobs), false, false, "the same for the prompt"}},
        {"logit_bias", {set_logit_bias, true, false, "ID=BIAS (repeatable)"}},
        {"allowed_token_ids", {set_allowed_token_ids, true, false, "nothing but these token ids"}},
        {"bad_words",
         {list(&SamplingParams::bad_words), true, false, "texts that may not appear (repeatable)"}},
        {"skip_special_tokens",
         {boolean(&SamplingParams::skip_special_tokens), false, false, "true or false"}},
        {"spaces_between_special_tokens",
         {boolean(&SamplingParams::spaces_between_special_tokens), false, false, "true or false"}},
        {"use_beam_search",
         {boolean(&SamplingParams::use_beam_search), false, true,
          "search with best_of beams (temperature 0)"}},
        {"beam_width", {set_beam_width, false, false, "the same with so many beams, whatever best_of"}},
        {"length_penalty",
         {number(&SamplingParams::length_penalty), false, false,
          "beams are ranked by log probability ÷ length ^ this (1)"}},
        {"early_stopping",
         {set_early_stopping, false, false,
          "when a beam search with enough answers ends: true, false or never"}},
        {"truncate_prompt_tokens",
         {optional_number(&SamplingParams::truncate_prompt_tokens), false, false,
          "keep the last so many prompt tokens"}},
    };
    return table;
}

bool takes_strings(const std::string& name) {
    return name == "stop" || name == "bad_words" || name == "logit_bias";
}

// The text of a flag as JSON: numbers and booleans as such, "none" as null.
Value parse_flag(const std::string& name, const std::string& text) {
    if (takes_strings(name)) return text;
    if (text == "none" || text == "null") return nullptr;
    if (name == "early_stopping" && text == "never") return text;
    const Value v = parse_value(text);
    if (v.is_discarded()) throw Error(ErrorKind::argument, name + " must be a number, got " + text);
    return v;
}

}  // namespace

bool set_sampling_parameter(SamplingParams& params, const std::string& name, const Value& value) {
    const auto found = parameters().find(name);
    if (found == parameters().end()) return false;
    const auto given = [&] { return ", got " + json_text(value); };
    try {
        found->second.set(params, value);
    } catch (const nlohmann::json::exception&) {
        throw Error(ErrorKind::argument, name + " has the wrong type" + given());
    } catch (const std::invalid_argument& e) {
        throw Error(ErrorKind::argument, name + " " + e.what() + given());
    }
    return true;
}

void SamplingFlags::add_to(CLI::App& command) {
    given_.reserve(parameters().size());  // CLI11 keeps references into it
    for (const auto& [name, parameter] : parameters()) {
        std::string flag = "--" + name;
        for (char& c : flag)
            if (c == '_') c = '-';
        given_.emplace_back(name, std::vector<std::string>{});
        auto& values = given_.back().second;
        if (parameter.flag) {
            command.add_flag_callback(
                flag, [&values] { values = {"true"}; }, parameter.help);
        } else {
            auto* option = command.add_option(flag, values, parameter.help)->allow_extra_args(false);
            if (name.ends_with("token_ids")) option->delimiter(',');
            if (!parameter.list) option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        }
    }
}

void SamplingFlags::apply(SamplingParams& params) const {
    bool temperature_given = false;
    for (const auto& [name, values] : given_) {
        if (values.empty()) continue;
        Value value;
        if (parameters().at(name).list) {
            value = Value::array();
            for (const std::string& text : values)
                value.push_back(parse_flag(name, text));
        } else {
            value = parse_flag(name, values.back());
        }
        set_sampling_parameter(params, name, value);
        if (name == "temperature") temperature_given = true;
    }
    if (params.use_beam_search && !temperature_given) params.temperature = 0;  // the only one it allows
}

}  // namespace recto::cli
