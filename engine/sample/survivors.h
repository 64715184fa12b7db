// The tokens that temperature, min_p, top_k and top_p leave, with their weights, without sorting the
// vocabulary.
//
// vLLM V1's rules: min_p first, on the tempered distribution; top_k keeps every token that ties with the
// k-th; top_p works on the renormalized rest and drops a token when the more probable ones already sum to at
// least p. Each rule is a threshold on the weight, so equal weights always share their fate. The most
// probable token always survives.
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

    bool contains(std::int32_t id) const { return weight(id) >= threshold_; }
    // exp((logit − largest) / temperature), 0 for masked tokens; filtered ones keep theirs.
    float weight(std::int32_t id) const { return weights_[std::size_t(id)]; }

    // argmax of weight_i / E_i over the survivors, E_i ~ Exp(1): distributed as a draw from the normalized
    // weights, and it depends on no order of summation. E_i = −ln of the token's own uniform number
    // (philox.h).
    std::int32_t draw(std::uint64_t seed, std::uint32_t output_index) const;

  private:
    float kth_weight(std::size_t k);
    // Smallest weight that top_p keeps of those at least `floor`.
    float nucleus_weight(double top_p, float floor);
    // The weights of one histogram bin, descending, into members_.
    void collect_bin(std::size_t bin, float floor);

    std::vector<float> weights_;  // [vocab], padded with zeros to whole blocks of 64
    std::size_t vocab_ = 0;
    float threshold_ = 0;
    std::vector<double> mass_;    // one entry a bin; scratch
    std::vector<float> members_;  // scratch
};

}  // namespace recto
