// From a model's rotary-embedding settings to one fixed set of inverse frequencies. Pure.
//
// θ_i = theta^(−2i/d), i = 0 … d/2 − 1. The formulas are those of transformers' modeling_rope_utils.py: default,
// linear, dynamic (NTK), llama3, yarn (Peng et al. 2023), longrope (Ding et al. 2024). Two of them depend on the
// length of the text there; cached keys are already rotated, so here they are fixed at load: dynamic at factor times
// the original length, longrope by the longest context that will be run.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/load/model_config.h"

namespace recto {

struct RopeSettings {
    std::string type = "default";        // default, linear, dynamic, llama3, yarn, longrope
    double theta = 10000.0;
    int rotary_dims = 0;                 // d
    double factor = 1.0;
    double max_position = 0;             // max_position_embeddings
    double original_max_position = 0;    // 0: max_position
    double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
    double beta_fast = 32.0, beta_slow = 1.0;              // yarn
    bool truncate = true;                                  // yarn: whole ramp ends
    std::optional<double> attention_factor;                // yarn, longrope
    std::optional<double> mscale, mscale_all_dim;          // yarn
    std::vector<double> short_factor, long_factor;         // longrope, [d / 2]
};

// Error(input) "LABEL: …" for an unknown type and for settings that no frequency can be made of.
RopeConfig scale_rope(const RopeSettings& settings, const std::string& label);

// Settles a longrope model for contexts of up to `context` tokens (0: as long as it was made for). Where those are
// short, it runs with the frequencies for short ones and its max_position becomes the longest of these.
void settle_rope(ModelConfig& config, int context);

// The longest context these settings are made for: the file's max_position, extended where its value is the
// unscaled one (linear, dynamic: times factor; yarn: original times factor).
double scaled_max_position(const RopeSettings& settings);

}  // namespace recto
