// Logits → tokens. The order of the processors and the filters' rules are vLLM V1's (v1/sample/sampler.py):
//   raw logprobs → allowed ids → bad words → min_tokens mask, bias → repetition, frequency, presence penalty
//   → greedy: argmax | temperature → min_p → top_k → top_p → softmax → argmax of p_i / E_i, E_i ~ Exp(1)
// Nothing is kept between calls: what a row gives depends on the row, the tokens so far and the seed alone.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/sample/beam_search.h"
#include "engine/sample/sampling_params.h"
#include "engine/sample/survivors.h"
#include "engine/sample/token_logprob.h"
#include "kernels/batch.h"

namespace recto {

// A request's parameters with everything that needs a model turned into ids.
struct ResolvedSampling {
    SamplingParams params;
    std::vector<std::int32_t> eos;                     // empty with ignore_eos; the first one is the primary
    std::vector<std::vector<std::int32_t>> bad_words;  // each as its tokens
    bool wants_logprobs = false;                       // reported, or needed to rank best_of
};

struct Draw {
    std::int32_t token = -1;  // -1: see failure
    const char* failure = nullptr;
    double logprob = 0;                  // with wants_logprobs
    std::vector<TokenLogprob> logprobs;  // with params.logprobs: the token, then the k best
};

class Sampler {
  public:
    // Logit rows are `vocab` wide; only ids below `valid` can be drawn.
    Sampler(int vocab, int valid);

    // The draw depends on the row and the seed alone: no mask, bias, penalty or log probability.
    static bool needs_row_only(const ResolvedSampling& sampling, std::size_t output_tokens);
    // How a device draws such a token, the `output_index`-th of its output.
    static RowDraw row_draw(const ResolvedSampling& sampling, std::uint64_t seed, std::uint32_t output_index);
    // The argmax of the untouched row is the answer: no logits need to be fetched.
    static bool plain_greedy(const ResolvedSampling& sampling, std::size_t output_tokens);

    // Fills draws[i] with one token drawn by seeds[i]; all share the row, which is overwritten.
    void sample(std::span<float> logits, const ResolvedSampling& sampling,
                std::span<const std::int32_t> prompt, std::span<const std::int32_t> output,
                std::span<const std::uint64_t> seeds, std::span<Draw> draws);

    // Beam search: the `count` most probable tokens of the row after masks and penalties, best first; fewer
    // when masks leave fewer. The row is overwritten. Not null: why there is none.
    const char* propose(std::span<float> logits, const ResolvedSampling& sampling,
                        std::span<const std::int32_t> prompt, std::span<const std::int32_t> output, int count,
                        std::vector<BeamProposal>& proposals);

    // `token`, then the `k` best, of an untouched row.
    std::vector<TokenLogprob> logprobs(std::span<const float> logits, std::int32_t token, int k);

    int valid() const { return valid_; }

  private:
    void apply_masks(std::span<float> row, const ResolvedSampling& s, std::span<const std::int32_t> output);
    void apply_penalties(std::span<float> row, const SamplingParams& p, std::span<const std::int32_t> prompt,
                         std::span<const std::int32_t> output);

    // Ids of the `k` largest above −∞, descending; the lower id first among equal ones.
    std::vector<std::int32_t> largest(std::span<const float> row, int k) const;
    double log_sum_exp(std::span<const float> row);

    int valid_;
    std::vector<std::int32_t> count_;  // [valid] zero between calls; scratch of the penalties
    std::vector<float> raw_;           // [valid] the untouched row, for logprobs
    std::vector<float> weights_;       // [valid] scratch
    Survivors survivors_;
};

}  // namespace recto
