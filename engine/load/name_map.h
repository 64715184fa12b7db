// What the tensors of a decoder are called in Hugging Face folders and in GGUF, and which shape each must have.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/load/model_config.h"
#include "engine/load/model_source.h"

namespace recto {

// Without ".weight" or ".bias": "model.layers.3.self_attn.q_proj". Empty if the format has no such tensor.
std::string huggingface_name(TensorRole role, int layer, const ModelConfig& config);
std::string gguf_name(TensorRole role, int layer, const ModelConfig& config);  // "blk.3.attn_q"

bool is_norm(TensorRole role);
// [rows, cols] of matrices, [size] of norms.
std::vector<std::int64_t> expected_shape(TensorRole role, const ModelConfig& config);

// Visits every tensor that a model with this configuration must have, layer by layer.
void for_each_required_tensor(const ModelConfig& config,
                              const std::function<void(TensorRole role, int layer)>& visit);

// "[49152, 576]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace recto
