// One decoder forward for every supported family, driven by ModelConfig.
//
// A step's rows flow through it together, whatever sequence they belong to:
//     embed → [norm → q|k|v → rope + KV write → paged attention → o → +residual → norm → gate|up → act → down
//     → +residual]         (in a mixture's layers: norm → router → the chosen experts → +their weighted sum)
//           → gather the rows that sample → norm → logits
#pragma once
#include <cstdint>
#include <memory>

#include "engine/model/model.h"
#include "engine/model/step_model.h"

namespace recto {

// Owns the KV cache, the step's device arrays and one workspace sized by `limits`. Error(memory) when they do
// not fit.
std::unique_ptr<StepModel> make_transformer(std::shared_ptr<const Model> model, const KvShape& kv_shape,
                                            const BatchLimits& limits);

// Bytes of that workspace, before anything is allocated.
std::uint64_t transformer_workspace_bytes(const ModelConfig& config, DType activation,
                                          const BatchLimits& limits);

// The cache of a model: layers, heads and head size from its configuration.
KvShape kv_shape_for(const ModelConfig& config, DType dtype, int blocks, int block_size);

}  // namespace recto
