// Logits at every position of one token sequence, through the paged path: for comparing with other
// implementations, perplexity and KL divergence.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/step_model.h"

namespace recto {

struct SequenceLogitsOptions {
    int block_size = 16;
    int chunk_tokens = 64;          // rows a step: every one of them is an output
    std::optional<DType> kv_dtype;  // left out: the model's
};

// One sequence after another, chunk by chunk, over a cache for `max_tokens`. Two of them side by side compare
// two models without keeping a window's logits.
class SequenceRunner {
  public:
    SequenceRunner(std::shared_ptr<const Model> model, const SequenceLogitsOptions& options,
                   std::int32_t max_tokens);
    // Error(argument) when an id is outside the vocabulary or the sequence is longer than max_tokens or than
    // the model's context.
    void begin(std::span<const std::int32_t> ids);
    // Computes the next chunk; returns its rows, 0 at the end.
    std::int32_t forward();
    // [vocab] of row `i` of that chunk, valid until the next call of forward().
    std::span<const float> logits(std::int32_t i) { return transformer_->logits(i); }

  private:
    std::shared_ptr<const Model> model_;
    std::int32_t max_tokens_, chunk_, blocks_;
    std::unique_ptr<StepModel> transformer_;
    std::vector<std::int32_t> ids_;
    std::int32_t next_ = 0;
};

// Calls `row(position, logits)` in ascending position; logits is [vocab], valid during the call.
// Errors as SequenceRunner::begin.
void sequence_logits(const std::shared_ptr<const Model>& model, std::span<const std::int32_t> ids,
                     const SequenceLogitsOptions& options,
                     const std::function<void(std::int64_t, std::span<const float>)>& row);

}  // namespace recto
