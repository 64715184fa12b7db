#include "engine/load/gguf_families.h"

#include <cmath>
#include <functional>

#include "engine/load/mixture_config.h"

namespace recto {

namespace {

int window_of(const GgufKeys& keys, int fallback) {
    return keys.optional("attention.sliding_window", 0, max_context, fallback);
}

void set_windows(ModelConfig& config, int window, const std::function<bool(int layer)>& slides) {
    if (window == 0) return;
    config.window.assign(std::size_t(config.layers), 0);
    for (int layer = 0; layer < config.layers; ++layer)
        if (slides(layer)) config.window[std::size_t(layer)] = window;
}

// A factor that a file may leave out or, as older converters did, write as 0.
float factor_of(const GgufKeys& keys, const char* key, double fallback) {
    const double stored = keys.number(key, fallback);
    const double value = stored == 0 ? fallback : stored;
    return value == 0 ? 0.0F : checked_factor(value, keys.name(key), keys.label());
}

void read_llama(const GgufFiles& files, const GgufKeys& keys, ModelConfig& config) {
    set_windows(config, window_of(keys, 0), [](int) { return true; });
    read_gguf_experts(files, keys, config);
    if (config.experts.count > 0) config.family = "Mixtral";
}

void read_qwen3(const GgufFiles&, const GgufKeys&, ModelConfig& config) {
    config.qk_norm = QkNorm::per_head;
}

void read_qwen3moe(const GgufFiles& files, const GgufKeys& keys, ModelConfig& config) {
    config.qk_norm = QkNorm::per_head;
    (void)keys.required("expert_count", 1, max_experts);
    read_gguf_experts(files, keys, config);
}

// The largest model of a generation, told by its depth, scales scores by hidden / heads instead of the head
// size.
void read_gemma(const GgufKeys& keys, int largest_layers, ModelConfig& config) {
    config.post_norms = true;  // the weights already hold 1 + w
    config.activation = Activation::gelu_tanh;
    config.embedding_scale = std::sqrt(float(config.hidden));
    if (config.layers == largest_layers)
        config.attention_scale = 1.0F / std::sqrt(float(config.hidden) / float(config.heads));
    config.attention_softcap = factor_of(keys, "attn_logit_softcapping", 0.0);
    config.logits_softcap = factor_of(keys, "final_logit_softcapping", 0.0);
}

void read_gemma2(const GgufFiles&, const GgufKeys& keys, ModelConfig& config) {
    read_gemma(keys, 46, config);
    config.attention_softcap = factor_of(keys, "attn_logit_softcapping", 50.0);
    config.logits_softcap = factor_of(keys, "final_logit_softcapping", 30.0);
    set_windows(config, window_of(keys, 4096), [](int layer) { return layer % 2 == 0; });
}

void read_gemma3(const GgufFiles&, const GgufKeys& keys, ModelConfig& config) {
    read_gemma(keys, 62, config);
    config.qk_norm = QkNorm::per_head;
    const int pattern = keys.optional("attention.sliding_window_pattern", 1, max_layers, 6);
    set_windows(config, window_of(keys, 0), [&](int layer) { return (layer + 1) % pattern != 0; });
}

void read_phi3(const GgufFiles& files, const GgufKeys& keys, ModelConfig& config) {
    config.fused_tensors = files.find("blk.0.attn_qkv.weight") != nullptr;
    set_windows(config, window_of(keys, 0), [](int) { return true; });
}

void read_olmo2(const GgufFiles&, const GgufKeys& keys, ModelConfig& config) {
    if (window_of(keys, 0) > 0)
        refuse(keys.label(), "OLMo 3, whose layers have sliding windows, is not supported; OLMo 2 is");
    config.qk_norm = QkNorm::all_heads;
    config.pre_norms = false;
    config.post_norms = true;
}

void read_granite(const GgufFiles&, const GgufKeys& keys, ModelConfig& config) {
    config.embedding_scale = factor_of(keys, "embedding_scale", 1.0);
    config.residual_scale = factor_of(keys, "residual_scale", 1.0);
    config.attention_scale = factor_of(keys, "attention.scale", 0.0);
    config.logits_scale = 1.0F / factor_of(keys, "logit_scale", 1.0);
}

void read_smollm3(const GgufFiles&, const GgufKeys&, ModelConfig& config) {
    config.unrotated.assign(std::size_t(config.layers), 0);
    for (int layer = 3; layer < config.layers; layer += 4)
        config.unrotated[std::size_t(layer)] = 1;
}

constexpr GgufFamily families[] = {
    {"llama", "Llama", true, read_llama},  // also Mistral, Mixtral, Vicuna, SmolLM2
    {"qwen2", "Qwen2", false},
    {"qwen3", "Qwen3", false, read_qwen3},
    {"qwen3moe", "Qwen3 MoE", false, read_qwen3moe},
    {"gemma2", "Gemma 2", false, read_gemma2},
    {"gemma3", "Gemma 3", false, read_gemma3, 10000.0},
    {"phi3", "Phi-3", false, read_phi3},
    {"olmo2", "OLMo 2", false, read_olmo2},
    {"granite", "Granite", true, read_granite},
    {"smollm3", "SmolLM3", true, read_smollm3},
};

}  // namespace

const GgufFamily* find_gguf_family(std::string_view architecture) {
    for (const auto& family : families)
        if (architecture == family.architecture) return &family;
    return nullptr;
}

const GgufFamily& gguf_family_of(const Gguf& meta) {
    const auto name = meta.text("general.architecture");
    if (!name) refuse(meta.label(), "the key general.architecture is missing; this is not a model");
    if (const GgufFamily* family = find_gguf_family(*name)) return *family;
    std::string supported;
    for (const auto& family : families)
        supported += (supported.empty() ? "" : ", ") + std::string(family.architecture);
    refuse(meta.label(), "the architecture " + shown(*name) +
                             " is not supported; supported in GGUF files are " + supported);
}

}  // namespace recto
