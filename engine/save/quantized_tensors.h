// One linear of a quantized Hugging Face folder with random integers, as the tensors that its format keeps it
// in (layouts: engine/load/quantized_layout.h). Integers go straight into their packed places: uniform bits
// are uniform in any order.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/save/make_model.h"
#include "engine/save/safetensors_writer.h"

namespace recto {

struct RandomLinear {
    std::string module;  // "model.layers.3.self_attn.q_proj"
    std::int64_t rows = 0, cols = 0;
    float std_dev = 0;  // of the dequantized weights
};

// Error(argument) if the sizes do not fit the format, or the format is none of awq, gptq, compressed-tensors.
std::vector<SaveTensor> quantized_tensors(const RandomLinear& linear, const MakeModelOptions& options);
// config.json's "quantization_config". The routers of mixtures are left alone.
nlohmann::ordered_json quantization_config(const MakeModelOptions& options, bool mixture);

}  // namespace recto
