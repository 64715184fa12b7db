#include "kernels/cuda/attention_state.h"

#include <cassert>
#include <cstring>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/scratch_sizes.h"

namespace recto::cuda {

AttentionState::AttentionState(Backend& backend, const BatchLimits& limits, int multiprocessors,
                               int compute_major)
    : shape_{limits.heads, multiprocessors} {
    planned_ = compute_major >= 8 && limits.heads.heads > 0 && tiled_head_dim(limits.heads.head_dim);
    if (!planned_) return;
    const AttentionSizes sizes = attention_sizes(limits, multiprocessors);
    most_items_ = sizes.items;
    most_tiles_ = sizes.tiles;
    plan_ints_ = sizes.plan_ints;
    out_ = backend.allocate(sizes.out);
    states_ = backend.allocate(sizes.states);
    arrived_ = backend.allocate(sizes.arrived);
    const std::vector<int> none(sizes.arrived / sizeof(int), 0);
    backend.upload(arrived_->data(), none.data(), sizes.arrived);
}

AttentionWorkspace AttentionState::workspace() const {
    return {static_cast<float*>(out_->data()), static_cast<float2*>(states_->data()),
            static_cast<int*>(arrived_->data()),
            static_cast<int*>(arrived_->data()) + arrived_->bytes() / sizeof(int) - attention_claims};
}

std::size_t AttentionState::packet_ints() const {
    return plan_ints_;
}

void AttentionState::plan_step(const StepBatch& step) {
    if (!planned_) return;
    static_assert(sizeof(DecodeItem) == 4 * sizeof(int) && sizeof(PrefillTile) == 4 * sizeof(int));
    plan_ = plan_attention(step, shape_);
    assert(int(plan_.decode.size()) <= most_items_ && int(plan_.prefill.size()) <= most_tiles_);
    decode_ints_.assign(4 * (1 + plan_.decode.size()), 0);
    decode_ints_[0] = int(plan_.decode.size());
    std::memcpy(decode_ints_.data() + 4, plan_.decode.data(), plan_.decode.size() * sizeof(DecodeItem));
    prefill_ints_.resize(4 * plan_.prefill.size());
    std::memcpy(prefill_ints_.data(), plan_.prefill.data(), plan_.prefill.size() * sizeof(PrefillTile));
}

AttentionWork AttentionState::view(const int* place) const {
    return {place, reinterpret_cast<const DecodeItem*>(place + 4),
            reinterpret_cast<const PrefillTile*>(place + prefill_place())};
}

}  // namespace recto::cuda
