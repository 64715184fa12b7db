// config.json and generation_config.json of a Hugging Face folder, written from a ModelConfig: in the
// spelling of transformers' configuration classes that also older versions and other engines read
// (rope_theta, rope_scaling, torch_dtype). Reading them back (engine/load/folder_config.h) gives the same
// ModelConfig.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "engine/load/model_config.h"
#include "engine/load/model_source.h"
#include "engine/save/safetensors_writer.h"

namespace recto {

using ConfigJson = nlohmann::ordered_json;

// Which linears have a bias; a ModelConfig does not say.
struct SavedBiases {
    bool qkv = false, o = false, mlp = false;
};
bool has_bias(TensorRole role, const SavedBiases& biases);

const char* config_dtype_name(SaveType type);  // "float16"; of the dense types only

// Error(input) "LABEL: …" for a family whose configuration Recto cannot write.
ConfigJson config_json(const ModelConfig& config, const SavedBiases& biases, SaveType dtype,
                       const std::string& label);
// A folder's own config.json, changed to say what is written: other dtype, no quantization, tied or not.
ConfigJson changed_config_json(const ConfigJson& original, const ModelConfig& config, SaveType dtype,
                               const std::string& label);
ConfigJson generation_config_json(const ModelConfig& config, const GenerationDefaults& defaults);

// Whether this family's norms hold w − 1 in Hugging Face folders (Gemma).
bool huggingface_norms_less_one(const ModelConfig& config);
// Whether this family's folders hold q|k|v and gate|up as one tensor each (Phi-3).
bool huggingface_fuses(const ModelConfig& config);
// Whether the family's configuration gives o_proj a bias as soon as q, k and v have one.
bool biases_go_together(const ModelConfig& config);

}  // namespace recto
