#include "engine/load/mixture_config.h"

#include <algorithm>

#include "engine/load/folder_families.h"

namespace recto {

namespace {

void check_experts(const ExpertConfig& experts, const std::string& label) {
    if (experts.per_token > experts.count)
        refuse(label, "a token can go through at most all of the " + std::to_string(experts.count) +
                          " experts, found " + std::to_string(experts.per_token));
}

// The name of transformers 5, or the older one.
int expert_count(const JsonObject& config, int fallback) {
    const char* key = config.has("num_local_experts") ? "num_local_experts" : "num_experts";
    return optional_size(config, key, max_experts, fallback);
}

}  // namespace

void read_mixtral_experts(const JsonObject& config, ModelConfig& model) {
    ExpertConfig& experts = model.experts;
    experts.count = expert_count(config, 8);
    experts.per_token = optional_size(config, "num_experts_per_tok", max_experts, 2);
    experts.intermediate = model.intermediate;
    experts.layers.assign(std::size_t(model.layers), true);
    check_experts(experts, config.label());
}

void read_qwen3_experts(const JsonObject& config, ModelConfig& model) {
    ExpertConfig& experts = model.experts;
    experts.count = expert_count(config, 128);
    experts.per_token = optional_size(config, "num_experts_per_tok", max_experts, 8);
    experts.intermediate = optional_size(config, "moe_intermediate_size", max_width, 768);
    experts.renormalize = config.boolean("norm_topk_prob").value_or(false);
    const int step = optional_size(config, "decoder_sparse_step", max_layers, 1);
    const auto dense = config.integer_or_list("mlp_only_layers");
    for (int layer = 0; layer < model.layers; ++layer)
        experts.layers.push_back((layer + 1) % step == 0 &&
                                 std::find(dense.begin(), dense.end(), layer) == dense.end());
    check_experts(experts, config.label());
}

void read_gguf_experts(const GgufFiles& files, const GgufKeys& keys, ModelConfig& model) {
    ExpertConfig& experts = model.experts;
    experts.count = keys.optional("expert_count", 0, max_experts, 0);
    if (experts.count == 0) return;
    experts.per_token = keys.required("expert_used_count", 1, max_experts);
    experts.intermediate = keys.optional("expert_feed_forward_length", 1, max_width, model.intermediate);
    experts.renormalize = keys.boolean("expert_weights_norm").value_or(true);
    if (const int function = keys.optional("expert_gating_func", 0, 255, 1); function > 1)
        refuse(keys.label(),
               "routers that score experts by softmax are supported, found the function number " +
                   std::to_string(function) + " in " + keys.name("expert_gating_func"));
    if (const double scale = keys.number("expert_weights_scale", 1.0); scale != 0.0 && scale != 1.0)
        refuse(keys.label(), "experts' weights that are not scaled are supported, found " +
                                 keys.name("expert_weights_scale") + " " + std::to_string(scale));
    if (keys.optional("expert_shared_count", 0, max_experts, 0) > 0)
        refuse(keys.label(), "mixtures with shared experts are not supported; those without are");
    for (int layer = 0; layer < model.layers; ++layer)
        experts.layers.push_back(files.find("blk." + std::to_string(layer) + ".ffn_gate_inp.weight") !=
                                 nullptr);
    check_experts(experts, keys.label());
}

}  // namespace recto
