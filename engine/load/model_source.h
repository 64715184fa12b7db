// A model file or folder, opened: configuration, named tensors on a memory map, tokenizer files, template.
// Opening reads headers only. Every offset and count is checked against the file before use; a file that lies is
// Error(input) with one sentence "FILE: what was expected, what was found".
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/load/model_config.h"
#include "kernels/weight.h"

namespace recto {

// The tensors of a decoder, by what they do. The name map (engine/load/name_map.cpp) says what each is called in
// Hugging Face folders and in GGUF.
enum class TensorRole : std::uint8_t {
    embedding, output_norm, lm_head,
    attn_norm, attn_q, attn_k, attn_v, attn_o, attn_q_norm, attn_k_norm, attn_post_norm,
    ffn_norm, ffn_gate, ffn_up, ffn_down, ffn_post_norm,
    ffn_router, expert_gate, expert_up, expert_down,  // of mixture layers, in place of gate, up and down
};

struct TensorInfo {  // for `inspect --tensors` and the memory that it will take
    std::string name;
    std::string type;                  // "Q4_1", "F32", "BF16"
    std::vector<std::int64_t> shape;   // row-major order: [rows, cols]
    std::uint64_t bytes = 0;
    std::optional<WeightForm> form;    // of GGUF's block types: what readers make of it
};

// Everything that tokenizers and templates are built from. Exactly one of the vocabularies is filled.
struct TokenizerFiles {
    std::string tokenizer_json;        // contents of tokenizer.json, or empty
    std::string sentencepiece_model;   // contents of tokenizer.model, or empty
    struct GgufVocabulary {
        std::string model;             // "gpt2" (byte-level BPE), "llama" (SentencePiece)
        std::string pre;               // pre-tokenizer: "smollm", "qwen2", "llama-bpe", …
        std::vector<std::string> tokens;
        std::vector<float> scores;
        std::vector<std::int32_t> types;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
        std::vector<std::string> merges;
        bool add_bos = false, add_eos = false, add_space_prefix = true;
        std::int32_t bos = -1, eos = -1, eot = -1, eom = -1, unknown = -1, padding = -1;
    };
    std::optional<GgufVocabulary> gguf;
    std::string tokenizer_config_json;  // contents, or empty
    std::string chat_template;          // the default template, or empty
    std::string chat_template_source;   // "chat_template.jinja", "tokenizer_config.json", "GGUF"
    std::string label;                  // path for messages
};

class ModelSource {
  public:
    virtual ~ModelSource() = default;
    virtual const std::filesystem::path& path() const = 0;
    virtual std::string format() const = 0;             // "GGUF", "safetensors"
    virtual std::string quantization() const = 0;       // for people: "Q4_1 (mixed)", "none (BF16)"
    // What `--quantization` calls it: "none", "awq", "gptq", "compressed-tensors", "gguf".
    virtual std::string quantization_method() const = 0;
    // Sentences for people on what is odd but does not keep the model from running, such as a configuration that the
    // tensors contradict.
    virtual std::vector<std::string> warnings() const { return {}; }
    virtual const ModelConfig& config() const = 0;
    virtual const GenerationDefaults& generation_defaults() const = 0;
    virtual std::uint64_t file_bytes() const = 0;       // of all weight files
    virtual std::vector<TensorInfo> tensors() const = 0;
    virtual std::int64_t parameters() const = 0;         // weights, norms and biases, however they are stored
    virtual TokenizerFiles tokenizer_files() const = 0;
    virtual bool has_tokenizer() const = 0;

    // The weight with its bias attached, rows already in Hugging Face's order (half-split RoPE); null if the file
    // has none. Error(input) if its shape is not what config() asks for. `expert` is read for the expert_* roles.
    virtual std::unique_ptr<WeightRows> weight(TensorRole role, int layer = 0, int expert = 0) const = 0;
    // A norm's weights in FP32, 1 + w folded in where the family wants it; empty if the file has none.
    virtual std::vector<float> norm(TensorRole role, int layer = 0) const = 0;
    // What the tensor is called in this source's format, for messages: "blk.3.attn_q.weight".
    virtual std::string tensor_name(TensorRole role, int layer = 0, int expert = 0) const = 0;
    // Asks the kernel to read the files ahead (madvise); progress is the residency it reports.
    virtual void prefetch() const {}
    // Gives the pages of the map that were read back to the kernel (they stay in the page cache): called while
    // weights are packed, so that a load never holds file and packed weights at once.
    virtual void release_pages() const {}
};

// A GGUF file, or a Hugging Face folder (config.json + safetensors). Pickles are refused with how to convert.
std::unique_ptr<ModelSource> open_model(const std::filesystem::path& path);

// Whether kernels will meet quantized weights: of a quantization's method, or of a GGUF block type.
bool has_quantized_weights(const ModelSource& source);

// "org/name" → the snapshot folder in the Hugging Face cache (HF_HUB_CACHE, HF_HOME, ~/.cache/huggingface/hub);
// anything that exists on disk is returned as it is. Error(input) says where it looked.
std::filesystem::path resolve_model(const std::string& name);

// Only the tokenizer side of a model, also of a vocabulary-only GGUF or a folder or file without weights
// (tokenizer.json, tokenizer.model).
TokenizerFiles open_tokenizer_files(const std::filesystem::path& path);

}  // namespace recto
