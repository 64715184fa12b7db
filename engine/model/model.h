// A loaded model: weights in a backend's memory, configuration, tokenizer and template. Immutable after load;
// engines and tools share it.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/load/model_source.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "kernels/backend.h"

namespace recto {

enum class ModelDType : std::uint8_t { automatic, f32, f16, bf16 };
// automatic: 8 bits on the CPU, 16 on a card
enum class ActivationMode : std::uint8_t { automatic, eight, floating };

struct LoadOptions {
    ModelDType dtype = ModelDType::automatic;  // f32: FP32 activations and KV, exactly dequantized weights
    ActivationMode activations = ActivationMode::automatic;
    // The longest sequence that will be run; 0: the model's. Models with other frequencies for long contexts
    // than for short ones (longrope) take those that fit, and then hold no more than fits them.
    int context = 0;
    // Of a card: the share of the memory free now that weights, workspace and KV pool may take together, and
    // how much of the weights stays in host memory (rounded up to whole layers).
    double gpu_memory_utilization = 0.9;
    std::uint64_t cpu_offload_bytes = 0;
};

struct LoadStage {
    std::string name;  // "map", "tokenizer", "read", "repack", "upload", "warm-up"
    double seconds = 0;
};

struct LoadProgress {
    std::string stage;
    double fraction = 0;  // of the whole load, 0 … 1
};

// Shared with the loading thread; set to stop.
using CancelFlag = std::shared_ptr<std::atomic<bool>>;

struct LayerWeights {
    std::unique_ptr<Buffer> attn_norm, ffn_norm, q_norm, k_norm, attn_post_norm,
        ffn_post_norm;                  // [hidden]; q and k: [head_dim] or one per element of all heads; FP32
    std::unique_ptr<PackedWeight> qkv;  // [(heads + 2 kv_heads) head_dim, hidden]
    std::unique_ptr<PackedWeight> o;    // [hidden, heads head_dim]
    std::unique_ptr<PackedWeight> gate_up;  // [2 intermediate, hidden]
    std::unique_ptr<PackedWeight> down;     // [hidden, intermediate]
    // Of mixture layers, in place of gate_up and down:
    std::unique_ptr<PackedWeight> router;            // [experts, hidden]
    std::unique_ptr<PackedExperts> experts_gate_up;  // each [2 expert intermediate, hidden]
    std::unique_ptr<PackedExperts> experts_down;     // each [hidden, expert intermediate]
};

struct Model {
    std::shared_ptr<Backend> backend;
    std::filesystem::path path;
    std::string format, quantization;
    std::vector<std::string> warnings;  // of the source, for people
    ModelConfig config;
    GenerationDefaults generation_defaults;
    std::unique_ptr<Tokenizer> tokenizer;         // null for a folder without one
    std::unique_ptr<ChatTemplate> chat_template;  // null when the model has none
    std::string chat_template_error;              // why there is none although the file has one

    Activations activations = Activations::int8;
    DType activation_dtype = DType::f32;      // what the rows that flow through the layers are held in
    DType kv_dtype = DType::f16;              // what KV caches of this model hold by default
    std::unique_ptr<PackedWeight> embedding;  // [vocab, hidden]
    std::unique_ptr<PackedWeight> lm_head;    // null when tied
    std::unique_ptr<Buffer> output_norm;
    std::vector<LayerWeights> layers;
    std::unique_ptr<WeightStream> weight_stream;  // null: all weights are in the backend's memory

    std::uint64_t weight_bytes = 0;       // in the backend's memory, and what offloaded ones pass through
    std::uint64_t host_weight_bytes = 0;  // offloaded
    std::vector<LoadStage> load_stages;   // sum to load_seconds
    double load_seconds = 0;
};

// What activations become where they meet quantized weights. Error(argument) where the device has no 8-bit
// ones.
Activations settle_activations(const DeviceInfo& device, const LoadOptions& options);
// The same for one model: floating where it has no quantized weights, whatever was asked for.
Activations settle_activations(const DeviceInfo& device, const LoadOptions& options,
                               const ModelSource& source);

// Error(cancelled) when the flag is set; memory is returned. Error(memory) says needed, free and what would
// fit.
std::shared_ptr<const Model> load_model(const std::filesystem::path& path, std::shared_ptr<Backend> backend,
                                        const LoadOptions& options = {},
                                        const std::function<void(const LoadProgress&)>& progress = {},
                                        const CancelFlag& cancel = {});

// Sequences and tokens of a step that a device takes unless told otherwise.
struct StepLimits {
    int sequences = 16, tokens = 512;
};
StepLimits default_step_limits(const DeviceInfo& device);
// What was asked for, 0 being nothing. A budget of tokens bounds the sequences too: each takes at least one
// of it.
StepLimits settled_step_limits(const DeviceInfo& device, StepLimits asked);

// The part of the memory that is free now, or held for operations of any model, which a model may take: all
// of it on the CPU.
std::uint64_t memory_budget(const DeviceInfo& device, double gpu_memory_utilization);

// Before loading, from headers only.
struct MemoryEstimate {
    std::uint64_t weight_bytes = 0;       // in the device's memory, and what offloaded ones pass through
    std::uint64_t host_weight_bytes = 0;  // offloaded
    std::vector<int> host_layers;         // whose they are, spread evenly over the model
    std::uint64_t workspace_bytes = 0;  // of a step's rows, and what a card's operations take for themselves
    std::uint64_t kv_bytes_per_token = 0;
    std::uint64_t full_context_kv_bytes = 0;
    std::uint64_t free_bytes = 0;    // measured now
    std::uint64_t budget_bytes = 0;  // of them, what may be used
    int longest_context = 0;         // that fits
    bool fits = false;               // weights + workspace + one full context
    // Where the weights do not fit a card: the least cpu_offload_bytes with which they do, beside a context
    // of 2,048 tokens or the model's. 0: they fit, or no value helps.
    std::uint64_t needed_offload_bytes = 0;
};
// What an engine is to do with the model; 0 and nothing: as it does unless told otherwise.
struct MemoryUse {
    StepLimits step = {0, 0};
    std::optional<DType> kv_dtype;
    int context = 0;  // the longest, in tokens
};
MemoryEstimate estimate_memory(const ModelSource& source, const DeviceInfo& device,
                               const LoadOptions& options = {}, const MemoryUse& use = {});

}  // namespace recto
