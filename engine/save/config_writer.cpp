#include "engine/save/config_writer.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdlib>

#include "engine/load/json_reader.h"
#include "engine/load/refuse.h"
#include "engine/save/rope_settings.h"

namespace recto {

namespace {

struct Family {
    const char* family;
    const char* architecture;
    const char* model_type;
    bool optional_bias;  // "attention_bias": q, k, v and o
};
constexpr Family families[] = {
    {"Llama", "LlamaForCausalLM", "llama", true},
    {"Mistral", "MistralForCausalLM", "mistral", false},
    {"Qwen2", "Qwen2ForCausalLM", "qwen2", false},
};

// Llama has no window in Hugging Face's classes; GGUF's "llama" covers Mistral too.
std::string saved_family(const ModelConfig& config) {
    return config.family == "Llama" && !config.window.empty() ? "Mistral" : config.family;
}

const Family* find_family(const ModelConfig& config) {
    const std::string name = saved_family(config);
    const auto found = std::find_if(std::begin(families), std::end(families),
                                    [&](const Family& f) { return name == f.family; });
    return found == std::end(families) ? nullptr : found;
}

// The number with the fewest digits that reads back as this float.
double short_number(float value) {
    char text[64];
    *std::to_chars(text, text + sizeof text - 1, value).ptr = '\0';
    return std::strtod(text, nullptr);
}

ConfigJson scaling_json(const RopeSettings& s) {
    if (s.type == "default") return nullptr;
    ConfigJson json = {{"rope_type", s.type}};
    if (s.type != "longrope") json["factor"] = s.factor;
    if (s.original_max_position > 0)
        json["original_max_position_embeddings"] = std::int64_t(s.original_max_position);
    if (s.type == "llama3") {
        json["low_freq_factor"] = s.low_freq_factor;
        json["high_freq_factor"] = s.high_freq_factor;
    }
    if (s.attention_factor) json["attention_factor"] = short_number(float(*s.attention_factor));
    if (s.type == "longrope") {
        json["short_factor"] = s.short_factor;
        json["long_factor"] = s.long_factor;
    }
    return json;
}

void put_rope(const ModelConfig& config, ConfigJson& json) {
    const RopeSettings s = rope_settings_of(config.rope, config.max_position);
    json["max_position_embeddings"] = std::int64_t(s.max_position);
    json["rope_theta"] = s.theta;
    if (s.rotary_dims != config.head_dim)
        json["partial_rotary_factor"] = double(s.rotary_dims) / double(config.head_dim);
    json["rope_scaling"] = scaling_json(s);
    if (s.type == "longrope")  // Phi-3's place for it
        json["original_max_position_embeddings"] = std::int64_t(s.original_max_position);
}

void put_window(const ModelConfig& config, const std::string& family, ConfigJson& json) {
    if (family == "Llama") return;
    const auto largest =
        config.window.empty() ? 0 : *std::max_element(config.window.begin(), config.window.end());
    if (family == "Qwen2") json["use_sliding_window"] = largest > 0;
    json["sliding_window"] = largest > 0 ? ConfigJson(largest) : ConfigJson(nullptr);
    if (largest == 0 || std::count(config.window.begin(), config.window.end(), largest) == config.layers) {
        if (family == "Qwen2" && largest > 0) json["max_window_layers"] = 0;
        return;
    }
    auto types = ConfigJson::array();
    for (const int window : config.window)
        types.push_back(window > 0 ? "sliding_attention" : "full_attention");
    json["layer_types"] = types;
}

ConfigJson ids_json(const std::vector<std::int32_t>& ids) {
    if (ids.empty()) return nullptr;
    return ids.size() == 1 ? ConfigJson(ids.front()) : ConfigJson(ids);
}

}  // namespace

bool has_bias(TensorRole role, const SavedBiases& biases) {
    switch (role) {
        case TensorRole::attn_q:
        case TensorRole::attn_k:
        case TensorRole::attn_v:
            return biases.qkv;
        case TensorRole::attn_o:
            return biases.o;
        case TensorRole::ffn_gate:
        case TensorRole::ffn_up:
        case TensorRole::ffn_down:
            return biases.mlp;
        default:
            return false;
    }
}

const char* config_dtype_name(SaveType type) {
    switch (type) {
        case SaveType::f16:
            return "float16";
        case SaveType::bf16:
            return "bfloat16";
        default:
            assert(type == SaveType::f32);
            return "float32";
    }
}

ConfigJson config_json(const ModelConfig& c, const SavedBiases& biases, SaveType dtype,
                       const std::string& label) {
    const Family* family = find_family(c);
    if (family == nullptr) {
        std::string known;
        for (const auto& f : families)
            known += (known.empty() ? "" : ", ") + std::string(f.family);
        refuse(label, "the configuration of the family " + shown(c.family) + " cannot be written; those of " +
                          known + " can");
    }
    ConfigJson json;
    json["architectures"] = {family->architecture};
    json["model_type"] = family->model_type;
    json["torch_dtype"] = config_dtype_name(dtype);
    json["hidden_size"] = c.hidden;
    json["intermediate_size"] = c.intermediate;
    json["num_hidden_layers"] = c.layers;
    json["num_attention_heads"] = c.heads;
    json["num_key_value_heads"] = c.kv_heads;
    json["head_dim"] = c.head_dim;
    json["vocab_size"] = c.vocab;
    json["hidden_act"] = c.activation == Activation::silu ? "silu" : "gelu_pytorch_tanh";
    json["rms_norm_eps"] = short_number(c.norm_eps);
    json["tie_word_embeddings"] = c.tied_embedding;
    if (family->optional_bias) {
        json["attention_bias"] = biases.qkv || biases.o;
        json["mlp_bias"] = biases.mlp;
    }
    put_rope(c, json);
    put_window(c, family->family, json);
    json["bos_token_id"] = c.bos_id >= 0 ? ConfigJson(c.bos_id) : ConfigJson(nullptr);
    json["eos_token_id"] = ids_json(c.eos_ids);
    json["attention_dropout"] = 0.0;
    json["initializer_range"] = 0.02;
    json["use_cache"] = true;
    return json;
}

ConfigJson changed_config_json(const ConfigJson& original, const ModelConfig& config, SaveType dtype,
                               const std::string& label) {
    ConfigJson json = original;
    if (!json.is_object()) refuse(label, "an object was expected, found something else");
    for (const char* key : {"quantization_config", "dtype", "torch_dtype"})
        json.erase(key);
    json["torch_dtype"] = config_dtype_name(dtype);
    json["tie_word_embeddings"] = config.tied_embedding;
    return json;
}

ConfigJson generation_config_json(const ModelConfig& config, const GenerationDefaults& defaults) {
    ConfigJson json;
    if (config.bos_id >= 0) json["bos_token_id"] = config.bos_id;
    if (!config.eos_ids.empty()) json["eos_token_id"] = ids_json(config.eos_ids);
    if (defaults.temperature > 0) json["do_sample"] = true;
    const auto put = [&](const char* key, double value) {
        if (value >= 0) json[key] = short_number(float(value));
    };
    put("temperature", defaults.temperature);
    put("top_p", defaults.top_p);
    put("min_p", defaults.min_p);
    put("repetition_penalty", defaults.repetition_penalty);
    if (defaults.top_k >= 0) json["top_k"] = defaults.top_k;
    return json.is_null() ? ConfigJson::object() : json;
}

bool huggingface_norms_less_one(const ModelConfig& config) {
    return config.family.starts_with("Gemma");
}

bool biases_go_together(const ModelConfig& config) {
    const Family* family = find_family(config);
    return family != nullptr && family->optional_bias;
}

}  // namespace recto
