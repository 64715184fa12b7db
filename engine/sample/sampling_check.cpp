#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "engine/sample/sampling_params.h"
#include "kernels/error.h"

namespace recto {
namespace {

template <class T>
[[noreturn]] void refuse(const char* name, const char* range, const T& value) {
    std::ostringstream out;
    out << name << " must be " << range << ", got " << value;
    throw Error(ErrorKind::argument, out.str());
}

void check_number(const char* name, double value, double low, double high, const char* range) {
    if (!std::isfinite(value) || value < low || value > high) refuse(name, range, value);
}

void check_id(const char* name, std::int32_t id, int vocab) {
    if (id >= 0 && id < vocab) return;
    const std::string range = "token ids in [0, " + std::to_string(vocab - 1) + "]";
    refuse(name, range.c_str(), id);
}

void check_logprobs(const char* name, const std::optional<int>& value) {
    if (value && (*value < 0 || *value > max_logprobs)) refuse(name, "in [0, 20]", *value);
}

const char* early_stopping_name(EarlyStopping e) {
    return e == EarlyStopping::no ? "false" : e == EarlyStopping::yes ? "true" : "never";
}

void check_beams(const SamplingParams& p) {
    if (p.beam_width && p.best_of && *p.beam_width != *p.best_of) {
        const std::string range =
            "equal to best_of = " + std::to_string(*p.best_of) + " where both are given";
        refuse("beam_width", range.c_str(), *p.beam_width);
    }
    const char* name = p.beam_width ? "beam_width" : "best_of";
    const std::string range = "in [" + std::to_string(std::max(2, p.n)) + ", 16384] with use_beam_search";
    if (p.width() < std::max(2, p.n) || p.width() > 16384) refuse(name, range.c_str(), p.width());
    if (!p.greedy()) refuse("temperature", "0 with use_beam_search", p.temperature);
    if (p.top_p < 1 - 1e-5) refuse("top_p", "1 with use_beam_search", p.top_p);
    if (p.top_k > 0) refuse("top_k", "-1 or 0 (off) with use_beam_search", p.top_k);
    if (p.min_p > 1e-5) refuse("min_p", "0 with use_beam_search", p.min_p);
    if (!std::isfinite(p.length_penalty)) refuse("length_penalty", "finite", p.length_penalty);
}

void check_outputs(const SamplingParams& p) {
    if (p.n < 1 || p.n > 16384) refuse("n", "in [1, 16384]", p.n);
    if (p.use_beam_search) return check_beams(p);
    if (p.beam_width) refuse("beam_width", "left out without use_beam_search", *p.beam_width);
    if (p.length_penalty != 1.0) refuse("length_penalty", "1 without use_beam_search", p.length_penalty);
    if (p.early_stopping != EarlyStopping::no)
        refuse("early_stopping", "false without use_beam_search", early_stopping_name(p.early_stopping));
    if (p.best_of && (*p.best_of < p.n || *p.best_of > 16384)) {
        const std::string range = "in [n = " + std::to_string(p.n) + ", 16384]";
        refuse("best_of", range.c_str(), *p.best_of);
    }
    if (p.greedy() && p.n > 1) refuse("n", "1 with temperature 0 (greedy outputs would be equal)", p.n);
    if (p.greedy() && p.best_of.value_or(1) > 1)
        refuse("best_of", "1 with temperature 0 (greedy outputs would be equal)", *p.best_of);
    if (p.prompt_logprobs && p.best_of.value_or(p.n) > p.n)
        refuse("best_of", "equal to n when prompt_logprobs is set", *p.best_of);
}

void check_distribution(const SamplingParams& p) {
    check_number("temperature", p.temperature, 0, 2, "in [0, 2]");
    if (p.top_k < -1) refuse("top_k", "-1 or 0 (off), or at least 1", p.top_k);
    check_number("top_p", p.top_p, 0, 1, "in (0, 1]");
    if (p.top_p == 0) refuse("top_p", "in (0, 1]", p.top_p);
    check_number("min_p", p.min_p, 0, 1, "in [0, 1]");
    // The sampler computes in float: outside its range a penalty would be 0 or infinite there.
    using Single = std::numeric_limits<float>;
    if (!(p.repetition_penalty >= double(Single::min()) && p.repetition_penalty <= double(Single::max())))
        refuse("repetition_penalty", "greater than 0 and finite", p.repetition_penalty);
    check_number("frequency_penalty", p.frequency_penalty, -2, 2, "in [-2, 2]");
    check_number("presence_penalty", p.presence_penalty, -2, 2, "in [-2, 2]");
}

void check_lengths(const SamplingParams& p) {
    if (p.max_tokens && *p.max_tokens < 1) refuse("max_tokens", "at least 1", *p.max_tokens);
    if (p.min_tokens < 0) refuse("min_tokens", "at least 0", p.min_tokens);
    if (p.max_tokens && p.min_tokens > *p.max_tokens) {
        const std::string range = "in [0, max_tokens = " + std::to_string(*p.max_tokens) + "]";
        refuse("min_tokens", range.c_str(), p.min_tokens);
    }
    if (p.truncate_prompt_tokens && *p.truncate_prompt_tokens < 1)
        refuse("truncate_prompt_tokens", "at least 1", *p.truncate_prompt_tokens);
}

void check_ids_and_words(const SamplingParams& p, int vocab) {
    for (std::int32_t id : p.stop_token_ids)
        check_id("stop_token_ids", id, vocab);
    for (std::int32_t id : p.allowed_token_ids)
        check_id("allowed_token_ids", id, vocab);
    for (const auto& [id, bias] : p.logit_bias) {
        check_id("logit_bias", id, vocab);
        if (!std::isfinite(bias)) refuse("logit_bias", "finite", bias);
    }
    for (const std::string& s : p.stop)
        if (s.empty()) refuse("stop", "without an empty string", "\"\"");
    for (const std::string& s : p.bad_words)
        if (s.empty()) refuse("bad_words", "without an empty string", "\"\"");
}

}  // namespace

void SamplingParams::check(int vocab) const {
    check_distribution(*this);
    check_outputs(*this);
    check_lengths(*this);
    check_logprobs("logprobs", logprobs);
    check_logprobs("prompt_logprobs", prompt_logprobs);
    check_ids_and_words(*this, vocab);
}

}  // namespace recto
