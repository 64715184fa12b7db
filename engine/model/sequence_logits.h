// Logits at every position of one token sequence, through the paged path: for comparing with other
// implementations, perplexity and KL divergence.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/model/model.h"

namespace recto {

struct SequenceLogitsOptions {
    int block_size = 16;
    int chunk_tokens = 64;  // rows a step: every one of them is an output
    DType kv_dtype = DType::f16;
};

// Calls `row(position, logits)` in ascending position; logits is [vocab], valid during the call.
// Error(argument) when an id is outside the vocabulary or the sequence is longer than the model's context.
void sequence_logits(const std::shared_ptr<const Model>& model, std::span<const std::int32_t> ids,
                     const SequenceLogitsOptions& options,
                     const std::function<void(std::int64_t, std::span<const float>)>& row);

}  // namespace recto
