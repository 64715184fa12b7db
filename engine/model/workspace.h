// The activations of one step: a single allocation, cut into the tensors that the forward passes through.
#pragma once
#include <cstdint>
#include <memory>

#include "engine/load/model_config.h"
#include "kernels/backend.h"

namespace recto {

struct Workspace {
    Workspace(Backend& backend, const ModelConfig& config, DType activation, const BatchLimits& limits);

    // R = max_rows, O = max_outputs
    Tensor residual;              // [R, hidden] FP32 on every backend
    Tensor normed;                // [max(R, O), hidden]
    Tensor qkv;                   // [R, (heads + 2 kv_heads) head_dim]
    Tensor attention;             // [R, heads head_dim]
    Tensor gated;                 // [R, intermediate]; of dense layers
    Tensor router_logits;         // [R, experts] FP32; this and the next two only with mixtures
    Tensor expert_gated;          // [R k, expert intermediate]
    ExpertChoice choice;          // [R, k]
    Tensor delta;                 // [R, hidden], only with post norms
    Tensor rope;                  // [R, rotary_dims] FP32
    Tensor rope_local;            // [R, rotary_dims] FP32, only with a local RoPE
    Tensor gathered;              // [O, hidden]
    Tensor logits;                // [O, vocab] FP32
    std::int32_t* ids = nullptr;  // [O]

  private:
    std::unique_ptr<Buffer> memory_;
};

}  // namespace recto
