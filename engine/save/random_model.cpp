#include "engine/save/random_model.h"

#include <cmath>

#include "engine/load/name_map.h"

namespace recto {

float weight_std_dev(TensorRole role, const ModelConfig& config) {
    const double inputs = double(expected_shape(role, config).back());
    switch (role) {
        case TensorRole::embedding:
            return config.tied_embedding ? float(2.0 / std::sqrt(inputs)) : 1.0F;
        case TensorRole::lm_head:
            return float(2.0 / std::sqrt(inputs));
        case TensorRole::attn_o:
        case TensorRole::ffn_down:
        case TensorRole::expert_down:
            return float(1.0 / std::sqrt(inputs * 2.0 * config.layers));
        default:
            return float(1.0 / std::sqrt(inputs));
    }
}

SavedBiases family_biases(const ModelConfig& config) {
    SavedBiases biases;
    biases.qkv = config.family == "Qwen2";
    return biases;
}

}  // namespace recto
