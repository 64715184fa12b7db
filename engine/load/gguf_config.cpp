#include "engine/load/gguf_config.h"

#include <cmath>
#include <set>

#include "engine/load/config_checks.h"
#include "engine/load/refuse.h"
#include "engine/load/rope_scaling.h"

namespace recto {

namespace {

struct Architecture {
    const char* name;
    const char* family;
    bool paired_qk_rows;  // q and k rows are stored for the neighbouring-pair form of RoPE
};
constexpr Architecture architectures[] = {
    {"llama", "Llama", true},  // also Mistral, Vicuna, SmolLM2
    {"qwen2", "Qwen2", false},
};

const Architecture& architecture_of(const Gguf& meta) {
    const auto name = meta.text("general.architecture");
    if (!name) refuse(meta.label(), "the key general.architecture is missing; this is not a model");
    std::string supported;
    for (const auto& architecture : architectures) {
        if (*name == architecture.name) return architecture;
        supported += (supported.empty() ? "" : ", ") + std::string(architecture.name);
    }
    refuse(meta.label(), "the architecture " + shown(*name) +
                             " is not supported; supported in GGUF files are " + supported);
}

class Keys {  // "ARCHITECTURE.key"
  public:
    Keys(const Gguf& meta, std::string architecture) : meta_(meta), architecture_(std::move(architecture)) {}

    std::string name(const char* key) const { return architecture_ + "." + key; }
    int required(const char* key, std::int64_t low, std::int64_t high) const {
        const auto value = meta_.integer(name(key));
        if (!value) refuse(meta_.label(), "the key " + name(key) + " is missing");
        return checked_int(*value, low, high, name(key), meta_.label());
    }
    int optional(const char* key, std::int64_t low, std::int64_t high, int fallback) const {
        return meta_.has(name(key)) ? required(key, low, high) : fallback;
    }
    double number(const char* key, double fallback) const {
        return meta_.number(name(key)).value_or(fallback);
    }
    std::optional<double> number(const char* key) const { return meta_.number(name(key)); }
    std::optional<std::string_view> text(const char* key) const { return meta_.text(name(key)); }

  private:
    const Gguf& meta_;
    std::string architecture_;
};

// rope_freqs.weight, [d / 2]: what llama3 scaling divides each frequency by. It replaces other scaling.
bool divide_by_rope_freqs(const GgufFiles& files, RopeConfig& rope) {
    const GgufTensor* tensor = files.find("rope_freqs.weight");
    if (tensor == nullptr) return false;
    const std::string& label = files.metadata().label();
    if (tensor->type->type != GgufType::f32 || tensor->dimensions != 1 ||
        tensor->dims[0] != std::int64_t(rope.inverse_frequency.size()))
        refuse(label, "rope_freqs.weight should hold " + std::to_string(rope.inverse_frequency.size()) +
                          " F32 numbers, found " + std::to_string(tensor->dims[0]) + " of type " +
                          tensor->type->name);
    std::vector<float> divisor(rope.inverse_frequency.size());
    widen_to_f32(DType::f32, tensor->data.data(), tensor->dims[0], divisor.data());
    for (std::size_t i = 0; i < divisor.size(); ++i) {
        if (!(divisor[i] > 0) || !std::isfinite(divisor[i]))
            refuse(label, "rope_freqs.weight should hold numbers greater than 0, found " +
                              std::to_string(divisor[i]));
        rope.inverse_frequency[i] /= divisor[i];
    }
    rope.type = "llama3";
    return true;
}

RopeSettings rope_settings(const Keys& keys, const ModelConfig& config) {
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

void read_rope(const GgufFiles& files, const Keys& keys, ModelConfig& config) {
    const std::string& label = files.metadata().label();
    RopeSettings settings = rope_settings(keys, config);
    if (settings.type == "longrope")
        refuse(label,
               "rope scaling of type \"longrope\" is not supported in GGUF files; supported are none, linear "
               "and yarn");
    RopeSettings plain = settings;
    plain.type = "default";
    config.rope = scale_rope(plain, label);
    if (divide_by_rope_freqs(files, config.rope)) return;
    config.rope = scale_rope(settings, label);
    // GGUF's factor comes on top of yarn's own magnitude.
    config.rope.attention_factor *= float(keys.number("rope.scaling.attn_factor", 1.0));
}

void read_sizes(const Keys& keys, const std::string& label, ModelConfig& config) {
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
    if (keys.optional("expert_count", 0, 1 << 16, 0) > 0)
        refuse(label, "mixtures of experts are not supported; dense models are");
    const int window = keys.optional("attention.sliding_window", 0, max_context, 0);
    if (window > 0 && config.family == "Llama") config.window.assign(std::size_t(config.layers), window);
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
    const Architecture& architecture = architecture_of(meta);
    const Keys keys(meta, architecture.name);
    ModelConfig config;
    config.architecture = architecture.name;
    config.family = architecture.family;
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
    read_rope(files, keys, config);
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
    for (const auto& architecture : architectures)
        if (config.architecture == architecture.name && architecture.paired_qk_rows)
            return {config.head_dim, config.rope.rotary_dims};
    return {};
}

}  // namespace recto
