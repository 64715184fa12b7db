// The tokens that temperature, min_p, top_k and top_p leave, with their weights, without sorting the
// vocabulary.
//
// vLLM V1's rules: min_p first, on the tempered distribution; top_k keeps every token that ties with the
// k-th; top_p works on the renormalized rest and drops a token when the more probable ones already sum to at
// least p. Each rule is a threshold on the logit, so equal logits always share their fate. The most probable
// token always survives.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace recto {

struct FilterParams {
    double temperature = 1.0;
    int top_k = 0;       // ≤ 0: off
    double top_p = 1.0;  // 1: off
    double min_p = 0.0;  // 0: off
};

class Survivors {
  public:
    // `row`: finite logits and −∞ for masked tokens. False when every token is masked.
    bool select(std::span<const float> row, const FilterParams& filter);

    std::span<const std::int32_t> ids() const { return ids_; }   // ascending
    std::span<const float> weights() const { return weights_; }  // exp((logit − largest) / temperature)
    // argmax of weight_i / E_i with E_i ~ Exp(1): distributed as a draw from the normalized weights, and it
    // depends on no order of summation.
    std::int32_t draw(std::uint64_t seed, std::uint32_t output_index) const;

  private:
    float kth_largest(std::span<const float> row, int k);
    // Smallest weight that top_p keeps.
    float nucleus_threshold(double top_p);
    void keep_from(float weight);

    std::vector<std::int32_t> ids_;
    std::vector<float> weights_;
    std::vector<float> scratch_;
};

}  // namespace recto
