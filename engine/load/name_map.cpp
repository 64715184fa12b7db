#include "engine/load/name_map.h"

#include <cassert>

namespace recto {

namespace {

struct Names {
    TensorRole role;
    const char* huggingface;  // inside "model.layers.N."
    const char* gguf;         // inside "blk.N."
};

constexpr Names layer_names[] = {
    {TensorRole::attn_norm, "input_layernorm", "attn_norm"},
    {TensorRole::attn_q, "self_attn.q_proj", "attn_q"},
    {TensorRole::attn_k, "self_attn.k_proj", "attn_k"},
    {TensorRole::attn_v, "self_attn.v_proj", "attn_v"},
    {TensorRole::attn_o, "self_attn.o_proj", "attn_output"},
    {TensorRole::attn_q_norm, "self_attn.q_norm", "attn_q_norm"},
    {TensorRole::attn_k_norm, "self_attn.k_norm", "attn_k_norm"},
    {TensorRole::attn_post_norm, "post_attention_layernorm", "post_attention_norm"},
    {TensorRole::ffn_norm, "post_attention_layernorm", "ffn_norm"},
    {TensorRole::ffn_gate, "mlp.gate_proj", "ffn_gate"},
    {TensorRole::ffn_up, "mlp.up_proj", "ffn_up"},
    {TensorRole::ffn_down, "mlp.down_proj", "ffn_down"},
    {TensorRole::ffn_post_norm, "post_feedforward_layernorm", "post_ffw_norm"},
};

const Names& names_of(TensorRole role) {
    for (const auto& names : layer_names)
        if (names.role == role) return names;
    assert(!"every role of a layer has its names");
    return layer_names[0];
}

bool is_post_norm(TensorRole role) {
    return role == TensorRole::attn_post_norm || role == TensorRole::ffn_post_norm;
}

}  // namespace

std::string huggingface_name(TensorRole role, int layer, const ModelConfig& config) {
    if (role == TensorRole::embedding) return "model.embed_tokens";
    if (role == TensorRole::output_norm) return "model.norm";
    if (role == TensorRole::lm_head) return "lm_head";
    if (is_post_norm(role) && !config.post_norms) return {};
    // With norms after the branches, "post_attention_layernorm" is one of those.
    const char* name = role == TensorRole::ffn_norm && config.post_norms ? "pre_feedforward_layernorm"
                                                                         : names_of(role).huggingface;
    return "model.layers." + std::to_string(layer) + "." + name;
}

std::string gguf_name(TensorRole role, int layer, const ModelConfig& config) {
    if (role == TensorRole::embedding) return "token_embd";
    if (role == TensorRole::output_norm) return "output_norm";
    if (role == TensorRole::lm_head) return "output";
    if (is_post_norm(role) && !config.post_norms) return {};
    return "blk." + std::to_string(layer) + "." + names_of(role).gguf;
}

bool is_norm(TensorRole role) {
    switch (role) {
        case TensorRole::output_norm:
        case TensorRole::attn_norm:
        case TensorRole::attn_q_norm:
        case TensorRole::attn_k_norm:
        case TensorRole::attn_post_norm:
        case TensorRole::ffn_norm:
        case TensorRole::ffn_post_norm:
            return true;
        default:
            return false;
    }
}

std::vector<std::int64_t> expected_shape(TensorRole role, const ModelConfig& c) {
    const std::int64_t q = std::int64_t(c.heads) * c.head_dim, kv = std::int64_t(c.kv_heads) * c.head_dim;
    switch (role) {
        case TensorRole::embedding:
        case TensorRole::lm_head:
            return {c.vocab, c.hidden};
        case TensorRole::attn_q:
            return {q, c.hidden};
        case TensorRole::attn_k:
        case TensorRole::attn_v:
            return {kv, c.hidden};
        case TensorRole::attn_o:
            return {c.hidden, q};
        case TensorRole::ffn_gate:
        case TensorRole::ffn_up:
            return {c.intermediate, c.hidden};
        case TensorRole::ffn_down:
            return {c.hidden, c.intermediate};
        case TensorRole::attn_q_norm:
        case TensorRole::attn_k_norm:
            return {c.head_dim};
        case TensorRole::output_norm:
        case TensorRole::attn_norm:
        case TensorRole::attn_post_norm:
        case TensorRole::ffn_norm:
        case TensorRole::ffn_post_norm:
            return {c.hidden};
    }
    return {};
}

void for_each_required_tensor(const ModelConfig& config,
                              const std::function<void(TensorRole role, int layer)>& visit) {
    visit(TensorRole::embedding, 0);
    visit(TensorRole::output_norm, 0);
    if (!config.tied_embedding) visit(TensorRole::lm_head, 0);
    for (int layer = 0; layer < config.layers; ++layer)
        for (const auto& names : layer_names) {
            const bool qk_norm =
                names.role == TensorRole::attn_q_norm || names.role == TensorRole::attn_k_norm;
            if ((qk_norm && !config.qk_norm) || (is_post_norm(names.role) && !config.post_norms)) continue;
            visit(names.role, layer);
        }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (const auto dim : shape)
        text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
    return text + "]";
}

}  // namespace recto
