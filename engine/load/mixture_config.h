// Which layers are mixtures of experts, and of how many: ModelConfig::experts from config.json and GGUF
// metadata. Error(input) for settings that cannot be, and for kinds of mixtures that Recto does not run.
#pragma once
#include "engine/load/gguf_files.h"
#include "engine/load/gguf_keys.h"
#include "engine/load/json_reader.h"
#include "engine/load/model_config.h"

namespace recto {

// Every layer is a mixture, its experts as wide as "intermediate_size".
void read_mixtral_experts(const JsonObject& config, ModelConfig& model);
// Each decoder_sparse_step-th layer is one, except those that mlp_only_layers names.
void read_qwen3_experts(const JsonObject& config, ModelConfig& model);
// No expert_count: a dense model. A layer is a mixture where the file has a router.
void read_gguf_experts(const GgufFiles& files, const GgufKeys& keys, ModelConfig& model);

}  // namespace recto
