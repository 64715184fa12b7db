#include "engine/load/folder_families.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/load/config_checks.h"
#include "engine/load/mixture_config.h"
#include "engine/load/refuse.h"

namespace recto {

namespace {

bool flag(const JsonObject& config, const char* key, bool fallback = false) {
    return config.boolean(key).value_or(fallback);
}

void read_attention_bias(const JsonObject& config, FolderConfig& result) {
    result.qkv_bias = result.o_bias = flag(config, "attention_bias");
}

// The layers that "layer_types" names, where a file has it, else those that `slides` says, get `window`.
void set_windows(const JsonObject& config, ModelConfig& model, int window,
                 const std::function<bool(int layer)>& slides) {
    std::vector<int> windows(std::size_t(model.layers), 0);
    const auto types = config.texts("layer_types");
    if (types && types->size() != windows.size())
        refuse(config.label(), "\"layer_types\" should have " + std::to_string(windows.size()) +
                                   " entries, found " + std::to_string(types->size()));
    for (int layer = 0; layer < model.layers; ++layer) {
        bool sliding = !types && slides(layer);
        if (types) {
            const std::string& type = (*types)[std::size_t(layer)];
            if (type != "sliding_attention" && type != "full_attention")
                refuse(config.label(),
                       "the layer type " + shown(type) +
                           " is not supported; supported are full_attention and sliding_attention");
            sliding = type == "sliding_attention";
        }
        if (sliding) windows[std::size_t(layer)] = window;
    }
    if (std::any_of(windows.begin(), windows.end(), [](int w) { return w > 0; })) model.window = windows;
}

// 0 if the file says null, or nothing where the class has no default.
int window_of(const JsonObject& config, int fallback) {
    if (config.holds_null("sliding_window")) return 0;
    if (!config.has("sliding_window")) return fallback;
    return required_size(config, "sliding_window", max_context);
}

void read_llama(const JsonObject& config, FolderConfig& result) {
    read_attention_bias(config, result);
    result.mlp_bias = flag(config, "mlp_bias");
}

void read_mistral(const JsonObject& config, FolderConfig& result) {
    if (const int window = window_of(config, 4096))
        set_windows(config, result.model, window, [](int) { return true; });
}

// A window counts only with use_sliding_window, and then from layer max_window_layers on.
void read_qwen_window(const JsonObject& config, ModelConfig& model) {
    const int window = window_of(config, 4096);
    if (!flag(config, "use_sliding_window") || window == 0) return;
    const auto full = config.integer("max_window_layers").value_or(28);
    set_windows(config, model, window, [&](int layer) { return layer >= full; });
}

void read_qwen2(const JsonObject& config, FolderConfig& result) {
    result.qkv_bias = true;
    read_qwen_window(config, result.model);
}

void read_qwen3(const JsonObject& config, FolderConfig& result) {
    read_attention_bias(config, result);
    result.model.qk_norm = QkNorm::per_head;
    read_qwen_window(config, result.model);
}

void read_mixtral(const JsonObject& config, FolderConfig& result) {
    if (const int window = window_of(config, 0))
        set_windows(config, result.model, window, [](int) { return true; });
    read_mixtral_experts(config, result.model);
}

void read_qwen3_moe(const JsonObject& config, FolderConfig& result) {
    read_attention_bias(config, result);
    result.model.qk_norm = QkNorm::per_head;
    if (const int window = window_of(config, 4096); flag(config, "use_sliding_window") && window > 0)
        set_windows(config, result.model, window, [](int) { return true; });
    read_qwen3_experts(config, result.model);
}

// √hidden, rounded to the type that the original multiplies in.
float gemma_embedding_scale(DType dtype, int hidden) {
    return as_stored(std::sqrt(float(hidden)), dtype);
}

float softcap_of(const JsonObject& config, const char* key, float fallback) {
    if (config.holds_null(key)) return 0.0F;
    const double cap = config.number(key).value_or(fallback);
    return cap == 0 ? 0.0F : checked_factor(cap, shown(key), config.label());
}

void read_gemma(const JsonObject& config, FolderConfig& result) {
    ModelConfig& model = result.model;
    read_attention_bias(config, result);
    if (flag(config, "use_bidirectional_attention"))
        refuse(config.label(),
               "models whose text attends to what follows it are not supported; causal ones are");
    model.norm_plus_one = true;
    model.post_norms = true;
    model.embedding_scale = gemma_embedding_scale(result.dtype, model.hidden);
    const double scalar = checked_factor(config.number("query_pre_attn_scalar").value_or(256.0),
                                         "\"query_pre_attn_scalar\"", config.label());
    model.attention_scale = float(1.0 / std::sqrt(scalar));
}

void read_gemma2(const JsonObject& config, FolderConfig& result) {
    read_gemma(config, result);
    result.model.attention_softcap = softcap_of(config, "attn_logit_softcapping", 50.0F);
    result.model.logits_softcap = softcap_of(config, "final_logit_softcapping", 30.0F);
    set_windows(config, result.model, window_of(config, 4096), [](int layer) { return layer % 2 == 0; });
}

void read_gemma3(const JsonObject& config, FolderConfig& result) {
    read_gemma(config, result);
    ModelConfig& model = result.model;
    model.qk_norm = QkNorm::per_head;
    model.attention_softcap = softcap_of(config, "attn_logit_softcapping", 0.0F);
    model.logits_softcap = softcap_of(config, "final_logit_softcapping", 0.0F);
    const int pattern = optional_size(config, "sliding_window_pattern", max_layers,
                                      optional_size(config, "_sliding_window_pattern", max_layers, 6));
    set_windows(config, model, window_of(config, 4096),
                [&](int layer) { return (layer + 1) % pattern != 0; });
}

void read_phi3(const JsonObject& config, FolderConfig& result) {
    result.model.fused_tensors = true;
    if (const int window = window_of(config, 0))
        set_windows(config, result.model, window, [](int) { return true; });
}

void read_olmo2(const JsonObject& config, FolderConfig& result) {
    read_attention_bias(config, result);
    result.model.qk_norm = QkNorm::all_heads;
    result.model.pre_norms = false;
    result.model.post_norms = true;
}

float multiplier(const JsonObject& config, const char* key) {
    return checked_factor(config.number(key).value_or(1.0), shown(key), config.label());
}

void read_granite(const JsonObject& config, FolderConfig& result) {
    read_llama(config, result);
    ModelConfig& model = result.model;
    model.embedding_scale = multiplier(config, "embedding_multiplier");
    model.attention_scale = multiplier(config, "attention_multiplier");
    model.residual_scale = multiplier(config, "residual_multiplier");
    model.logits_scale = 1.0F / multiplier(config, "logits_scaling");
}

// no_rope_layers holds 1 for layers that do rotate; without it each no_rope_layer_interval-th does not.
void read_smollm3(const JsonObject& config, FolderConfig& result) {
    read_llama(config, result);
    ModelConfig& model = result.model;
    const int interval = optional_size(config, "no_rope_layer_interval", max_layers, 4);
    model.unrotated.assign(std::size_t(model.layers), 0);
    const auto rotates = config.integer_or_list("no_rope_layers");
    if (!rotates.empty() && rotates.size() < model.unrotated.size())
        refuse(config.label(), "\"no_rope_layers\" should have " + std::to_string(model.layers) +
                                   " entries, found " + std::to_string(rotates.size()));
    for (std::size_t i = 0; i < model.unrotated.size(); ++i)
        model.unrotated[i] = rotates.empty() ? (int(i) + 1) % interval == 0 : rotates[i] == 0;
    if (!flag(config, "use_sliding_window")) return;
    set_windows(config, model, window_of(config, 0),
                [&](int layer) { return model.unrotated[std::size_t(layer)] != 0; });
}

// The defaults are those of transformers 5.24's configuration classes.
constexpr FamilyDefaults gemma_defaults{.hidden = 2304,
                                        .intermediate = 9216,
                                        .layers = 26,
                                        .heads = 8,
                                        .vocab = 256000,
                                        .kv_heads = 4,
                                        .head_dim = 256,
                                        .max_position = 8192,
                                        .tied = true,
                                        .activation = Activation::gelu_tanh,
                                        .bos = 2,
                                        .eos = 1};
constexpr FamilyDefaults gemma3_defaults = [] {
    FamilyDefaults d = gemma_defaults;
    d.vocab = 262208;
    d.max_position = 131072;
    d.theta = 1e6;
    d.local_theta = 1e4;
    return d;
}();

constexpr FolderFamily families[] = {
    {"LlamaForCausalLM", "llama", "Llama", {.bos = 1, .eos = 2}, read_llama},
    {"MistralForCausalLM",
     "mistral",
     "Mistral",
     {.kv_heads = 8, .max_position = 131072, .bos = 1, .eos = 2},
     read_mistral},
    {"Qwen2ForCausalLM", "qwen2", "Qwen2", {.max_position = 32768}, read_qwen2},
    {"Qwen3ForCausalLM", "qwen3", "Qwen3", {.head_dim = 128, .max_position = 32768}, read_qwen3},
    {"MixtralForCausalLM",
     "mixtral",
     "Mixtral",
     {.kv_heads = 8, .max_position = 131072, .norm_eps = 1e-5F, .theta = 1e6, .bos = 1, .eos = 2},
     read_mixtral},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "Qwen3 MoE", {.kv_heads = 4, .max_position = 32768}, read_qwen3_moe},
    {"Gemma2ForCausalLM", "gemma2", "Gemma 2", gemma_defaults, read_gemma2},
    {"Gemma3ForCausalLM", "gemma3_text", "Gemma 3", gemma3_defaults, read_gemma3},
    {"Gemma3ForConditionalGeneration", "gemma3", "Gemma 3", gemma3_defaults, read_gemma3, true},
    {"Phi3ForCausalLM",
     "phi3",
     "Phi-3",
     {.max_position = 4096, .norm_eps = 1e-5F, .original_position = 4096, .bos = 1, .eos = 32000},
     read_phi3},
    {"Olmo2ForCausalLM", "olmo2", "OLMo 2", {.norm_eps = 1e-5F, .eos = 50279}, read_olmo2},
    {"GraniteForCausalLM", "granite", "Granite", {.bos = 1, .eos = 2}, read_granite},
    {"SmolLM3ForCausalLM",
     "smollm3",
     "SmolLM3",
     {.kv_heads = 4, .max_position = 32768, .theta = 2e6, .tied = true, .bos = 128000, .eos = 128001},
     read_smollm3},
};

}  // namespace

const FolderFamily& folder_family_of(const JsonObject& config) {
    const auto names = config.texts("architectures").value_or(std::vector<std::string>());
    const auto type = config.text("model_type").value_or("");
    std::string supported;
    for (const auto& family : families) {
        if (names.empty() ? type == family.model_type : names.front() == family.architecture) return family;
        supported += (supported.empty() ? "" : ", ") + std::string(family.architecture);
    }
    if (names.empty() && type.empty())
        refuse(config.label(), "\"architectures\" is missing; this is not a language model's configuration");
    refuse(config.label(), "the architecture " + shown(names.empty() ? type : names.front()) +
                               " is not supported; supported are " + supported);
}

int required_size(const JsonObject& config, const char* key, std::int64_t high) {
    const auto value = config.integer(key);
    if (!value) refuse(config.label(), shown(key) + " is missing");
    return checked_int(*value, 1, high, shown(key), config.label());
}

int optional_size(const JsonObject& config, const char* key, std::int64_t high, int fallback) {
    return config.has(key) ? required_size(config, key, high) : fallback;
}

}  // namespace recto
