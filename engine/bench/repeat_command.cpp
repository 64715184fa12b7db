// The command line that repeats a benchmark.
#include <cstdio>

#include "engine/bench/compare.h"

namespace recto {
namespace {

std::string list_text(const std::vector<int>& values) {
    std::string text;
    for (const int v : values)
        text += (text.empty() ? "" : ",") + std::to_string(v);
    return text;
}

std::string number_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

// The flags of one side; `prefix` is "--" or "--against-".
std::string side_flags(const BenchSide& side, const std::string& prefix) {
    std::string line;
    const auto add = [&](const char* name, const std::string& value) {
        line += " " + prefix + name + " " + value;
    };
    if (side.load.dtype == ModelDType::f32) add("dtype", "float32");
    if (side.load.dtype == ModelDType::f16) add("dtype", "float16");
    if (side.load.dtype == ModelDType::bf16) add("dtype", "bfloat16");
    if (side.load.activations == ActivationMode::eight) add("activations", "8");
    if (side.load.activations == ActivationMode::floating) add("activations", "16");
    if (side.engine.kv_dtype == DType::f32) add("kv-cache-dtype", "float32");
    if (side.engine.kv_dtype == DType::f16) add("kv-cache-dtype", "float16");
    if (side.engine.kv_dtype == DType::bf16) add("kv-cache-dtype", "bfloat16");
    if (side.engine.kv_dtype == DType::f8_e4m3) add("kv-cache-dtype", "fp8");
    return line;
}

}  // namespace

std::string repeat_command(const CompareOptions& o, const std::string& device, int threads) {
    const BenchOptions& w = o.workload;
    std::string line = "recto-cli bench --model " + model_label(o.a.model);
    if (o.b) line += " --against " + model_label(o.b->model);
    line += " --prompt-tokens " + std::to_string(w.prompt_tokens) + " --output-tokens " +
            std::to_string(w.output_tokens) + " --sequences " + list_text(w.sequences) + " --depth " +
            list_text(w.depths) + " --repeats " + std::to_string(w.repeats) + " --seed " +
            std::to_string(w.seed);
    if (w.loads != 1) line += " --loads " + std::to_string(w.loads);
    if (w.pause_s >= 0) line += " --pause " + number_text(w.pause_s);
    if (!o.stay_loaded) line += " --in-turn";
    if (!device.empty() && device != "auto") line += " --device " + device;
    if (threads > 0) line += " --threads " + std::to_string(threads);
    const EngineOptions& e = o.a.engine;
    if (e.max_model_len > 0) line += " --max-model-len " + std::to_string(e.max_model_len);
    if (e.kv_blocks > 0) line += " --kv-blocks " + std::to_string(e.kv_blocks);
    if (e.kv_cache_bytes > 0)
        line += " --kv-cache-gib " + number_text(double(e.kv_cache_bytes) / double(1ULL << 30));
    if (e.block_size != EngineOptions{}.block_size) line += " --block-size " + std::to_string(e.block_size);
    if (e.max_num_seqs > 0) line += " --max-num-seqs " + std::to_string(e.max_num_seqs);
    if (e.max_num_batched_tokens > 0)
        line += " --max-num-batched-tokens " + std::to_string(e.max_num_batched_tokens);
    if (e.gpu_memory_utilization != EngineOptions{}.gpu_memory_utilization)
        line += " --gpu-memory-utilization " + number_text(e.gpu_memory_utilization);
    const auto gib = [](std::uint64_t bytes) { return number_text(double(bytes) / double(1ULL << 30)); };
    if (o.a.load.cpu_offload_bytes > 0) line += " --cpu-offload-gib " + gib(o.a.load.cpu_offload_bytes);
    if (e.swap_space_bytes > 0) line += " --swap-space-gib " + gib(e.swap_space_bytes);
    if (!e.overlap) line += " --no-overlap";
    line += side_flags(o.a, "--");
    if (o.b && side_flags(o.a, "") != side_flags(*o.b, "")) line += side_flags(*o.b, "--against-");
    return line;
}

}  // namespace recto
