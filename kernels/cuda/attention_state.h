// What attention keeps beside a step's arrays: its plan, the plan's place in the packet, and the memory where
// shares of one row meet. One belongs to each DeviceBatch.
#pragma once
#include <memory>

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

    // The plan's part of the packet, 16-byte aligned: {decode items, 0, 0, 0}, the items, the tiles.
    std::size_t packet_ints() const;
    void fill(const StepBatch& step, int* packet);
    AttentionWork view(const int* packet) const;  // device memory

  private:
    bool planned_ = false;
    AttentionShape shape_;
    AttentionPlan plan_;
    int most_items_ = 0, most_tiles_ = 0;
    std::unique_ptr<Buffer> out_, states_, arrived_;
};

}  // namespace recto::cuda
