// What the tensors of a decoder are called in Hugging Face folders and in GGUF, and which shape each must
// have.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/load/model_config.h"
#include "engine/load/model_source.h"

namespace recto {

// Where a role's rows lie in a file: they are a whole tensor, or a run of the rows of one that several roles
// share (config.fused_tensors: q|k|v, gate|up; the experts of a layer in GGUF, and with
// config.experts.stacked).
struct TensorPlace {
    std::string name;                 // without ".weight" or ".bias"; empty if the format has no such tensor
    std::vector<std::int64_t> shape;  // of the whole tensor: [rows, cols] of matrices, [size] of norms,
                                      // [experts, rows, cols] of stacked ones
    std::int64_t first_row = 0;       // of the role's own
    std::int64_t rows = 0;            // of the role alone

    std::int64_t all_rows() const { return shape.size() == 3 ? shape[0] * shape[1] : shape.front(); }
    bool shared() const { return rows != all_rows(); }
};
// "model.layers.3.self_attn.q_proj": as a causal language model's class spells it. Stacked experts have names
// without ".weight" there.
TensorPlace huggingface_place(TensorRole role, int layer, const ModelConfig& config, int expert = 0);
TensorPlace gguf_place(TensorRole role, int layer, const ModelConfig& config,
                       int expert = 0);  // "blk.3.attn_q"

// An expert's matrix in GGUF files older than stacked experts: "blk.3.ffn_gate.7".
TensorPlace gguf_lone_expert(TensorRole role, int layer, const ModelConfig& config, int expert);

bool is_norm(TensorRole role);
bool is_expert(TensorRole role);  // one matrix an expert
// [rows, cols] of matrices, [size] of norms; of the role (and of one expert) alone.
std::vector<std::int64_t> expected_shape(TensorRole role, const ModelConfig& config);

// Visits every tensor that a model with this configuration must have, layer by layer; the roles of experts
// once an expert.
void for_each_required_tensor(const ModelConfig& config,
                              const std::function<void(TensorRole role, int layer, int expert)>& visit);

// "[49152, 576]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace recto
