#include "engine/load/folder_config.h"

#include <algorithm>
#include <cmath>

#include "engine/load/config_checks.h"
#include "engine/load/folder_families.h"
#include "engine/load/json_reader.h"
#include "engine/load/refuse.h"
#include "engine/load/rope_scaling.h"

namespace recto {

namespace {

// 0 in the defaults: the key must be there.
int size_of(const JsonObject& config, const char* key, std::int64_t high, int fallback) {
    return fallback == 0 ? required_size(config, key, high) : optional_size(config, key, high, fallback);
}

Activation activation_of(const JsonObject& config, Activation fallback) {
    // Gemma's classes have a key of their own and ignore the other.
    const auto name = config.text(fallback == Activation::gelu_tanh ? "hidden_activation" : "hidden_act");
    if (!name) return fallback;
    if (*name == "silu" || *name == "swish") return Activation::silu;
    if (*name == "gelu_pytorch_tanh" || *name == "gelu_new") return Activation::gelu_tanh;
    refuse(config.label(),
           "the activation " + shown(*name) + " is not supported; supported are silu and gelu_pytorch_tanh");
}

void read_sizes(const JsonObject& config, const FamilyDefaults& defaults, ModelConfig& model) {
    model.hidden = size_of(config, "hidden_size", max_width, defaults.hidden);
    model.intermediate = size_of(config, "intermediate_size", max_width, defaults.intermediate);
    model.layers = size_of(config, "num_hidden_layers", max_layers, defaults.layers);
    model.heads = size_of(config, "num_attention_heads", max_heads, defaults.heads);
    const bool all_heads = defaults.kv_heads == 0 || config.holds_null("num_key_value_heads");
    model.kv_heads =
        optional_size(config, "num_key_value_heads", max_heads, all_heads ? model.heads : defaults.kv_heads);
    const int head_dim = defaults.head_dim > 0 ? defaults.head_dim : model.hidden / model.heads;
    model.head_dim = optional_size(config, "head_dim", max_head_dim, head_dim);
    model.vocab = size_of(config, "vocab_size", max_vocab, defaults.vocab);
    model.max_position = optional_size(config, "max_position_embeddings", max_context, defaults.max_position);
    model.norm_eps = float(config.number("rms_norm_eps").value_or(defaults.norm_eps));
    model.activation = activation_of(config, defaults.activation);
    model.tied_embedding = config.boolean("tie_word_embeddings").value_or(defaults.tied);
}

void read_scaling(const JsonObject& scaling, RopeSettings& s) {
    // "type" is the older name of "rope_type"; where both stand, the newer one counts.
    s.type = scaling.text("rope_type").value_or(scaling.text("type").value_or("default"));
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
    // Phi-3's first files had other names for it.
    if (s.type == "su" || (s.type == "yarn" && !s.long_factor.empty())) s.type = "longrope";
}

// `own` holds the settings of this set of frequencies, if the file has any.
RopeSettings rope_settings(const JsonObject& config, const std::optional<JsonObject>& own, double theta,
                           const FamilyDefaults& defaults, const ModelConfig& model) {
    RopeSettings s;
    s.theta = theta;
    s.max_position = model.max_position;
    double partial = config.number("partial_rotary_factor").value_or(1.0);
    if (own) {
        s.theta = own->number("rope_theta").value_or(s.theta);
        partial = own->number("partial_rotary_factor").value_or(partial);
        read_scaling(*own, s);
    }
    // Beside the other sizes it counts more than among the rope settings, as in the original.
    if (const auto original = config.number("original_max_position_embeddings"))
        s.original_max_position = *original;
    if (s.original_max_position == 0) s.original_max_position = defaults.original_position;
    if (!(partial > 0 && partial <= 1))
        refuse(config.label(), "\"partial_rotary_factor\" should be greater than 0 and at most 1, found " +
                                   std::to_string(partial));
    s.rotary_dims = int(model.head_dim * partial);
    return s;
}

// One set of frequencies, or one for the layers without a window and one for those with ("rope_parameters" by
// layer type, or rope_local_base_freq in older files).
void read_rope(const JsonObject& config, const FamilyDefaults& defaults, ModelConfig& model) {
    const double theta = config.number("rope_theta").value_or(defaults.theta);
    double local_theta = config.number("rope_local_base_freq").value_or(defaults.local_theta);
    auto own = config.object("rope_parameters");
    std::optional<JsonObject> local;
    if (!own) {
        own = config.object("rope_scaling");
    } else if (own->find("full_attention") != nullptr || own->find("sliding_attention") != nullptr) {
        local = own->object("sliding_attention");
        own = own->object("full_attention");
        if (local_theta == 0) local_theta = theta;
    }
    const RopeSettings s = rope_settings(config, own, theta, defaults, model);
    model.rope = scale_rope(s, config.label());
    if (local_theta > 0)
        model.rope_local =
            scale_rope(rope_settings(config, local, local_theta, defaults, model), config.label());
    // Where layers differ (Gemma 3) the file's length is already the scaled one.
    const double longest = local_theta > 0 ? s.max_position : scaled_max_position(s);
    model.max_position = int(std::clamp(longest, 1.0, double(max_context)));
}

void add_eos(const JsonObject& object, ModelConfig& model) {
    for (const auto id : object.integer_or_list("eos_token_id"))
        if (id >= 0 && id < model.vocab &&
            std::find(model.eos_ids.begin(), model.eos_ids.end(), id) == model.eos_ids.end())
            model.eos_ids.push_back(std::int32_t(id));
}

void read_special_ids(const JsonObject& config, const FamilyDefaults& defaults, ModelConfig& model) {
    add_eos(config, model);
    const bool eos_named = config.has("eos_token_id") || config.holds_null("eos_token_id");
    if (!eos_named && defaults.eos >= 0) model.eos_ids.push_back(defaults.eos);
    const auto bos = config.integer_or_list("bos_token_id");
    if (!bos.empty() && bos.front() >= 0 && bos.front() < model.vocab) {
        model.bos_id = std::int32_t(bos.front());
    } else if (bos.empty() && !config.holds_null("bos_token_id")) {
        model.bos_id = defaults.bos;
    }
}

// Absent or another: float32.
DType dtype_of(const JsonObject& config, const JsonObject& whole) {
    for (const JsonObject* object : {&config, &whole})
        for (const char* key : {"dtype", "torch_dtype"})
            if (const auto name = object->text(key))
                return *name == "bfloat16" ? DType::bf16 : *name == "float16" ? DType::f16 : DType::f32;
    return DType::f32;
}

// The decoder's settings: those of the file, or of its "text_config" where it describes more than a decoder.
JsonObject decoder_settings(const JsonObject& config, const FolderFamily& family) {
    if (!family.nested) return config;
    const auto text = config.object("text_config");
    if (!text) refuse(config.label(), "\"text_config\" is missing");
    return *text;
}

}  // namespace

FolderConfig read_folder_config(std::string_view config_json, const std::string& label) {
    const auto json = parse_json(config_json, label);
    const JsonObject whole(json, label);
    const FolderFamily& family = folder_family_of(whole);
    const FamilyDefaults& defaults = family.defaults;
    const JsonObject config = decoder_settings(whole, family);
    FolderConfig result;
    ModelConfig& model = result.model;
    model.architecture = family.architecture;
    model.family = family.name;
    read_sizes(config, defaults, model);
    check_sizes(model, label);
    result.states_tie = config.boolean("tie_word_embeddings").has_value();
    result.dtype = dtype_of(config, whole);
    if (family.read_own) family.read_own(config, result);
    read_rope(config, defaults, model);
    read_special_ids(config, defaults, model);
    if (family.nested) add_eos(whole, model);
    check_rope(model, label);
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
