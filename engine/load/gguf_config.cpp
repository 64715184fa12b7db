#include "engine/load/gguf_config.h"

#include <cmath>
#include <set>

#include "engine/load/config_checks.h"
#include "engine/load/gguf_families.h"
#include "engine/load/refuse.h"
#include "engine/load/rope_scaling.h"

namespace recto {

namespace {

// A tensor of what each of `count` frequencies is divided by; empty if the file has none.
std::vector<double> divisors(const GgufFiles& files, const char* name, std::size_t count) {
    const GgufTensor* tensor = files.find(name);
    if (tensor == nullptr) return {};
    const std::string& label = files.metadata().label();
    if (tensor->type->type != GgufType::f32 || tensor->dimensions != 1 ||
        tensor->dims[0] != std::int64_t(count))
        refuse(label, std::string(name) + " should hold " + std::to_string(count) + " F32 numbers, found " +
                          std::to_string(tensor->dims[0]) + " of type " + tensor->type->name);
    std::vector<float> values(count);
    widen_to_f32(DType::f32, tensor->data.data(), tensor->dims[0], values.data());
    for (const float value : values)
        if (!(value > 0) || !std::isfinite(value))
            refuse(label,
                   std::string(name) + " should hold numbers greater than 0, found " + std::to_string(value));
    return {values.begin(), values.end()};
}

RopeSettings rope_settings(const GgufKeys& keys, const ModelConfig& config) {
    RopeSettings s;
    s.theta = keys.number("rope.freq_base", 10000.0);
    s.rotary_dims = keys.optional("rope.dimension_count", 2, max_head_dim, config.head_dim);
    s.max_position = config.max_position;
    s.original_max_position = keys.number("rope.scaling.original_context_length", 0.0);
    const auto type = keys.text("rope.scaling.type");
    const double linear = keys.number("rope.scale_linear", 1.0);  // before rope.scaling.* existed
    s.factor = keys.number("rope.scaling.factor", linear);
    if (s.factor == 0) s.factor = 1.0;  // "none" in files
    s.beta_fast = keys.number("rope.scaling.yarn_beta_fast", 32.0);
    s.beta_slow = keys.number("rope.scaling.yarn_beta_slow", 1.0);
    if (type && *type != "none") {
        s.type = std::string(*type);
    } else if (!type && s.factor != 1.0) {
        s.type = "linear";
    }
    return s;
}

void read_rope(const GgufFiles& files, const GgufKeys& keys, const GgufFamily& family, ModelConfig& config) {
    const std::string& label = files.metadata().label();
    RopeSettings settings = rope_settings(keys, config);
    RopeSettings plain = settings;
    plain.type = "default";
    if (family.local_theta > 0) {
        RopeSettings local = plain;
        local.theta = keys.number("rope.freq_base_swa", family.local_theta);
        config.rope_local = scale_rope(local, label);
    }
    const std::size_t pairs = std::size_t(settings.rotary_dims) / 2;
    if (const auto llama3 = divisors(files, "rope_freqs.weight", pairs); !llama3.empty()) {
        config.rope = scale_rope(plain, label);  // it replaces other scaling
        config.rope.type = "llama3";
        for (std::size_t i = 0; i < pairs; ++i)
            config.rope.inverse_frequency[i] /= float(llama3[i]);
        return;
    }
    const double attention = keys.number("rope.scaling.attn_factor", 1.0);
    settings.long_factor = divisors(files, "rope_factors_long.weight", pairs);
    settings.short_factor = divisors(files, "rope_factors_short.weight", pairs);
    if (!settings.long_factor.empty()) {
        settings.type = "longrope";  // files of this kind name no type
        settings.attention_factor = attention;
        config.rope = scale_rope(settings, label);
        return;
    }
    config.rope = scale_rope(settings, label);
    // It comes on top of yarn's own magnitude.
    config.rope.attention_factor *= float(attention);
}

void read_sizes(const GgufKeys& keys, const std::string& label, ModelConfig& config) {
    config.layers = keys.required("block_count", 1, max_layers);
    config.hidden = keys.required("embedding_length", 1, max_width);
    config.intermediate = keys.required("feed_forward_length", 1, max_width);
    config.max_position = keys.required("context_length", 1, max_context);
    config.heads = keys.required("attention.head_count", 1, max_heads);
    config.kv_heads = keys.optional("attention.head_count_kv", 1, max_heads, config.heads);
    config.head_dim = keys.optional("attention.key_length", 1, max_head_dim, config.hidden / config.heads);
    const int value_dim = keys.optional("attention.value_length", 1, max_head_dim, config.head_dim);
    if (value_dim != config.head_dim)
        refuse(label, "keys and values of equal size were expected, found " +
                          std::to_string(config.head_dim) + " and " + std::to_string(value_dim));
    const auto eps = keys.number("attention.layer_norm_rms_epsilon");
    if (!eps) refuse(label, "the key " + keys.name("attention.layer_norm_rms_epsilon") + " is missing");
    config.norm_eps = float(*eps);
}

// Ids that lie outside the vocabulary count as absent, as they do in llama.cpp: real files carry −1 and
// paddings.
void read_special_ids(const Gguf& meta, ModelConfig& config) {
    const auto id = [&](const char* key) {
        const auto value = meta.integer(key).value_or(-1);
        return value >= 0 && value < config.vocab ? std::int32_t(value) : -1;
    };
    config.bos_id = id("tokenizer.ggml.bos_token_id");
    std::set<std::int32_t> eos;
    for (const char* key :
         {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
        if (id(key) >= 0) eos.insert(id(key));
    config.eos_ids.assign(eos.begin(), eos.end());
}

}  // namespace

ModelConfig read_gguf_config(const GgufFiles& files) {
    const Gguf& meta = files.metadata();
    const GgufFamily& family = gguf_family_of(meta);
    const GgufKeys keys(meta, family.architecture);
    ModelConfig config;
    config.architecture = family.architecture;
    config.family = family.name;
    config.name = std::string(meta.text("general.name").value_or(""));
    read_sizes(keys, meta.label(), config);
    check_sizes(config, meta.label());
    const GgufTensor* embedding = files.find("token_embd.weight");
    if (embedding == nullptr)
        refuse(meta.label(), files.tensors().empty()
                                 ? "this file holds a vocabulary only; a model with weights was expected"
                                 : "the tensor token_embd.weight is missing");
    config.vocab = checked_int(embedding->dims[1], 1, max_vocab, "the number of rows of token_embd.weight",
                               meta.label());
    config.tied_embedding = files.find("output.weight") == nullptr;
    if (family.read_own) family.read_own(files, keys, config);
    if (config.experts.count == 0 && keys.optional("expert_count", 0, max_experts, 0) > 0)
        refuse(meta.label(), "mixtures of experts of the architecture " + shown(family.architecture) +
                                 " are not supported; those of llama (Mixtral) and qwen3moe are");
    read_rope(files, keys, family, config);
    read_special_ids(meta, config);
    check_rope(config, meta.label());
    return config;
}

GenerationDefaults read_gguf_generation_defaults(const Gguf& meta) {
    GenerationDefaults defaults;
    const auto number = [&](const char* key, double& value) {
        if (const auto found = meta.number(key)) {
            value = *found;
            defaults.source = "GGUF";
        }
    };
    number("general.sampling.temp", defaults.temperature);
    number("general.sampling.top_p", defaults.top_p);
    number("general.sampling.min_p", defaults.min_p);
    number("general.sampling.penalty_repeat", defaults.repetition_penalty);
    if (const auto top_k = meta.integer("general.sampling.top_k")) {
        defaults.top_k = checked_int(*top_k, -1, 1 << 30, "general.sampling.top_k", meta.label());
        defaults.source = "GGUF";
    }
    return defaults;
}

RowOrder gguf_qk_order(const ModelConfig& config) {
    const GgufFamily* family = find_gguf_family(config.architecture);
    if (family == nullptr || !family->paired_qk_rows) return {};
    return {config.head_dim, config.rope.rotary_dims};
}

}  // namespace recto
