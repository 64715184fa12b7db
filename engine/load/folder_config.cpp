#include "engine/load/folder_config.h"

#include <algorithm>
#include <cmath>

#include "engine/load/config_checks.h"
#include "engine/load/json_reader.h"
#include "engine/load/refuse.h"
#include "engine/load/rope_scaling.h"

namespace recto {

namespace {

struct Architecture {
    const char* name;
    const char* model_type;
    const char* family;
    int default_max_position;               // what the class of transformers fills in when the key is missing
    int default_window;                     // 0: none
    std::int32_t default_bos, default_eos;  // -1: none
    bool qkv_bias;                          // always
};
constexpr Architecture architectures[] = {
    {"LlamaForCausalLM", "llama", "Llama", 2048, 0, 1, 2, false},
    {"MistralForCausalLM", "mistral", "Mistral", 131072, 4096, 1, 2, false},
    {"Qwen2ForCausalLM", "qwen2", "Qwen2", 32768, 4096, -1, -1, true},
};

const Architecture& architecture_of(const JsonObject& config) {
    const auto names = config.texts("architectures").value_or(std::vector<std::string>());
    const auto type = config.text("model_type").value_or("");
    std::string supported;
    for (const auto& architecture : architectures) {
        if (names.empty() ? type == architecture.model_type : names.front() == architecture.name)
            return architecture;
        supported += (supported.empty() ? "" : ", ") + std::string(architecture.name);
    }
    if (names.empty() && type.empty())
        refuse(config.label(), "\"architectures\" is missing; this is not a language model's configuration");
    refuse(config.label(), "the architecture " + shown(names.empty() ? type : names.front()) +
                               " is not supported; supported are " + supported);
}

int required(const JsonObject& config, const char* key, std::int64_t high) {
    const auto value = config.integer(key);
    if (!value) refuse(config.label(), shown(key) + " is missing");
    return checked_int(*value, 1, high, shown(key), config.label());
}

int optional(const JsonObject& config, const char* key, std::int64_t high, int fallback) {
    return config.has(key) ? required(config, key, high) : fallback;
}

void read_sizes(const JsonObject& config, const Architecture& architecture, ModelConfig& model) {
    model.hidden = required(config, "hidden_size", max_width);
    model.intermediate = required(config, "intermediate_size", max_width);
    model.layers = required(config, "num_hidden_layers", max_layers);
    model.heads = required(config, "num_attention_heads", max_heads);
    model.kv_heads = optional(config, "num_key_value_heads", max_heads, model.heads);
    model.head_dim = optional(config, "head_dim", max_head_dim, model.hidden / model.heads);
    model.vocab = required(config, "vocab_size", max_vocab);
    model.max_position =
        optional(config, "max_position_embeddings", max_context, architecture.default_max_position);
    model.norm_eps = float(config.number("rms_norm_eps").value_or(1e-6));
    const auto activation = config.text("hidden_act").value_or("silu");
    if (activation == "gelu_pytorch_tanh" || activation == "gelu_new") {
        model.activation = Activation::gelu_tanh;
    } else if (activation != "silu" && activation != "swish") {
        refuse(config.label(), "the activation " + shown(activation) +
                                   " is not supported; supported are silu and gelu_pytorch_tanh");
    }
    model.tied_embedding = config.boolean("tie_word_embeddings").value_or(false);
}

// Which of the layers have a sliding window. Llama has none; Qwen2's is void unless use_sliding_window, and
// then only layers from max_window_layers on have it; layer_types says it per layer in newer files.
void read_window(const JsonObject& config, const Architecture& architecture, ModelConfig& model) {
    if (model.family == "Llama" || config.holds_null("sliding_window")) return;
    const bool qwen = model.family == "Qwen2";
    if (qwen && !config.boolean("use_sliding_window").value_or(false)) return;
    const int window = optional(config, "sliding_window", max_context, architecture.default_window);
    std::vector<int> windows(std::size_t(model.layers), window);
    if (const auto types = config.texts("layer_types")) {
        if (types->size() != windows.size())
            refuse(config.label(), "\"layer_types\" should have " + std::to_string(windows.size()) +
                                       " entries, found " + std::to_string(types->size()));
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const std::string& type = (*types)[i];
            if (type != "sliding_attention" && type != "full_attention")
                refuse(config.label(),
                       "the layer type " + shown(type) +
                           " is not supported; supported are full_attention and sliding_attention");
            if (type == "full_attention") windows[i] = 0;
        }
    } else if (qwen) {
        const auto full = std::max<std::int64_t>(config.integer("max_window_layers").value_or(28), 0);
        std::fill_n(windows.begin(), std::min<std::int64_t>(full, model.layers), 0);
    }
    if (std::any_of(windows.begin(), windows.end(), [](int w) { return w > 0; })) model.window = windows;
}

void read_scaling(const JsonObject& scaling, RopeSettings& s) {
    // "type" is the older name of "rope_type"; where both stand, the newer one counts.
    s.type = scaling.text("rope_type").value_or(scaling.text("type").value_or("default"));
    if (s.type == "su") s.type = "longrope";
    s.factor = scaling.number("factor").value_or(1.0);
    s.original_max_position =
        scaling.number("original_max_position_embeddings").value_or(s.original_max_position);
    s.low_freq_factor = scaling.number("low_freq_factor").value_or(s.low_freq_factor);
    s.high_freq_factor = scaling.number("high_freq_factor").value_or(s.high_freq_factor);
    s.beta_fast = scaling.number("beta_fast").value_or(s.beta_fast);
    s.beta_slow = scaling.number("beta_slow").value_or(s.beta_slow);
    s.truncate = scaling.boolean("truncate").value_or(true);
    s.attention_factor = scaling.number("attention_factor");
    s.mscale = scaling.number("mscale");
    s.mscale_all_dim = scaling.number("mscale_all_dim");
    s.short_factor = scaling.numbers("short_factor").value_or(std::vector<double>());
    s.long_factor = scaling.numbers("long_factor").value_or(std::vector<double>());
}

void read_rope(const JsonObject& config, ModelConfig& model) {
    RopeSettings s;
    s.max_position = model.max_position;
    s.theta = config.number("rope_theta").value_or(10000.0);
    double partial = config.number("partial_rotary_factor").value_or(1.0);
    s.original_max_position = config.number("original_max_position_embeddings").value_or(0.0);
    auto scaling = config.object("rope_parameters");
    if (!scaling) scaling = config.object("rope_scaling");
    if (scaling) {
        s.theta = scaling->number("rope_theta").value_or(s.theta);
        partial = scaling->number("partial_rotary_factor").value_or(partial);
        read_scaling(*scaling, s);
    }
    if (!(partial > 0 && partial <= 1))
        refuse(config.label(), "\"partial_rotary_factor\" should be greater than 0 and at most 1, found " +
                                   std::to_string(partial));
    s.rotary_dims = int(model.head_dim * partial);
    model.rope = scale_rope(s, config.label());
    const double longest = scaled_max_position(s);
    model.max_position = int(std::clamp(longest, 1.0, double(max_context)));
}

void add_eos(const JsonObject& object, ModelConfig& model) {
    for (const auto id : object.integer_or_list("eos_token_id"))
        if (id >= 0 && id < model.vocab &&
            std::find(model.eos_ids.begin(), model.eos_ids.end(), id) == model.eos_ids.end())
            model.eos_ids.push_back(std::int32_t(id));
}

void read_special_ids(const JsonObject& config, const Architecture& architecture, ModelConfig& model) {
    add_eos(config, model);
    const bool eos_named = config.has("eos_token_id") || config.holds_null("eos_token_id");
    if (!eos_named && architecture.default_eos >= 0) model.eos_ids.push_back(architecture.default_eos);
    const auto bos = config.integer_or_list("bos_token_id");
    if (!bos.empty() && bos.front() >= 0 && bos.front() < model.vocab) {
        model.bos_id = std::int32_t(bos.front());
    } else if (bos.empty() && !config.holds_null("bos_token_id")) {
        model.bos_id = architecture.default_bos;
    }
}

}  // namespace

FolderConfig read_folder_config(std::string_view config_json, const std::string& label) {
    const auto json = parse_json(config_json, label);
    const JsonObject config(json, label);
    const Architecture& architecture = architecture_of(config);
    FolderConfig result;
    ModelConfig& model = result.model;
    model.architecture = architecture.name;
    model.family = architecture.family;
    read_sizes(config, architecture, model);
    check_sizes(model, label);
    read_window(config, architecture, model);
    read_rope(config, model);
    read_special_ids(config, architecture, model);
    check_rope(model, label);
    const bool llama = model.family == "Llama";
    result.o_bias = llama && config.boolean("attention_bias").value_or(false);
    result.qkv_bias = architecture.qkv_bias || result.o_bias;
    result.mlp_bias = llama && config.boolean("mlp_bias").value_or(false);
    return result;
}

GenerationDefaults read_generation_config(std::string_view text, const std::string& label,
                                          ModelConfig& model) {
    const auto json = parse_json(text, label);
    const JsonObject config(json, label);
    add_eos(config, model);
    GenerationDefaults defaults;
    defaults.temperature = config.number("temperature").value_or(-1);
    defaults.top_p = config.number("top_p").value_or(-1);
    defaults.min_p = config.number("min_p").value_or(-1);
    defaults.repetition_penalty = config.number("repetition_penalty").value_or(-1);
    if (const auto top_k = config.integer("top_k"))
        defaults.top_k = checked_int(*top_k, -1, 1 << 30, "\"top_k\"", label);
    const bool any = defaults.temperature >= 0 || defaults.top_p >= 0 || defaults.min_p >= 0 ||
                     defaults.repetition_penalty >= 0 || defaults.top_k >= 0;
    if (any) defaults.source = "generation_config.json";
    return defaults;
}

}  // namespace recto
