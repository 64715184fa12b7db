#include <algorithm>

#include "engine/model/model.h"
#include "engine/model/transformer.h"

namespace recto {

MemoryEstimate estimate_memory(const ModelSource& source, const DeviceInfo& device,
                               const LoadOptions& options) {
    const ModelConfig& c = source.config();
    MemoryEstimate e;
    // Packed planes keep the source's widths, so the tensors' bytes are the weights' bytes.
    for (const TensorInfo& t : source.tensors())
        e.weight_bytes += t.bytes;
    BatchLimits limits;
    e.workspace_bytes = transformer_workspace_bytes(c, DType::f32, limits);
    const DType kv = options.dtype == ModelDType::f32 ? DType::f32 : DType::f16;
    e.kv_bytes_per_token = std::uint64_t(2) * std::uint64_t(c.layers) * std::uint64_t(c.kv_heads) *
                           std::uint64_t(c.head_dim) * dtype_bytes(kv);
    e.full_context_kv_bytes = e.kv_bytes_per_token * std::uint64_t(std::max(c.max_position, 0));
    e.free_bytes = device.memory_free;
    const std::uint64_t fixed = e.weight_bytes + e.workspace_bytes;
    if (e.free_bytes > fixed && e.kv_bytes_per_token > 0) {
        const std::uint64_t tokens = (e.free_bytes - fixed) / e.kv_bytes_per_token;
        e.longest_context = int(std::min<std::uint64_t>(tokens, std::uint64_t(std::max(c.max_position, 0))));
    }
    e.fits = e.free_bytes >= fixed + e.full_context_kv_bytes;
    return e;
}

}  // namespace recto
