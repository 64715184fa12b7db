// What a transformer needs to know of a model, whatever file it came from. Filled by the config readers
// (config.json, GGUF metadata); read by engine/model. Adding a dense family touches its reader and the name
// map.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace recto {

enum class Activation : std::uint8_t { silu, gelu_tanh };

// RMSNorm on q and k, before RoPE: over each head's elements with one weight for all heads (Qwen3, Gemma 3),
// or over the elements of all heads together (OLMo 2).
enum class QkNorm : std::uint8_t { none, per_head, all_heads };

// Rotary position embedding after all scaling: one fixed set of frequencies per loaded model, because cached
// keys are already rotated. The formulas are in engine/load/rope_scaling.h.
struct RopeConfig {
    std::string type = "default";  // default, linear, dynamic, llama3, yarn, longrope
    double theta = 10000.0;
    int rotary_dims = 0;                   // d; at most head_dim
    std::vector<float> inverse_frequency;  // [d / 2], scaling applied
    // longrope, where inverse_frequency is that of long contexts: the one of contexts up to `short_context`.
    std::vector<float> short_inverse_frequency;  // [d / 2], or empty
    int short_context = 0;
    float attention_factor = 1.0F;         // multiplies cos and sin
};

// Layers whose MLP is a mixture: a router sends each token to a few of many small MLPs. No experts: a dense
// model.
struct ExpertConfig {
    int count = 0;
    int per_token = 0;         // 1 … count
    int intermediate = 0;      // of one expert
    bool renormalize = true;   // the chosen ones' softmax weights are divided by their sum
    bool stacked = false;      // a folder holds all experts of a layer as one tensor
    std::vector<bool> layers;  // [layers] which ones are mixtures
};

struct ModelConfig {
    std::string architecture;  // as the file names it: "llama", "qwen2", "LlamaForCausalLM"
    std::string family;        // for people: "Llama", "Qwen2"
    std::string name;          // for people: "SmolLM2 135M Instruct"; may be empty
    int hidden = 0;
    int layers = 0;
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int intermediate = 0;  // of dense layers
    int vocab = 0;         // rows of the embedding; ids ≥ tokenizer size are masked before sampling
    float norm_eps = 1e-5F;
    Activation activation = Activation::silu;
    bool tied_embedding = false;  // logits use the embedding
    QkNorm qk_norm = QkNorm::none;
    bool pre_norms = true;       // norms before attention and MLP (all families but OLMo 2)
    bool post_norms = false;     // Gemma, OLMo 2: norms after attention and MLP, on the branch
    bool norm_plus_one = false;  // weights hold w, the norm multiplies by 1 + w (Gemma from Hugging Face)
    float embedding_scale = 1.0F;
    float attention_scale = 0.0F;  // of the scores; 0: 1 / sqrt(head_dim)
    float residual_scale = 1.0F;   // of what attention and MLP add (Granite)
    float logits_scale = 1.0F;     // logits are multiplied by it
    float attention_softcap = 0.0F;
    float logits_softcap = 0.0F;
    std::vector<int> window;  // [layers] sliding window of each layer, 0 = none; empty = none anywhere
    RopeConfig rope;
    RopeConfig rope_local;  // Gemma 3's window layers; rotary_dims 0 when unused
    std::vector<std::uint8_t>
        unrotated;               // [layers] 1: q and k are not rotated (SmolLM3); empty = all layers rotate
    bool fused_tensors = false;  // the file holds q|k|v as one tensor, and gate|up (Phi-3)
    ExpertConfig experts;
    int max_position = 0;               // longest context the model was made for
    std::vector<std::int32_t> eos_ids;  // union over config, generation config and tokenizer files
    std::int32_t bos_id = -1;

    bool is_mixture(int layer) const { return experts.count > 0 && experts.layers[std::size_t(layer)]; }
};

// Defaults that generation_config.json or GGUF offers for requests that leave them out. NaN / -1 = not given.
struct GenerationDefaults {
    double temperature = -1, top_p = -1, min_p = -1, repetition_penalty = -1;
    int top_k = -1;
    std::string source;  // "generation_config.json", for "where a value came from"
};

}  // namespace recto
