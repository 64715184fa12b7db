#pragma once
#include <cstdint>

namespace recto {

// Of the model's own distribution: the log-softmax of its logits before any sampling parameter.
struct TokenLogprob {
    std::int32_t token = 0;
    float logprob = 0;
    int rank = 0;  // number of tokens at least as probable; 1 = most probable
};

}  // namespace recto
