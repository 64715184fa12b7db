#include "engine/save/make_model.h"

#include <algorithm>

#include "engine/load/name_map.h"
#include "engine/load/rope_scaling.h"
#include "engine/save/gguf_writer.h"
#include "engine/save/model_shapes.h"
#include "engine/save/quantized_tensors.h"
#include "engine/save/random_model.h"
#include "engine/save/random_tensor.h"
#include "engine/save/random_vocabulary.h"
#include "engine/save/tokenizer_writer.h"
#include "kernels/error.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

constexpr const char* kGgufPrefix = "gguf:";

std::uint64_t count(const std::vector<std::int64_t>& shape) {
    std::uint64_t n = 1;
    for (const auto dim : shape)
        n *= std::uint64_t(dim);
    return n;
}

void use_vocabulary(const TokenizerFiles& files, ModelConfig& config) {
    config.bos_id = files.gguf->bos;
    config.eos_ids = {files.gguf->eos};
}

// ---- folders
// -----------------------------------------------------------------------------------------------

class FolderMaker {
  public:
    FolderMaker(const ModelConfig& config, const MakeModelOptions& options)
        : config_(config), options_(options), biases_(family_biases(config)) {
        // The formats keep scales in 16 bits, and what they leave alone is float16 in files of that kind.
        if (options.quantization != "none" && options.dtype == SaveType::f32)
            throw Error(ErrorKind::argument, "--dtype float32 does not go with --quantization " +
                                                 options.quantization + "; choose float16 or bfloat16");
    }

    std::vector<SaveTensor> tensors() const {
        std::vector<SaveTensor> out;
        for_each_required_tensor(config_, [&](TensorRole role, int layer, int expert) {
            const std::string module = huggingface_place(role, layer, config_, expert).name;
            const auto shape = expected_shape(role, config_);
            if (is_quantized(role)) {
                const RandomLinear linear{module, shape[0], shape[1], weight_std_dev(role, config_)};
                for (auto& tensor : quantized_tensors(linear, options_))
                    out.push_back(std::move(tensor));
            } else {
                out.push_back(dense(module + ".weight", shape, role));
            }
            if (has_bias(role, biases_)) out.push_back(bias(module + ".bias", shape[0]));
        });
        return out;
    }

    ConfigJson config() const {
        ConfigJson json = config_json(config_, biases_, options_.dtype, "--like " + options_.like);
        if (options_.quantization != "none")
            json["quantization_config"] = quantization_config(options_, config_.experts.count > 0);
        return json;
    }

  private:
    bool is_quantized(TensorRole role) const {
        return options_.quantization != "none" && !is_norm(role) && role != TensorRole::embedding &&
               role != TensorRole::lm_head && role != TensorRole::ffn_router;
    }
    SaveTensor dense(const std::string& name, const std::vector<std::int64_t>& shape, TensorRole role) const {
        const bool norm = is_norm(role);
        return {name, options_.dtype, shape,
                random_values(random_key(options_.seed, name), count(shape), options_.dtype,
                              norm ? norm_std_dev : weight_std_dev(role, config_), norm ? 1.0F : 0.0F)};
    }
    SaveTensor bias(const std::string& name, std::int64_t rows) const {
        return {name,
                options_.dtype,
                {rows},
                random_values(random_key(options_.seed, name), std::uint64_t(rows), options_.dtype,
                              bias_std_dev)};
    }

    const ModelConfig& config_;
    const MakeModelOptions& options_;
    SavedBiases biases_;
};

void make_folder(const ModelConfig& config, const TokenizerFiles& vocabulary, const MakeModelOptions& options,
                 const fs::path& path, const SaveProgress& progress) {
    const FolderMaker maker(config, options);
    auto tensors = maker.tensors();  // refuses what does not fit before anything is written
    OutputFolder out(path);
    write_safetensors(out, std::move(tensors), progress);
    for (const auto& [name, content] : saved_tokenizer(vocabulary, config.max_position).files)
        out.write(name, content);
    out.write("generation_config.json", generation_config_json(config, {}).dump(2) + "\n");
    out.write("config.json", maker.config().dump(2) + "\n");
    out.commit();
}

// ---- GGUF
// --------------------------------------------------------------------------------------------------

GgufType type_named(const std::string& name) {
    for (std::uint32_t id = 0; id < 64; ++id)
        if (const auto* info = gguf_type_info(id); info != nullptr && name == info->name) return info->type;
    throw Error(ErrorKind::argument, "--quantization gguf:TYPE knows " + gguf_type_names() + ", got " + name);
}

// What llama.cpp takes where a row is no multiple of 256 (llama-quant.cpp).
GgufType type_for(GgufType type, std::int64_t cols) {
    if (cols % gguf_type_info(std::uint32_t(type))->elements == 0) return type;
    switch (type) {
        case GgufType::q2_k:
        case GgufType::q3_k:
            return type_for(GgufType::q4_0, cols);
        case GgufType::q4_k:
            return type_for(GgufType::q5_0, cols);
        case GgufType::q5_k:
            return type_for(GgufType::q5_1, cols);
        case GgufType::q6_k:
            return type_for(GgufType::q8_0, cols);
        case GgufType::iq4_xs:
            return type_for(GgufType::iq4_nl, cols);
        default:
            return GgufType::f16;
    }
}

ByteSource random_gguf(std::uint64_t key, GgufType type, std::uint64_t n, float std_dev, float mean) {
    switch (type) {
        case GgufType::f32:
            return random_values(key, n, SaveType::f32, std_dev, mean);
        case GgufType::f16:
            return random_values(key, n, SaveType::f16, std_dev, mean);
        case GgufType::bf16:
            return random_values(key, n, SaveType::bf16, std_dev, mean);
        default: {
            const GgufTypeInfo& info = *gguf_type_info(std::uint32_t(type));
            return random_blocks(key, n / std::uint64_t(info.elements), info, std_dev);
        }
    }
}

const char* gguf_architecture(const ModelConfig& config) {
    if (config.family == "Qwen2") return "qwen2";
    if (config.family == "Qwen3") return "qwen3";
    if (config.family == "Qwen3 MoE") return "qwen3moe";
    return "llama";  // Mistral and Mixtral too
}

class GgufMaker {
  public:
    GgufMaker(const ModelConfig& config, const MakeModelOptions& options, GgufType type)
        : config_(config), options_(options), type_(type) {}

    std::vector<GgufSaveTensor> tensors() const {
        std::vector<GgufSaveTensor> out;
        const SavedBiases biases = family_biases(config_);
        for_each_required_tensor(config_, [&](TensorRole role, int layer, int expert) {
            if (expert > 0) return;  // all experts of a layer are one tensor
            const auto [module, shape, first_row, rows] = gguf_place(role, layer, config_);
            if (is_norm(role) || role == TensorRole::ffn_router) {
                out.push_back(tensor(module + ".weight", shape, GgufType::f32,
                                     is_norm(role) ? norm_std_dev : weight_std_dev(role, config_),
                                     is_norm(role) ? 1.0F : 0.0F));
            } else {
                out.push_back(tensor(module + ".weight", shape, type_for(type_, shape.back()),
                                     weight_std_dev(role, config_), 0.0F));
            }
            if (has_bias(role, biases))
                out.push_back(tensor(module + ".bias", {shape[0]}, GgufType::f32, bias_std_dev, 0.0F));
        });
        if (config_.rope.type == "llama3") out.push_back(rope_divisors());
        return out;
    }

    GgufPairs pairs(const TokenizerFiles& vocabulary) const {
        const std::string architecture = gguf_architecture(config_), a = architecture + ".";
        GgufPairs p;
        p.text("general.architecture", architecture);
        p.text("general.name", config_.name + " shape, random weights");
        p.u32(a + "block_count", std::uint32_t(config_.layers));
        p.u32(a + "context_length", std::uint32_t(config_.max_position));
        p.u32(a + "embedding_length", std::uint32_t(config_.hidden));
        p.u32(a + "feed_forward_length", std::uint32_t(config_.intermediate));
        p.u32(a + "attention.head_count", std::uint32_t(config_.heads));
        p.u32(a + "attention.head_count_kv", std::uint32_t(config_.kv_heads));
        p.u32(a + "attention.key_length", std::uint32_t(config_.head_dim));
        p.u32(a + "attention.value_length", std::uint32_t(config_.head_dim));
        p.u32(a + "rope.dimension_count", std::uint32_t(config_.rope.rotary_dims));
        p.f32(a + "attention.layer_norm_rms_epsilon", config_.norm_eps);
        p.f32(a + "rope.freq_base", float(config_.rope.theta));
        p.u32(a + "vocab_size", std::uint32_t(config_.vocab));
        if (config_.experts.count > 0) {
            p.u32(a + "expert_count", std::uint32_t(config_.experts.count));
            p.u32(a + "expert_used_count", std::uint32_t(config_.experts.per_token));
            p.u32(a + "expert_feed_forward_length", std::uint32_t(config_.experts.intermediate));
        }
        put_vocabulary(vocabulary, p);
        return p;
    }

  private:
    GgufSaveTensor tensor(const std::string& name, const std::vector<std::int64_t>& shape, GgufType type,
                          float std_dev, float mean) const {
        return {name, type, shape,
                random_gguf(random_key(options_.seed, name), type, count(shape), std_dev, mean)};
    }

    // Llama 3.1's scaling travels as what each frequency is divided by.
    GgufSaveTensor rope_divisors() const {
        RopeSettings plain;
        plain.theta = config_.rope.theta;
        plain.rotary_dims = config_.rope.rotary_dims;
        const auto unscaled = scale_rope(plain, "rope").inverse_frequency;
        std::vector<float> divisors;
        for (std::size_t i = 0; i < unscaled.size(); ++i)
            divisors.push_back(unscaled[i] / config_.rope.inverse_frequency[i]);
        return {"rope_freqs.weight",
                GgufType::f32,
                {std::int64_t(divisors.size())},
                [divisors](const ByteSink& sink) { sink(std::as_bytes(std::span(divisors))); }};
    }

    static void put_vocabulary(const TokenizerFiles& files, GgufPairs& p) {
        const auto& v = *files.gguf;
        p.text("tokenizer.ggml.model", v.model);
        p.text("tokenizer.ggml.pre", v.pre);
        p.texts("tokenizer.ggml.tokens", v.tokens);
        p.integers("tokenizer.ggml.token_type", v.types);
        p.texts("tokenizer.ggml.merges", v.merges);
        p.u32("tokenizer.ggml.bos_token_id", std::uint32_t(v.bos));
        p.u32("tokenizer.ggml.eos_token_id", std::uint32_t(v.eos));
        p.u32("tokenizer.ggml.unknown_token_id", std::uint32_t(v.unknown));
        p.u32("tokenizer.ggml.padding_token_id", std::uint32_t(v.padding));
        p.boolean("tokenizer.ggml.add_bos_token", v.add_bos);
        p.text("tokenizer.chat_template", files.chat_template);
    }

    const ModelConfig& config_;
    const MakeModelOptions& options_;
    GgufType type_;
};

void make_gguf(const ModelConfig& config, const TokenizerFiles& vocabulary, const MakeModelOptions& options,
               const fs::path& path, const SaveProgress& progress) {
    const GgufMaker maker(config, options,
                          type_named(options.quantization.substr(std::string_view(kGgufPrefix).size())));
    const bool is_file = path.extension() == ".gguf";
    const auto out = is_file ? OutputFolder::for_file(path) : std::make_unique<OutputFolder>(path);
    write_gguf(*out, is_file ? path.filename().string() : "model.gguf", maker.pairs(vocabulary),
               maker.tensors(), progress);
    out->commit();
}

void check_options(const MakeModelOptions& o) {
    const auto known = {"none", "awq", "gptq", "compressed-tensors"};
    const bool gguf = o.quantization.starts_with(kGgufPrefix);
    if (!gguf && std::find(known.begin(), known.end(), o.quantization) == known.end())
        throw Error(
            ErrorKind::argument,
            "--quantization must be none, awq, gptq, compressed-tensors or gguf:TYPE, got " + o.quantization);
    if (o.group_size != -1 && (o.group_size < 8 || o.group_size % 8 != 0))
        throw Error(ErrorKind::argument,
                    "--group-size must be -1 (whole rows) or a multiple of 8 from 8 on, got " +
                        std::to_string(o.group_size));
    if (o.act_order && o.quantization != "gptq")
        throw Error(ErrorKind::argument, "--act-order is for --quantization gptq, got " + o.quantization);
    if (o.awq_version != AwqVersion::gemm && o.quantization != "awq")
        throw Error(ErrorKind::argument, "--version is for --quantization awq, got " + o.quantization);
}

}  // namespace

void make_model(const MakeModelOptions& options, const fs::path& out, const SaveProgress& progress) {
    check_options(options);
    ModelConfig config = model_shape(options.like, options.layers);
    const TokenizerFiles vocabulary = random_vocabulary(config.vocab);
    use_vocabulary(vocabulary, config);
    if (options.quantization.starts_with(kGgufPrefix)) {
        make_gguf(config, vocabulary, options, out, progress);
    } else {
        make_folder(config, vocabulary, options, out, progress);
    }
}

}  // namespace recto
