// Engine(Model): how many blocks, how long a context, how large a step.
#include <algorithm>
#include <cstdio>
#include <set>

#include "engine/engine_state.h"
#include "engine/model/transformer.h"
#include "kernels/error.h"

namespace recto {
namespace {

constexpr int contexts_by_default = 4;
constexpr int smallest_context = 256;  // less is not worth loading a model for

std::string mib(std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / (1 << 20));
    return text;
}

void fill_step_limits(EngineOptions& o, const DeviceInfo& device) {
    const StepLimits step = settled_step_limits(device, memory_use(o).step);
    o.max_num_seqs = step.sequences;
    o.max_num_batched_tokens = step.tokens;
}

BatchLimits step_limits(const EngineOptions& o, const ModelConfig& config) {
    BatchLimits limits;
    limits.max_rows = o.max_num_batched_tokens;
    limits.max_sequences = o.max_num_seqs;
    limits.max_outputs = o.max_num_seqs + prompt_logit_slice;
    limits.max_blocks = blocks_for(o.max_model_len, o.block_size);
    limits.heads = {config.heads, config.kv_heads, config.head_dim};
    return limits;
}

// All that a step needs beside weights and KV.
std::uint64_t step_memory_bytes(const Model& model, const BatchLimits& limits) {
    return transformer_workspace_bytes(model.config, model.activation_dtype, limits) +
           model.backend->scratch_bytes(limits);
}

// Sets kv_blocks and max_model_len. `free_bytes` is what is left after the workspace: on a card of its
// budget, which is the pool's to fill, up to a full context for every sequence of a step.
void size_pool(EngineOptions& o, int model_context, std::uint64_t block_bytes, std::uint64_t free_bytes,
               bool card) {
    const bool context_given = o.max_model_len > 0;
    const int context = context_given ? o.max_model_len : model_context;
    const std::int64_t one = blocks_for(context, o.block_size);
    const auto fitting = std::int64_t(free_bytes / block_bytes);
    std::int64_t blocks = o.kv_blocks;
    if (blocks == 0 && o.kv_cache_bytes > 0) blocks = std::int64_t(o.kv_cache_bytes / block_bytes);
    if (blocks == 0 && o.kv_cache_bytes == 0) {
        blocks =
            card ? std::min(o.max_num_seqs * one, fitting) : std::min(contexts_by_default * one, fitting / 4);
        if (context_given) blocks = std::max(blocks, std::min(one, fitting));
    }
    const std::int64_t needed =
        context_given ? one : blocks_for(std::min(context, smallest_context), o.block_size);
    if (blocks < needed && o.kv_blocks == 0)
        throw Error(ErrorKind::memory,
                    "a context of " + std::to_string(context_given ? context : needed * o.block_size) +
                        " tokens needs " + mib(std::uint64_t(needed) * block_bytes) +
                        " of KV cache, but the pool gets " +
                        mib(std::uint64_t(std::max<std::int64_t>(blocks, 0)) * block_bytes) + " (" +
                        mib(free_bytes) + " are free), enough for " + std::to_string(blocks * o.block_size) +
                        " tokens: choose a shorter context or a smaller model");
    if (blocks < needed && context_given)
        throw Error(ErrorKind::memory,
                    "a context of " + std::to_string(context) + " tokens needs " + std::to_string(one) +
                        " blocks of " + std::to_string(o.block_size) + ", but kv_blocks is " +
                        std::to_string(blocks) + ": raise kv_blocks or choose a shorter context");
    if (blocks > fitting)
        throw Error(ErrorKind::memory, "a pool of " + std::to_string(blocks) + " blocks needs " +
                                           mib(std::uint64_t(blocks) * block_bytes) + ", but " +
                                           mib(free_bytes) + " are free, enough for " +
                                           std::to_string(fitting) + " blocks");
    o.kv_blocks = int(std::min<std::int64_t>(blocks, 1 << 30));
    o.max_model_len = int(std::min<std::int64_t>(context, blocks * o.block_size));
}

EngineOptions resolved(const Model& model, EngineOptions o) {
    const DeviceInfo device = model.backend->device();
    const int model_context = model.config.max_position;
    if (o.max_model_len < 0 || (model_context > 0 && o.max_model_len > model_context))
        throw Error(ErrorKind::argument, "max_model_len must be in [1, " + std::to_string(model_context) +
                                             "] (the context that the model was made for), got " +
                                             std::to_string(o.max_model_len));
    if (o.block_size < 8 || o.block_size % 8 != 0)
        throw Error(ErrorKind::argument,
                    "block_size must be a multiple of 8, got " + std::to_string(o.block_size));
    if (o.kv_blocks < 0)
        throw Error(ErrorKind::argument, "kv_blocks must be at least 1, got " + std::to_string(o.kv_blocks));
    fill_step_limits(o, device);
    const KvShape one_block =
        kv_shape_for(model.config, o.kv_dtype.value_or(model.kv_dtype), 1, o.block_size);
    BatchLimits limits = step_limits(o, model.config);
    limits.max_blocks = blocks_for(o.max_model_len > 0 ? o.max_model_len : model_context, o.block_size);
    const std::uint64_t workspace = step_memory_bytes(model, limits);
    const bool card = device.kind == "cuda";
    // The share is of what was free before the weights came.
    DeviceInfo before = device;
    if (card) before.memory_free += model.weight_bytes;
    const std::uint64_t taken = workspace + (card ? model.weight_bytes : 0);
    const std::uint64_t budget = memory_budget(before, o.gpu_memory_utilization);
    std::uint64_t free_bytes = budget > taken ? budget - taken : 0;
    if (!card) {  // swap space comes out of the same memory
        if (o.swap_space_bytes > free_bytes)
            throw Error(ErrorKind::memory, "a swap space of " + mib(o.swap_space_bytes) +
                                               " was asked for, but " + mib(free_bytes) +
                                               " of memory are free: choose less");
        free_bytes -= o.swap_space_bytes;
    }
    size_pool(o, model_context, one_block.block_bytes(), free_bytes, card);
    return o;
}

// The tokenizer's first is the primary one; whatever else ends an answer follows.
std::vector<std::int32_t> all_eos(const Model& model) {
    std::vector<std::int32_t> ids;
    if (model.tokenizer) ids.assign(model.tokenizer->eos().begin(), model.tokenizer->eos().end());
    ids.insert(ids.end(), model.config.eos_ids.begin(), model.config.eos_ids.end());
    std::set<std::int32_t> seen;
    std::erase_if(ids, [&seen](std::int32_t id) { return !seen.insert(id).second; });
    return ids;
}

}  // namespace

MemoryUse memory_use(const EngineOptions& o) {
    return {{o.max_num_seqs, o.max_num_batched_tokens}, o.kv_dtype, o.max_model_len};
}

Engine::Engine(std::shared_ptr<const Model> model, const EngineOptions& options) {
    const EngineOptions o = resolved(*model, options);
    const KvShape shape =
        kv_shape_for(model->config, o.kv_dtype.value_or(model->kv_dtype), o.kv_blocks, o.block_size);
    const BatchLimits limits = step_limits(o, model->config);
    state_ = std::make_unique<State>(model, make_transformer(model, shape, limits), model->tokenizer.get(),
                                     all_eos(*model), o);
    state_->workspace_bytes = step_memory_bytes(*model, limits);
}

}  // namespace recto
