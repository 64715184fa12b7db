#include "engine/save/config_writer.h"

#include <cassert>
#include <cmath>

#include "engine/load/json_reader.h"
#include "engine/load/refuse.h"
#include "engine/save/config_families.h"
#include "engine/save/rope_settings.h"

namespace recto {

namespace {

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
    const bool lengthens = config.rope_local.rotary_dims == 0;
    const RopeSettings s = rope_settings_of(config.rope, config.max_position, lengthens);
    json["max_position_embeddings"] = std::int64_t(s.max_position);
    json["rope_theta"] = s.theta;
    if (s.rotary_dims != config.head_dim) {
        double partial = double(s.rotary_dims) / double(config.head_dim);
        if (int(config.head_dim * partial) < s.rotary_dims) partial = std::nextafter(partial, 1.0);
        json["partial_rotary_factor"] = partial;
    }
    json["rope_scaling"] = scaling_json(s);
    if (s.type == "longrope")  // Phi-3's place for it
        json["original_max_position_embeddings"] = std::int64_t(s.original_max_position);
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
    const SavedFamily* family = find_saved_family(c);
    if (family == nullptr)
        refuse(label, "the configuration of the family " + shown(c.family) + " cannot be written; those of " +
                          saved_family_names() + " can");
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
    if (family->put_own) family->put_own(c, json);
    json["bos_token_id"] = c.bos_id >= 0 ? ConfigJson(c.bos_id) : ConfigJson(nullptr);
    json["eos_token_id"] = ids_json(c.eos_ids);
    json["pad_token_id"] = nullptr;  // some classes' default lies outside small vocabularies
    json["attention_dropout"] = 0.0;
    json["initializer_range"] = 0.02;
    json["use_cache"] = true;
    return json;
}

ConfigJson changed_config_json(const ConfigJson& original, const ModelConfig& config, SaveType dtype,
                               const std::string& label) {
    if (!original.is_object()) refuse(label, "an object was expected, found something else");
    // Of a model that is more than a decoder the decoder alone is written, as the class for it.
    const bool nested = original.contains("text_config") && original["text_config"].is_object();
    ConfigJson json = nested ? original["text_config"] : original;
    if (nested) {
        const SavedFamily* family = find_saved_family(config);
        if (family == nullptr)
            refuse(label, "the configuration of the family " + shown(config.family) + " cannot be written");
        json["architectures"] = {family->architecture};
        json["model_type"] = family->model_type;
        if (!json.contains("eos_token_id")) json["eos_token_id"] = ids_json(config.eos_ids);
    }
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

bool huggingface_fuses(const ModelConfig& config) {
    return config.family == "Phi-3";
}

bool biases_go_together(const ModelConfig& config) {
    const SavedFamily* family = find_saved_family(config);
    return family != nullptr && family->optional_bias;
}

}  // namespace recto
