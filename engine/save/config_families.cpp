#include "engine/save/config_families.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace recto {

namespace {

int largest_window(const ModelConfig& config) {
    return config.window.empty() ? 0 : *std::max_element(config.window.begin(), config.window.end());
}

void put_window(const ModelConfig& config, ConfigJson& json) {
    const int window = largest_window(config);
    json["sliding_window"] = window > 0 ? ConfigJson(window) : ConfigJson(nullptr);
}

void put_layer_types(const ModelConfig& config, ConfigJson& json) {
    auto types = ConfigJson::array();
    for (const int window : config.window)
        types.push_back(window > 0 ? "sliding_attention" : "full_attention");
    if (!types.empty()) json["layer_types"] = types;
}

void put_mistral(const ModelConfig& config, ConfigJson& json) {
    put_window(config, json);
}

void put_qwen(const ModelConfig& config, ConfigJson& json) {
    put_window(config, json);
    json["use_sliding_window"] = largest_window(config) > 0;
    json["max_window_layers"] = config.layers;
    put_layer_types(config, json);
}

void put_gemma(const ModelConfig& config, ConfigJson& json) {
    json["hidden_activation"] = json["hidden_act"];
    json.erase("hidden_act");
    const double scale = config.attention_scale > 0 ? double(config.attention_scale)
                                                    : 1.0 / std::sqrt(double(config.head_dim));
    const double scalar = std::round(1.0 / (scale * scale));
    const bool whole = float(1.0 / std::sqrt(scalar)) == float(scale);
    // transformers wants a whole number here, which it is in every published model.
    json["query_pre_attn_scalar"] =
        whole ? ConfigJson(std::int64_t(scalar)) : ConfigJson(1.0 / (scale * scale));
    const auto cap = [](float value) {
        return value > 0 ? ConfigJson(short_number(value)) : ConfigJson(nullptr);
    };
    json["attn_logit_softcapping"] = cap(config.attention_softcap);
    json["final_logit_softcapping"] = cap(config.logits_softcap);
    put_window(config, json);
    put_layer_types(config, json);
}

void put_gemma3(const ModelConfig& config, ConfigJson& json) {
    put_gemma(config, json);
    json["rope_local_base_freq"] = config.rope_local.theta;
}

void put_granite(const ModelConfig& config, ConfigJson& json) {
    json["embedding_multiplier"] = short_number(config.embedding_scale);
    json["attention_multiplier"] = config.attention_scale > 0 ? short_number(config.attention_scale)
                                                              : 1.0 / std::sqrt(double(config.head_dim));
    json["residual_multiplier"] = short_number(config.residual_scale);
    // The quotient's reciprocal is what is read: keep all digits.
    json["logits_scaling"] = 1.0 / double(config.logits_scale);
}

void put_smollm3(const ModelConfig& config, ConfigJson& json) {
    auto rotates = ConfigJson::array();
    for (int layer = 0; layer < config.layers; ++layer)
        rotates.push_back(config.unrotated.empty() || config.unrotated[std::size_t(layer)] == 0 ? 1 : 0);
    json["no_rope_layers"] = rotates;
    put_window(config, json);
    json["use_sliding_window"] = largest_window(config) > 0;
    put_layer_types(config, json);
}

void put_mixtral(const ModelConfig& config, ConfigJson& json) {
    put_window(config, json);
    json["num_local_experts"] = config.experts.count;
    json["num_experts_per_tok"] = config.experts.per_token;
    json["intermediate_size"] = config.experts.intermediate;
}

void put_qwen_moe(const ModelConfig& config, ConfigJson& json) {
    put_qwen(config, json);
    json["num_experts"] = config.experts.count;
    json["num_experts_per_tok"] = config.experts.per_token;
    json["moe_intermediate_size"] = config.experts.intermediate;
    json["norm_topk_prob"] = config.experts.renormalize;
    json["decoder_sparse_step"] = 1;
    auto dense = ConfigJson::array();
    for (int layer = 0; layer < config.layers; ++layer)
        if (!config.is_mixture(layer)) dense.push_back(layer);
    json["mlp_only_layers"] = dense;
}

constexpr SavedFamily families[] = {
    {"Llama", "LlamaForCausalLM", "llama", true, nullptr},
    {"Mistral", "MistralForCausalLM", "mistral", false, put_mistral},
    {"Mixtral", "MixtralForCausalLM", "mixtral", false, put_mixtral},
    {"Qwen2", "Qwen2ForCausalLM", "qwen2", false, put_qwen},
    {"Qwen3", "Qwen3ForCausalLM", "qwen3", true, put_qwen},
    {"Qwen3 MoE", "Qwen3MoeForCausalLM", "qwen3_moe", true, put_qwen_moe},
    {"Gemma 2", "Gemma2ForCausalLM", "gemma2", true, put_gemma},
    {"Gemma 3", "Gemma3ForCausalLM", "gemma3_text", true, put_gemma3},
    {"Phi-3", "Phi3ForCausalLM", "phi3", false, put_mistral},
    {"OLMo 2", "Olmo2ForCausalLM", "olmo2", true, nullptr},
    {"Granite", "GraniteForCausalLM", "granite", true, put_granite},
    {"SmolLM3", "SmolLM3ForCausalLM", "smollm3", true, put_smollm3},
};

}  // namespace

const SavedFamily* find_saved_family(const ModelConfig& config) {
    // Llama has no window in Hugging Face's classes; GGUF's "llama" covers Mistral too.
    const std::string name = config.family == "Llama" && !config.window.empty() ? "Mistral" : config.family;
    const auto found = std::find_if(std::begin(families), std::end(families),
                                    [&](const SavedFamily& f) { return name == f.name; });
    return found == std::end(families) ? nullptr : found;
}

std::string saved_family_names() {
    std::string names;
    for (const auto& family : families)
        names += (names.empty() ? "" : ", ") + std::string(family.name);
    return names;
}

double short_number(float value) {
    char text[64];
    *std::to_chars(text, text + sizeof text - 1, value).ptr = '\0';
    return std::strtod(text, nullptr);
}

}  // namespace recto
