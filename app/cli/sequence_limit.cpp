#include "app/cli/sequence_limit.h"

#include <algorithm>

#include "engine/model/transformer.h"
#include "kernels/error.h"

namespace recto::cli {

SequenceLimit sequence_limit(const CommonOptions& o, const Model& model) {
    const int context = model.config.max_position;
    if (context > 0 && o.max_model_len > context)
        throw Error(ErrorKind::argument, "--max-model-len must be in [1, " + std::to_string(context) +
                                             "], the context that " + model.path.filename().string() +
                                             " holds, got " + std::to_string(o.max_model_len));
    SequenceLimit limit;
    if (o.max_model_len > 0) limit = {o.max_model_len, "--max-model-len " + std::to_string(o.max_model_len)};
    const EngineOptions engine = engine_options(o);
    std::int64_t blocks = engine.kv_blocks;
    std::string pool = "--kv-blocks " + std::to_string(engine.kv_blocks);
    if (engine.kv_cache_bytes > 0) {
        const KvShape one =
            kv_shape_for(model.config, engine.kv_dtype.value_or(model.kv_dtype), 1, engine.block_size);
        blocks = std::int64_t(engine.kv_cache_bytes / one.block_bytes());
        pool = "--kv-cache-gib " + exact_double(o.kv_cache_gib);
    } else if (blocks == 0) {
        return limit;
    }
    const std::int64_t tokens = std::min<std::int64_t>(blocks * engine.block_size, 1 << 30);
    if (limit.option.empty() || tokens < limit.tokens) limit = {int(tokens), pool};
    return limit;
}

}  // namespace recto::cli
