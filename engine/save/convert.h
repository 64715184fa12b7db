// Any model that Recto reads → a Hugging Face folder: config.json, generation_config.json, safetensors with
// dense weights, and the tokenizer where it is known.
#pragma once
#include <filesystem>
#include <string>

#include "engine/load/model_source.h"
#include "engine/save/byte_sink.h"
#include "engine/save/safetensors_writer.h"

namespace recto {

struct ConvertReport {
    std::uint64_t weight_bytes = 0;
    std::string tokenizer_left_out;  // why the folder has no tokenizer; empty if it has one
};

// `type` is f32, f16 or bf16: weights are dequantized exactly and rounded once. The folder is new or empty;
// Error(argument) if not, Error(runtime) if it cannot be written, Error(input) if the model is bad or its
// configuration cannot be said in Hugging Face's form. After an error nothing is left.
ConvertReport convert_model(const ModelSource& source, const std::filesystem::path& out, SaveType type,
                            const SaveProgress& progress = {});

}  // namespace recto
