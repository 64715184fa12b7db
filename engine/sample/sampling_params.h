// vLLM's SamplingParams: names, ranges and meaning (vLLM V1, sampling_params.py). check() names parameter,
// range and the value given.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace recto {

constexpr int max_logprobs = 20;

// When a beam search that has as many finished answers as beams is over: at once; when no running beam's
// score is above the worst finished; or when none can rise above it, however long it gets.
enum class EarlyStopping : std::uint8_t { no, yes, never };

struct SamplingParams {
    int n = 1;
    std::optional<int> best_of;
    double temperature = 1.0;          // < 1e-5: greedy
    int top_k = 0;                     // 0 or -1: off
    double top_p = 1.0;                // (0, 1]
    double min_p = 0.0;                // [0, 1]
    double repetition_penalty = 1.0;   // > 0; over prompt and output
    double frequency_penalty = 0.0;    // [-2, 2]; output only
    double presence_penalty = 0.0;     // [-2, 2]; output only
    std::optional<std::int64_t> seed;  // -1: none
    std::vector<std::string> stop;
    std::vector<std::int32_t> stop_token_ids;
    bool include_stop_str_in_output = false;
    bool ignore_eos = false;
    std::optional<int> max_tokens = 16;  // nullopt: the rest of the context
    int min_tokens = 0;
    std::optional<int> logprobs;  // 0 … 20
    std::optional<int> prompt_logprobs;
    std::vector<std::pair<std::int32_t, float>> logit_bias;
    std::vector<std::int32_t> allowed_token_ids;
    std::vector<std::string> bad_words;
    bool skip_special_tokens = true;
    bool spaces_between_special_tokens = true;
    std::optional<int> truncate_prompt_tokens;
    bool use_beam_search = false;   // needs temperature 0, top_p 1, top_k off, min_p 0; see beam_search.h
    std::optional<int> beam_width;  // beams, at least 2 and n; left out: best_of
    double length_penalty = 1.0;    // beam search only; any finite number
    EarlyStopping early_stopping = EarlyStopping::no;  // beam search only

    int width() const { return use_beam_search && beam_width ? *beam_width : best_of.value_or(n); }
    bool greedy() const { return temperature < 1e-5; }
    // Error(argument): "temperature must be in [0, 2], got 3.5". `vocab` bounds the ids.
    void check(int vocab) const;
};

}  // namespace recto
