#include "engine/load/name_map.h"

#include <algorithm>
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
    {TensorRole::ffn_router, "mlp.gate", "ffn_gate_inp"},
    {TensorRole::expert_gate, "gate_proj", "ffn_gate_exps"},  // Hugging Face: inside "mlp.experts.E."
    {TensorRole::expert_up, "up_proj", "ffn_up_exps"},
    {TensorRole::expert_down, "down_proj", "ffn_down_exps"},
};

const Names& names_of(TensorRole role) {
    for (const auto& names : layer_names)
        if (names.role == role) return names;
    assert(!"every role of a layer has its names");
    return layer_names[0];
}

// Tensors that hold several roles' rows, one after the other.
struct Fused {
    std::vector<TensorRole> roles;
    const char* huggingface;
    const char* gguf;  // a fused gate|up has the name that "up" alone has elsewhere
};

const Fused* fused_of(TensorRole role, const ModelConfig& config) {
    static const Fused fused[] = {
        {{TensorRole::attn_q, TensorRole::attn_k, TensorRole::attn_v}, "self_attn.qkv_proj", "attn_qkv"},
        {{TensorRole::ffn_gate, TensorRole::ffn_up}, "mlp.gate_up_proj", "ffn_up"},
    };
    if (config.fused_tensors)
        for (const auto& one : fused)
            if (std::find(one.roles.begin(), one.roles.end(), role) != one.roles.end()) return &one;
    return nullptr;
}

TensorPlace whole_tensor(std::string name, TensorRole role, const ModelConfig& config) {
    TensorPlace place{std::move(name), expected_shape(role, config), 0, 0};
    place.rows = place.shape.front();
    return place;
}

TensorPlace fused_place(std::string name, const Fused& fused, TensorRole role, const ModelConfig& config) {
    TensorPlace place = whole_tensor(std::move(name), role, config);
    place.shape.front() = 0;
    for (const TensorRole part : fused.roles) {
        if (part == role) place.first_row = place.shape.front();
        place.shape.front() += expected_shape(part, config).front();
    }
    return place;
}

// All experts of a layer as one tensor; with `halves`, gate above up in each.
TensorPlace stacked_place(std::string name, TensorRole role, const ModelConfig& config, int expert,
                          bool halves) {
    TensorPlace place = whole_tensor(std::move(name), role, config);
    const int parts = halves && role != TensorRole::expert_down ? 2 : 1;
    const int part = parts == 2 && role == TensorRole::expert_up ? 1 : 0;
    place.first_row = (std::int64_t(expert) * parts + part) * place.rows;
    place.shape.front() *= parts;
    place.shape.insert(place.shape.begin(), config.experts.count);
    return place;
}

// `layer` is "model.layers.N.".
TensorPlace huggingface_mixture(const std::string& layer, TensorRole role, const ModelConfig& config,
                                int expert) {
    const bool stacked = config.experts.stacked, mixtral = config.family == "Mixtral" && !stacked;
    const std::string block = layer + (mixtral ? "block_sparse_moe." : "mlp.");
    if (role == TensorRole::ffn_router) return whole_tensor(block + "gate", role, config);
    if (stacked) {
        const bool down = role == TensorRole::expert_down;
        return stacked_place(block + (down ? "experts.down_proj" : "experts.gate_up_proj"), role, config,
                             expert, true);
    }
    const char* name = names_of(role).huggingface;
    if (mixtral) name = role == TensorRole::expert_gate ? "w1" : role == TensorRole::expert_up ? "w3" : "w2";
    return whole_tensor(block + "experts." + std::to_string(expert) + "." + name, role, config);
}

bool is_absent(TensorRole role, int layer, const ModelConfig& c) {
    switch (role) {
        case TensorRole::ffn_gate:
        case TensorRole::ffn_up:
        case TensorRole::ffn_down:
            return c.is_mixture(layer);
        case TensorRole::ffn_router:
        case TensorRole::expert_gate:
        case TensorRole::expert_up:
        case TensorRole::expert_down:
            return !c.is_mixture(layer);
        case TensorRole::attn_norm:
        case TensorRole::ffn_norm:
            return !c.pre_norms;
        case TensorRole::attn_post_norm:
        case TensorRole::ffn_post_norm:
            return !c.post_norms;
        case TensorRole::attn_q_norm:
        case TensorRole::attn_k_norm:
            return c.qk_norm == QkNorm::none;
        default:
            return false;
    }
}

}  // namespace

TensorPlace huggingface_place(TensorRole role, int layer, const ModelConfig& config, int expert) {
    if (role == TensorRole::embedding) return whole_tensor("model.embed_tokens", role, config);
    if (role == TensorRole::output_norm) return whole_tensor("model.norm", role, config);
    if (role == TensorRole::lm_head) return whole_tensor("lm_head", role, config);
    if (is_absent(role, layer, config)) return {};
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    if (const Fused* fused = fused_of(role, config))
        return fused_place(prefix + fused->huggingface, *fused, role, config);
    if (role == TensorRole::ffn_router || is_expert(role))
        return huggingface_mixture(prefix, role, config, expert);
    // With norms after the branches, "post_attention_layernorm" is one of those.
    const char* name = role == TensorRole::ffn_norm && config.post_norms ? "pre_feedforward_layernorm"
                                                                         : names_of(role).huggingface;
    return whole_tensor(prefix + name, role, config);
}

TensorPlace gguf_place(TensorRole role, int layer, const ModelConfig& config, int expert) {
    if (role == TensorRole::embedding) return whole_tensor("token_embd", role, config);
    if (role == TensorRole::output_norm) return whole_tensor("output_norm", role, config);
    if (role == TensorRole::lm_head) return whole_tensor("output", role, config);
    if (is_absent(role, layer, config)) return {};
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    if (const Fused* fused = fused_of(role, config))
        return fused_place(prefix + fused->gguf, *fused, role, config);
    if (is_expert(role)) return stacked_place(prefix + names_of(role).gguf, role, config, expert, false);
    return whole_tensor(prefix + names_of(role).gguf, role, config);
}

TensorPlace gguf_lone_expert(TensorRole role, int layer, const ModelConfig& config, int expert) {
    const std::string stacked = names_of(role).gguf;
    const std::string matrix = stacked.substr(0, stacked.rfind("_exps"));
    return whole_tensor("blk." + std::to_string(layer) + "." + matrix + "." + std::to_string(expert), role,
                        config);
}

bool is_expert(TensorRole role) {
    return role == TensorRole::expert_gate || role == TensorRole::expert_up ||
           role == TensorRole::expert_down;
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
        case TensorRole::ffn_router:
            return {c.experts.count, c.hidden};
        case TensorRole::expert_gate:
        case TensorRole::expert_up:
            return {c.experts.intermediate, c.hidden};
        case TensorRole::expert_down:
            return {c.hidden, c.experts.intermediate};
        case TensorRole::attn_q_norm:
            return {c.qk_norm == QkNorm::all_heads ? q : c.head_dim};
        case TensorRole::attn_k_norm:
            return {c.qk_norm == QkNorm::all_heads ? kv : c.head_dim};
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
                              const std::function<void(TensorRole role, int layer, int expert)>& visit) {
    visit(TensorRole::embedding, 0, 0);
    visit(TensorRole::output_norm, 0, 0);
    if (!config.tied_embedding) visit(TensorRole::lm_head, 0, 0);
    for (int layer = 0; layer < config.layers; ++layer)
        for (const auto& names : layer_names) {
            if (is_absent(names.role, layer, config)) continue;
            const int copies = is_expert(names.role) ? config.experts.count : 1;
            for (int expert = 0; expert < copies; ++expert)
                visit(names.role, layer, expert);
        }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (const auto dim : shape)
        text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
    return text + "]";
}

}  // namespace recto
