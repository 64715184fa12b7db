// What the makers of folders and of GGUF files share: which tensors a random model has, and how large its
// values are.
#pragma once
#include <string>
#include <vector>

#include "engine/load/model_config.h"
#include "engine/load/model_source.h"
#include "engine/save/config_writer.h"

namespace recto {

// Standard deviation of a weight. RMS norms feed the linears values of variance 1; 1/√inputs keeps that. What
// goes back into the residual stream is divided by √(2 · layers), so that it grows by a constant factor over
// all of them. Logits get a deviation of about 2.
float weight_std_dev(TensorRole role, const ModelConfig& config);
constexpr float norm_std_dev = 0.1F;  // around 1
constexpr float bias_std_dev = 0.1F;  // around 0

// Biases of families that always have them.
SavedBiases family_biases(const ModelConfig& config);

}  // namespace recto
