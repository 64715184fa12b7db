// Models of well-known shapes with random weights, for benchmarks and tests: activations keep an ordinary
// scale through all layers, so that logits are neither flat nor degenerate, and a tokenizer is inside, so
// that every command runs. The bytes follow from the options alone.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/save/byte_sink.h"
#include "engine/save/safetensors_writer.h"

namespace recto {

enum class AwqVersion : std::uint8_t { gemm, gemv, gemv_fast };

struct MakeModelOptions {
    std::string like = "tiny";          // a name of model_shape_names()
    int layers = 0;                     // 0: the shape's
    std::string quantization = "none";  // none, awq, gptq, compressed-tensors, gguf:TYPE
    int group_size = 128;               // of awq, gptq and compressed-tensors; −1: whole rows
    AwqVersion awq_version = AwqVersion::gemm;
    bool act_order = false;  // gptq: groups scattered over the inputs
    std::uint64_t seed = 0;
    SaveType dtype = SaveType::f16;  // of what is not quantized, in folders
};

// `out` is a new or empty folder, or (gguf:TYPE) a new file whose name ends in ".gguf"; a folder gets
// "model.gguf". Error(argument) for options that do not fit, Error(runtime) if it cannot be written.
void make_model(const MakeModelOptions& options, const std::filesystem::path& out,
                const SaveProgress& progress = {});

}  // namespace recto
