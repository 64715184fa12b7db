// What attention keeps beside a step's arrays: its plan, the plan's place in the packet, and the memory where
// shares of one row meet. One belongs to each DeviceBatch.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/kernels.h"

namespace recto::cuda {

class AttentionState {
  public:
    // `backend` allocates. Without heads in `limits`, or on a card before sm_80, nothing is planned and
    // attention takes the plain kernel.
    AttentionState(Backend& backend, const BatchLimits& limits, int multiprocessors, int compute_major);

    bool planned() const { return planned_; }
    const AttentionShape& shape() const { return shape_; }
    const AttentionPlan& plan() const { return plan_; }
    AttentionWorkspace workspace() const;

    // The plan's fixed place on the card, 16-byte aligned: {decode items, 0, 0, 0}, room for the items, then
    // the tiles.
    std::size_t packet_ints() const;
    AttentionWork view(const int* place) const;  // device memory
    // Plans a step; what of the plan goes to the place's beginning, and to prefill_place().
    void plan_step(const StepBatch& step);
    std::span<const int> decode_ints() const { return decode_ints_; }
    std::span<const int> prefill_ints() const { return prefill_ints_; }
    std::size_t prefill_place() const { return planned_ ? std::size_t(4 * (1 + most_items_)) : 0; }

  private:
    bool planned_ = false;
    AttentionShape shape_;
    AttentionPlan plan_;
    int most_items_ = 0, most_tiles_ = 0;
    std::size_t plan_ints_ = 0;
    std::vector<int> decode_ints_, prefill_ints_;
    std::unique_ptr<Buffer> out_, states_, arrived_;
};

}  // namespace recto::cuda
