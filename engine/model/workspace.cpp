#include "engine/model/workspace.h"

#include <algorithm>
#include <cstddef>

#include "engine/model/transformer.h"

namespace recto {
namespace {

constexpr std::size_t alignment = 256;  // a cache line on every device, and what vector loads want

// Hands out places in one range; with a null base it only counts.
struct Layout {
    char* base = nullptr;
    std::size_t used = 0;

    void* take(std::size_t bytes) {
        void* place = base ? base + used : nullptr;
        used += (bytes + alignment - 1) / alignment * alignment;
        return place;
    }
    Tensor tensor(std::int64_t rows, std::int64_t cols, DType dtype) {
        Tensor t;
        t.dtype = dtype;
        t.rows = rows;
        t.cols = cols;
        t.row_stride = cols;
        t.data = take(t.bytes());
        return t;
    }
};

void lay_out(Workspace& w, Layout& layout, const ModelConfig& c, DType activation,
             const BatchLimits& limits) {
    const std::int64_t rows = limits.max_rows;
    const std::int64_t outputs = limits.max_outputs;
    const std::int64_t q_cols = std::int64_t(c.heads) * c.head_dim;
    const std::int64_t kv_cols = std::int64_t(c.kv_heads) * c.head_dim;
    w.residual = layout.tensor(rows, c.hidden, DType::f32);
    w.normed = layout.tensor(std::max(rows, outputs), c.hidden, activation);
    w.qkv = layout.tensor(rows, q_cols + 2 * kv_cols, activation);
    w.attention = layout.tensor(rows, q_cols, activation);
    w.gated = layout.tensor(rows, c.intermediate, activation);
    if (c.experts.count > 0) {
        const std::int64_t slots = rows * c.experts.per_token;
        w.router_logits = layout.tensor(rows, c.experts.count, DType::f32);
        w.expert_gated = layout.tensor(slots, c.experts.intermediate, activation);
        w.choice.ids = static_cast<std::int32_t*>(layout.take(std::size_t(slots) * sizeof(std::int32_t)));
        w.choice.weights = static_cast<float*>(layout.take(std::size_t(slots) * sizeof(float)));
        w.choice.rows = rows;
        w.choice.per_row = c.experts.per_token;
    }
    if (c.post_norms) w.delta = layout.tensor(rows, c.hidden, activation);
    w.rope = layout.tensor(rows, c.rope.rotary_dims, DType::f32);
    if (c.rope_local.rotary_dims > 0)
        w.rope_local = layout.tensor(rows, c.rope_local.rotary_dims, DType::f32);
    w.gathered = layout.tensor(outputs, c.hidden, DType::f32);
    w.logits = layout.tensor(outputs, c.vocab, DType::f32);
    w.ids = static_cast<std::int32_t*>(layout.take(std::size_t(outputs) * sizeof(std::int32_t)));
}

}  // namespace

Workspace::Workspace(Backend& backend, const ModelConfig& config, DType activation,
                     const BatchLimits& limits) {
    Layout count;
    lay_out(*this, count, config, activation, limits);
    memory_ = backend.allocate(count.used);
    Layout place{static_cast<char*>(memory_->data()), 0};
    lay_out(*this, place, config, activation, limits);
}

std::uint64_t transformer_workspace_bytes(const ModelConfig& c, DType activation, const BatchLimits& limits) {
    const std::uint64_t rows = std::uint64_t(limits.max_rows);
    const std::uint64_t outputs = std::uint64_t(limits.max_outputs);
    const std::uint64_t width = dtype_bytes(activation);
    const std::uint64_t heads_cols = std::uint64_t(2 * c.heads + 2 * c.kv_heads) * std::uint64_t(c.head_dim);
    const std::uint64_t per_row = std::uint64_t(c.hidden) * (4 + width * (c.post_norms ? 2 : 1)) +
                                  (heads_cols + std::uint64_t(c.intermediate)) * width +
                                  std::uint64_t(c.rope.rotary_dims + c.rope_local.rotary_dims) * 4;
    const std::uint64_t per_expert_row = std::uint64_t(c.experts.intermediate) * width + 8;
    const std::uint64_t mixture =
        c.experts.count > 0
            ? std::uint64_t(c.experts.count) * 4 + std::uint64_t(c.experts.per_token) * per_expert_row
            : 0;
    return rows * (per_row + mixture) + outputs * (std::uint64_t(c.hidden) + std::uint64_t(c.vocab) + 1) * 4 +
           16 * alignment;
}

}  // namespace recto
