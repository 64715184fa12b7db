// The engine's view of whatever computes a step: the Transformer, or a test's stand-in that reads its context
// back through the block tables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/batch.h"

namespace recto {

class StepModel {
  public:
    virtual ~StepModel() = default;
    virtual int vocab() const = 0;  // width of a logits row
    // Computes every row of the step and writes its K and V to the row's slot. Logits of step.logit_rows are
    // then in place. Error(runtime, memory) fails the step as a whole; the caller withdraws it.
    virtual void forward(const StepBatch& step) = 0;
    // Whether forward only enqueues its step, and draws tokens by step.draws. Copies and swaps stay in order
    // with it, and the next forward may come before this one has ended.
    virtual bool asynchronous() const { return false; }
    // Such a model draws only ids below it; called once, before the first forward.
    virtual void draw_below(std::int32_t /*ids*/) {}
    // Where asynchronous(): waits for the last step (0) or the one before it (1). The ids [outputs] that it
    // drew, -1 for a row that is not finite and for DrawKind::none. Error(runtime, memory): that step failed.
    virtual std::span<const std::int32_t> drawn(int /*steps_ago*/) { return {}; }
    // Of output i of the last step. Host memory, [vocab], FP32, valid and writable until the next forward:
    // the sampler works in place.
    virtual std::span<float> logits(int output) = 0;
    // Index of the largest logit among the first `valid` ids, -1 if the row is not finite. Cheaper than
    // logits().
    virtual std::int32_t argmax(int output, int valid) = 0;
    virtual std::size_t block_bytes() const = 0;                      // K and V of one block, all layers
    virtual void copy_block(std::int32_t from, std::int32_t to) = 0;  // K and V of all layers
    // The same to and from host memory of block_bytes(). In order with copies and forwards.
    virtual void swap_out(std::int32_t block, void* host) = 0;
    virtual void swap_in(std::int32_t block, const void* host) = 0;
};

}  // namespace recto
