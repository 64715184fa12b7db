#include "engine/sample/sampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "engine/sample/row_ops.h"

namespace recto {
namespace {

constexpr const char* not_finite = "the model's logits for this request are not finite";
constexpr const char* nothing_left = "allowed_token_ids, bad_words and min_tokens together leave no token";
constexpr double lowest_temperature = 0.01;  // of a random draw
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

std::int32_t argmax(std::span<const float> row) {  // the first of equal ones
    const float largest = row_largest(row);
    return largest == minus_infinity ? -1 : std::int32_t(row_find(row, largest));
}

bool ends_with(std::span<const std::int32_t> tokens, std::span<const std::int32_t> tail) {
    return tokens.size() >= tail.size() && std::ranges::equal(tokens.last(tail.size()), tail);
}

}  // namespace

Sampler::Sampler(int vocab, int valid) : valid_(valid), count_(std::size_t(valid), 0) {
    assert(valid > 0 && valid <= vocab);
    static_cast<void>(vocab);
}

bool Sampler::needs_row_only(const ResolvedSampling& s, std::size_t output_tokens) {
    const SamplingParams& p = s.params;
    return !s.wants_logprobs && !p.prompt_logprobs && p.allowed_token_ids.empty() && s.bad_words.empty() &&
           p.logit_bias.empty() && output_tokens >= std::size_t(p.min_tokens) &&
           p.repetition_penalty == 1.0 && p.frequency_penalty == 0.0 && p.presence_penalty == 0.0;
}

bool Sampler::plain_greedy(const ResolvedSampling& s, std::size_t output_tokens) {
    return s.params.greedy() && needs_row_only(s, output_tokens);
}

RowDraw Sampler::row_draw(const ResolvedSampling& s, std::uint64_t seed, std::uint32_t output_index) {
    const SamplingParams& p = s.params;
    RowDraw d;
    d.kind = p.greedy() ? DrawKind::greedy : DrawKind::random;
    d.seed = seed;
    d.output_index = output_index;
    d.inverse_temperature = 1.0F / float(std::max(p.temperature, lowest_temperature));
    d.top_k = p.top_k;
    d.top_p = p.top_p;
    d.min_p = float(p.min_p);
    return d;
}

void Sampler::sample(std::span<float> logits, const ResolvedSampling& s, std::span<const std::int32_t> prompt,
                     std::span<const std::int32_t> output, std::span<const std::uint64_t> seeds,
                     std::span<Draw> draws) {
    const std::span<float> row = logits.first(std::size_t(valid_));
    const auto fail = [&](const char* why) {
        for (Draw& d : draws)
            d = {.token = -1, .failure = why};
    };
    if (!row_finite(row)) return fail(not_finite);
    if (s.wants_logprobs) raw_.assign(row.begin(), row.end());

    apply_masks(row, s, output);
    apply_penalties(row, s.params, prompt, output);
    if (s.params.greedy()) {
        const std::int32_t best = argmax(row);
        for (Draw& d : draws)
            d = {.token = best};
    } else {
        const SamplingParams& p = s.params;
        if (survivors_.select(row, {std::max(p.temperature, lowest_temperature), p.top_k, p.top_p, p.min_p}))
            for (std::size_t i = 0; i < draws.size(); ++i)
                draws[i] = {.token = survivors_.draw(seeds[i], std::uint32_t(output.size()))};
        else
            for (Draw& d : draws)
                d = {};
    }
    if (draws.front().token < 0) return fail(nothing_left);
    if (!s.wants_logprobs) return;
    for (Draw& d : draws) {
        if (s.params.logprobs) {
            d.logprobs = this->logprobs(raw_, d.token, *s.params.logprobs);
            d.logprob = d.logprobs.front().logprob;
        } else {
            d.logprob = double(raw_[std::size_t(d.token)]) - log_sum_exp(raw_);
        }
    }
}

double Sampler::log_sum_exp(std::span<const float> row) {
    const float largest = row_largest(row);
    weights_.resize(row.size());
    return double(largest) + std::log(row_weights(row, largest, 1.0F, weights_));
}

void Sampler::apply_masks(std::span<float> row, const ResolvedSampling& s,
                          std::span<const std::int32_t> output) {
    const SamplingParams& p = s.params;
    if (!p.allowed_token_ids.empty()) {
        for (std::int32_t id : p.allowed_token_ids)
            count_[std::size_t(id)] = 1;
        for (std::size_t i = 0; i < row.size(); ++i)
            if (count_[i] == 0) row[i] = minus_infinity;
        for (std::int32_t id : p.allowed_token_ids)
            count_[std::size_t(id)] = 0;
    }
    for (const auto& word : s.bad_words)
        if (ends_with(output, std::span(word).first(word.size() - 1)))
            row[std::size_t(word.back())] = minus_infinity;
    if (output.size() < std::size_t(p.min_tokens)) {
        for (std::int32_t id : s.eos)
            row[std::size_t(id)] = minus_infinity;
        for (std::int32_t id : p.stop_token_ids)
            row[std::size_t(id)] = minus_infinity;
    }
    for (const auto& [id, bias] : p.logit_bias)
        row[std::size_t(id)] += bias;
}

void Sampler::apply_penalties(std::span<float> row, const SamplingParams& p,
                              std::span<const std::int32_t> prompt, std::span<const std::int32_t> output) {
    const bool counts = p.frequency_penalty != 0 || p.presence_penalty != 0;
    if (p.repetition_penalty == 1.0 && !counts) return;
    const auto inside = [this](std::int32_t t) { return t >= 0 && t < valid_; };
    const auto clear = [&](std::span<const std::int32_t> tokens) {
        for (std::int32_t t : tokens)
            if (inside(t)) count_[std::size_t(t)] = 0;
    };
    if (p.repetition_penalty != 1.0) {
        const auto r = float(p.repetition_penalty);
        for (const auto tokens : {prompt, output}) {
            for (std::int32_t t : tokens) {
                if (!inside(t) || count_[std::size_t(t)]++ > 0) continue;
                float& x = row[std::size_t(t)];
                x = x > 0 ? x / r : x * r;
            }
        }
        clear(prompt);
        clear(output);
    }
    if (!counts) return;
    for (std::int32_t t : output)
        if (inside(t)) ++count_[std::size_t(t)];
    for (std::int32_t t : output) {
        if (!inside(t) || count_[std::size_t(t)] == 0) continue;
        row[std::size_t(t)] -= float(p.frequency_penalty * count_[std::size_t(t)] + p.presence_penalty);
        count_[std::size_t(t)] = 0;
    }
}

const char* Sampler::propose(std::span<float> logits, const ResolvedSampling& s,
                             std::span<const std::int32_t> prompt, std::span<const std::int32_t> output,
                             int count, std::vector<BeamProposal>& proposals) {
    proposals.clear();
    const std::span<float> row = logits.first(std::size_t(valid_));
    if (!row_finite(row)) return not_finite;
    if (s.params.logprobs) raw_.assign(row.begin(), row.end());
    apply_masks(row, s, output);
    apply_penalties(row, s.params, prompt, output);
    const std::vector<std::int32_t> best = largest(row, count);
    if (best.empty()) return nothing_left;
    const double norm = log_sum_exp(row);
    for (std::int32_t id : best) {
        BeamProposal p{.token = id, .logprob = double(row[std::size_t(id)]) - norm};
        if (s.params.logprobs) p.reported = logprobs(raw_, id, *s.params.logprobs);
        proposals.push_back(std::move(p));
    }
    return nullptr;
}

std::vector<std::int32_t> Sampler::largest(std::span<const float> row, int k) const {
    std::vector<std::int32_t> best;
    float smallest = minus_infinity;  // of a full list
    for (std::int32_t i = 0; k > 0 && i < valid_; ++i) {
        const float x = row[std::size_t(i)];
        if (x <= smallest) continue;
        const auto at = std::upper_bound(best.begin(), best.end(), x, [&](float value, std::int32_t id) {
            return value > row[std::size_t(id)];
        });
        best.insert(at, i);
        if (best.size() > std::size_t(k)) best.pop_back();
        if (best.size() == std::size_t(k)) smallest = row[std::size_t(best.back())];
    }
    return best;
}

std::vector<TokenLogprob> Sampler::logprobs(std::span<const float> logits, std::int32_t token, int k) {
    const std::span<const float> row = logits.first(std::size_t(valid_));
    const std::vector<std::int32_t> best = largest(row, k);
    const double norm = log_sum_exp(row);
    const auto entry = [&](std::int32_t id) {
        const float x = row[std::size_t(id)];
        return TokenLogprob{id, float(x - norm),
                            int(std::ranges::count_if(row, [x](float y) { return y >= x; }))};
    };
    std::vector<TokenLogprob> entries{entry(token)};
    for (std::int32_t id : best)
        if (id != token) entries.push_back(entry(id));
    return entries;
}

}  // namespace recto
