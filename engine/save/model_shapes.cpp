#include "engine/save/model_shapes.h"

#include "engine/load/rope_scaling.h"
#include "kernels/error.h"

namespace recto {

namespace {

struct Shape {
    const char* name;
    const char* family;
    int hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, max_position;
    double theta;
    float norm_eps;
    bool tied;
    double llama3_factor = 0;  // rope scaling, over an original context of 8192
    int experts = 0, per_token = 0, expert_intermediate = 0;
};
constexpr Shape shapes[] = {
    {"tiny", "Llama", 256, 2, 4, 2, 64, 512, 512, 2048, 1e4, 1e-5F, false},
    {"tiny-qwen2", "Qwen2", 256, 2, 4, 2, 64, 512, 512, 2048, 1e6, 1e-6F, true},
    {"tiny-qwen3", "Qwen3", 256, 2, 4, 2, 64, 512, 512, 2048, 1e6, 1e-6F, true},
    {"tiny-mixtral", "Mixtral", 256, 2, 4, 2, 64, 256, 512, 2048, 1e6, 1e-5F, false, 0, 4, 2, 256},
    {"tiny-qwen3-moe", "Qwen3 MoE", 256, 2, 4, 2, 64, 512, 512, 2048, 1e6, 1e-6F, false, 0, 8, 2, 256},
    {"smollm2-135m", "Llama", 576, 30, 9, 3, 64, 1536, 49152, 8192, 1e5, 1e-5F, true},
    {"smollm2-1.7b", "Llama", 2048, 24, 32, 32, 64, 8192, 49152, 8192, 130000, 1e-5F, true},
    {"tinyllama-1.1b", "Llama", 2048, 22, 32, 4, 64, 5632, 32000, 2048, 1e4, 1e-5F, false},
    {"llama-2-7b", "Llama", 4096, 32, 32, 32, 128, 11008, 32000, 4096, 1e4, 1e-5F, false},
    {"llama-2-13b", "Llama", 5120, 40, 40, 40, 128, 13824, 32000, 4096, 1e4, 1e-5F, false},
    {"llama-3-8b", "Llama", 4096, 32, 32, 8, 128, 14336, 128256, 8192, 5e5, 1e-5F, false},
    {"llama-3.1-8b", "Llama", 4096, 32, 32, 8, 128, 14336, 128256, 131072, 5e5, 1e-5F, false, 8},
    {"llama-3.2-1b", "Llama", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 5e5, 1e-5F, true, 32},
    {"llama-3.2-3b", "Llama", 3072, 28, 24, 8, 128, 8192, 128256, 131072, 5e5, 1e-5F, true, 32},
    {"mistral-7b", "Mistral", 4096, 32, 32, 8, 128, 14336, 32000, 32768, 1e4, 1e-5F, false},
    {"mixtral-8x7b", "Mixtral", 4096, 32, 32, 8, 128, 14336, 32000, 32768, 1e6, 1e-5F, false, 0, 8, 2, 14336},
    {"qwen3-30b-a3b", "Qwen3 MoE", 2048, 48, 32, 4, 128, 6144, 151936, 40960, 1e6, 1e-6F, false, 0, 128, 8,
     768},
    {"qwen2.5-0.5b", "Qwen2", 896, 24, 14, 2, 64, 4864, 151936, 32768, 1e6, 1e-6F, true},
    {"qwen2.5-1.5b", "Qwen2", 1536, 28, 12, 2, 128, 8960, 151936, 32768, 1e6, 1e-6F, true},
    {"qwen2.5-7b", "Qwen2", 3584, 28, 28, 4, 128, 18944, 152064, 32768, 1e6, 1e-6F, false},
    {"qwen3-0.6b", "Qwen3", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1e6, 1e-6F, true},
    {"qwen3-1.7b", "Qwen3", 2048, 28, 16, 8, 128, 6144, 151936, 40960, 1e6, 1e-6F, true},
    {"qwen3-4b", "Qwen3", 2560, 36, 32, 8, 128, 9728, 151936, 40960, 1e6, 1e-6F, true},
    {"qwen3-8b", "Qwen3", 4096, 36, 32, 8, 128, 12288, 151936, 40960, 1e6, 1e-6F, false},
};

RopeSettings rope_of(const Shape& shape) {
    RopeSettings rope;
    rope.theta = shape.theta;
    rope.rotary_dims = shape.head_dim;
    rope.max_position = shape.max_position;
    if (shape.llama3_factor > 0) {
        rope.type = "llama3";
        rope.factor = shape.llama3_factor;
        rope.original_max_position = 8192;
    }
    return rope;
}

}  // namespace

std::vector<std::string> model_shape_names() {
    std::vector<std::string> names;
    for (const auto& shape : shapes)
        names.emplace_back(shape.name);
    return names;
}

ModelConfig model_shape(const std::string& name, int layers) {
    for (const auto& shape : shapes) {
        if (name != shape.name) continue;
        ModelConfig c;
        c.family = shape.family;
        c.name = name;
        c.hidden = shape.hidden;
        c.layers = layers > 0 ? layers : shape.layers;
        c.heads = shape.heads;
        c.kv_heads = shape.kv_heads;
        c.head_dim = shape.head_dim;
        c.intermediate = shape.intermediate;
        c.vocab = shape.vocab;
        c.max_position = shape.max_position;
        c.norm_eps = shape.norm_eps;
        c.tied_embedding = shape.tied;
        if (c.family.starts_with("Qwen3")) c.qk_norm = QkNorm::per_head;
        if (shape.experts > 0) {
            c.experts.count = shape.experts;
            c.experts.per_token = shape.per_token;
            c.experts.intermediate = shape.expert_intermediate;
            c.experts.layers.assign(std::size_t(c.layers), true);
        }
        c.rope = scale_rope(rope_of(shape), name);
        return c;
    }
    std::string known;
    for (const auto& shape : shapes)
        known += (known.empty() ? "" : ", ") + std::string(shape.name);
    throw Error(ErrorKind::argument, "--like must be one of " + known + ", got " + name);
}

}  // namespace recto
