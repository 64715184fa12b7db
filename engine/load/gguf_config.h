// GGUF metadata → ModelConfig and GenerationDefaults. Keys and defaults: llama.cpp src/llama-arch.cpp, llama-model.cpp.
#pragma once
#include "engine/load/gguf_files.h"
#include "engine/load/model_config.h"
#include "engine/load/stored_rows.h"

namespace recto {

// Error(input) for architectures and settings that Recto does not run.
ModelConfig read_gguf_config(const GgufFiles& files);
GenerationDefaults read_gguf_generation_defaults(const Gguf& metadata);
// The order in which this architecture stores the rows of q and k.
RowOrder gguf_qk_order(const ModelConfig& config);

}  // namespace recto
