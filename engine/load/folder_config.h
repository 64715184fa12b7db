// config.json and generation_config.json of a Hugging Face folder → ModelConfig and GenerationDefaults.
// Reads the spellings of transformers 5 (rope_parameters) and the older ones (rope_theta, rope_scaling).
#pragma once
#include <string>
#include <string_view>

#include "engine/load/model_config.h"
#include "kernels/dtype.h"

namespace recto {

struct FolderConfig {
    ModelConfig model;
    DType dtype = DType::f32;  // that the model computes in; the weights may be stored in another
    // Which linears have a bias in this family; the file must then hold it, and others are not read.
    bool qkv_bias = false, o_bias = false, mlp_bias = false;
    bool states_tie = false;  // the file has a "tie_word_embeddings", rather than leaving it to the family
};

// Error(input) for architectures, quantizations and settings that Recto does not run; `label` is the file's
// path.
FolderConfig read_folder_config(std::string_view config_json, const std::string& label);

// Adds the end-of-text ids to `model` and returns the sampling defaults.
GenerationDefaults read_generation_config(std::string_view json, const std::string& label,
                                          ModelConfig& model);

}  // namespace recto
