// One decoder forward for every supported family, driven by ModelConfig.
//
// A step's rows flow through it together, whatever sequence they belong to:
//     embed
//       → in each layer: norm → q|k|v → rope + KV write → paged attention → o → +residual
//                        → norm → gate|up → act → down → +residual
//                        (of a mixture: norm → router → the chosen experts → +their weighted sum)
//       → gather the rows that sample → norm → logits
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

// Decode steps of like sizes share a captured graph: rows without a sequence fill a step up to this many.
constexpr std::int32_t decode_bucket(std::int32_t rows) {
    if (rows <= 2) return rows;
    if (rows <= 4) return 4;
    const std::int32_t apart = rows <= 256 ? 8 : 32;
    return (rows + apart - 1) / apart * apart;
}

// The cache of a model: layers, heads and head size from its configuration.
KvShape kv_shape_for(const ModelConfig& config, DType dtype, int blocks, int block_size);

}  // namespace recto
