#include "engine/load/folder_source.h"

#include <algorithm>
#include <map>

#include "engine/load/folder_config.h"
#include "engine/load/folder_tensors.h"
#include "engine/load/mapped_file.h"
#include "engine/load/module_weights.h"
#include "engine/load/name_map.h"
#include "engine/load/refuse.h"
#include "engine/load/row_range.h"
#include "engine/load/stored_rows.h"
#include "engine/load/tokenizer_folder.h"
#include "engine/load/unused_tensors.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

// A snapshot folder is named by a commit; its repository, "models--ORG--NAME", says more.
std::string model_name(const fs::path& folder) {
    std::error_code error;
    fs::path full = fs::weakly_canonical(folder, error);
    if (full.parent_path().filename() == "snapshots") full = full.parent_path().parent_path();
    const std::string name = full.filename().string();
    const auto dashes = name.rfind("--");
    return dashes == std::string::npos ? name : name.substr(dashes + 2);
}

// Of config.json, or of the separate files that quantizers wrote before it could say.
QuantizationConfig quantization_config(const fs::path& folder) {
    const fs::path file = folder / "config.json";
    QuantizationConfig config = read_quantization_config(read_text_file(file), file.string());
    std::error_code error;
    for (const char* separate : {"quant_config.json", "quantize_config.json"})
        if (const fs::path other = folder / separate; config.label.empty() && fs::exists(other, error))
            config = read_separate_quantization_config(read_text_file(other), other.string());
    return config;
}

// What stands before a decoder's names: "model." and "lm_head" in a language model's own file, none where the
// base model was saved alone, and more in files that hold the decoder beside an image encoder.
struct Spelling {
    const char* base;  // before "embed_tokens", "layers.N.…", "norm"
    const char* head;  // before "lm_head"
};

Spelling find_spelling(const FolderTensors& tensors) {
    constexpr Spelling usual{"model.", ""};
    for (const Spelling& one : {usual, Spelling{"", ""}, Spelling{"language_model.model.", "language_model."},
                                Spelling{"model.language_model.", ""}})
        if (tensors.find(std::string(one.base) + "embed_tokens.weight") != nullptr) return one;
    return usual;
}

class FolderSource final : public ModelSource {
  public:
    explicit FolderSource(const fs::path& folder) : path_(folder) {
        const fs::path config_file = folder / "config.json";
        config_ = read_folder_config(read_text_file(config_file), config_file.string());
        config_.model.name = model_name(folder);
        std::error_code error;
        if (const auto file = folder / "generation_config.json"; fs::exists(file, error))
            defaults_ = read_generation_config(read_text_file(file), file.string(), config_.model);
        tensors_ = std::make_shared<const FolderTensors>(folder);
        names_ = find_spelling(*tensors_);
        modules_ = std::make_unique<ModuleWeights>(tensors_, folder.string(), quantization_config(folder));
        ModelConfig& model = config_.model;
        if (!model.tied_embedding && !modules_->has(file_name(place(TensorRole::lm_head, 0))))
            tie_absent_head();
        model.experts.stacked = has_stacked_experts();
        check_tensors();
    }

    const fs::path& path() const override { return path_; }
    std::string format() const override { return "safetensors"; }
    const ModelConfig& config() const override { return config_.model; }
    const GenerationDefaults& generation_defaults() const override { return defaults_; }
    std::uint64_t file_bytes() const override { return tensors_->bytes(); }
    void prefetch() const override { tensors_->prefetch(); }
    void release_pages() const override { tensors_->release(); }
    bool has_tokenizer() const override { return has_folder_tokenizer(path_); }
    TokenizerFiles tokenizer_files() const override { return read_folder_tokenizer(path_); }
    std::string tensor_name(TensorRole role, int layer, int expert) const override {
        return file_name(place(role, layer, expert), is_stacked(role) ? "" : ".weight");
    }

    std::string quantization() const override {
        if (const std::string quantized = modules_->describe(); !quantized.empty()) return quantized;
        std::map<std::string, std::uint64_t> bytes;
        for (const auto* tensor : tensors_->tensors())
            if (tensor->shape.size() >= 2) bytes[tensor->dtype] += tensor->data.size();
        std::string most;
        for (const auto& [name, size] : bytes)
            if (most.empty() || size > bytes[most]) most = name;
        return "none (" + most + ")" + (bytes.size() > 1 ? " (mixed)" : "");
    }

    std::string quantization_method() const override { return method_name(modules_->method()); }
    std::vector<std::string> warnings() const override {
        std::vector<std::string> all = modules_->warnings();
        if (!head_warning_.empty()) all.push_back(head_warning_);
        if (std::string note = unused_note(); !note.empty()) all.push_back(std::move(note));
        return all;
    }

    std::vector<TensorInfo> tensors() const override {
        std::vector<TensorInfo> infos;
        for (const auto* tensor : tensors_->tensors())
            infos.push_back({tensor->name, tensor->dtype, tensor->shape, tensor->data.size()});
        return infos;
    }

    std::int64_t parameters() const override { return modules_->parameters(); }

    std::unique_ptr<WeightRows> weight(TensorRole role, int layer, int expert) const override {
        const TensorPlace where = place(role, layer, expert);
        if (is_stacked(role)) return stacked_expert(where);
        const std::string module = file_name(where);
        if (!modules_->has(module)) return nullptr;
        std::vector<float> bias;
        if (has_bias(role)) bias = values(*find(where, ".bias"));
        auto whole = modules_->open(module, where.shape[0], where.shape[1], std::move(bias));
        if (!where.shared()) return whole;
        return make_row_range(std::move(whole), where.first_row, where.rows);
    }

    std::vector<float> norm(TensorRole role, int layer) const override {
        const SafeTensor* tensor = find(place(role, layer), ".weight");
        if (tensor == nullptr) return {};
        std::vector<float> weights = values(*tensor);
        if (config_.model.norm_plus_one)
            for (float& w : weights)
                w += 1.0F;
        return weights;
    }

  private:
    bool has_bias(TensorRole role) const {
        switch (role) {
            case TensorRole::attn_q:
            case TensorRole::attn_k:
            case TensorRole::attn_v:
                return config_.qkv_bias;
            case TensorRole::attn_o:
                return config_.o_bias;
            case TensorRole::ffn_gate:
            case TensorRole::ffn_up:
            case TensorRole::ffn_down:
                return config_.mlp_bias;
            default:
                return false;
        }
    }

    // Answers from the embedding of a model that was trained with a head of its own are noise, so a
    // configuration that says so is believed; where only the family's habit says so, the tensors are.
    void tie_absent_head() {
        const std::string head = file_name(place(TensorRole::lm_head, 0), ".weight");
        if (config_.states_tie)
            refuse(path_.string(), "the tensor " + head +
                                       " was expected, as \"tie_word_embeddings\" is false, but it is "
                                       "missing; choose a complete copy of the model");
        config_.model.tied_embedding = true;
        head_warning_ =
            path_.string() + ": the tensor " + head +
            " is missing and config.json has no \"tie_word_embeddings\"; the embedding is used in "
            "its place, which " +
            config_.model.family + " models do not do unless they are told to";
    }

    // Whether the folder's mixtures are stored as transformers keeps them in memory, one parameter a layer.
    bool has_stacked_experts() const {
        ModelConfig stacked = config_.model;
        stacked.experts.stacked = true;
        for (int layer = 0; layer < stacked.layers; ++layer) {
            if (!stacked.is_mixture(layer)) continue;
            const TensorPlace where = huggingface_place(TensorRole::expert_down, layer, stacked);
            return tensors_->find(file_name(where)) != nullptr;
        }
        return false;
    }
    bool is_stacked(TensorRole role) const { return config_.model.experts.stacked && is_expert(role); }

    std::unique_ptr<WeightRows> stacked_expert(const TensorPlace& where) const {
        const SafeTensor* tensor = find(where, "");
        if (tensor == nullptr) return nullptr;
        const DenseType* type = dense_type(tensor->dtype);
        StoredMatrix matrix;
        matrix.data = tensor->data;
        matrix.rows = where.all_rows();
        matrix.cols = where.shape.back();
        matrix.keep_alive = tensors_;
        return make_row_range(make_dense_rows(type->dtype, type->name, std::move(matrix)), where.first_row,
                              where.rows);
    }

    void check_tensors() {
        for_each_required_tensor(config_.model, [&](TensorRole role, int layer, int expert) {
            const TensorPlace where = place(role, layer, expert);
            if (is_norm(role)) {
                require(where, ".weight");
            } else if (is_stacked(role)) {
                require(where, "");
            } else {
                modules_->check(file_name(where), where.shape[0], where.shape[1]);
            }
            if (has_bias(role)) require(where, ".bias");
        });
    }

    std::string unused_note() const {
        TensorUse use;
        const auto take = [&](TensorRole role, int layer, int expert) {
            const TensorPlace where = place(role, layer, expert);
            if (is_stacked(role))
                use.tensor(file_name(where));
            else
                use.module(file_name(where));
            if (has_bias(role)) use.tensor(file_name(where, ".bias"));
        };
        for_each_required_tensor(config_.model, take);
        take(TensorRole::lm_head, 0, 0);  // beside a tied embedding it is a copy
        std::vector<std::string> names;
        for (const SafeTensor* tensor : tensors_->tensors()) {
            names.push_back(tensor->name);
            // GPTQ's packers write a bias of zeros for every linear that has none.
            if (tensor->name.ends_with(".bias") && all_zero(*tensor)) use.tensor(tensor->name);
        }
        return use.note(path_.string(), names, config_.model.layers);
    }
    static bool all_zero(const SafeTensor& tensor) {
        return std::ranges::all_of(tensor.data, [](std::byte byte) { return byte == std::byte{0}; });
    }

    TensorPlace place(TensorRole role, int layer, int expert = 0) const {
        return huggingface_place(role, layer, config_.model, expert);
    }

    std::string file_name(const TensorPlace& where, const char* suffix = "") const {
        constexpr std::string_view base = "model.";
        const std::string_view name = where.name;
        if (name.starts_with(base)) return names_.base + std::string(name.substr(base.size())) + suffix;
        return names_.head + std::string(name) + suffix;
    }

    void require(const TensorPlace& where, const char* suffix) const {
        if (find(where, suffix) == nullptr)
            refuse(path_.string(), "the tensor " + file_name(where, suffix) + " is missing");
    }

    // Null if the files have none; Error(input) for a shape or dtype that does not fit.
    const SafeTensor* find(const TensorPlace& where, const char* suffix) const {
        if (where.name.empty()) return nullptr;
        const std::string name = file_name(where, suffix);
        const SafeTensor* tensor = tensors_->find(name);
        if (tensor == nullptr) return nullptr;
        auto expected = where.shape;
        if (std::string_view(suffix) == ".bias") expected.resize(1);
        if (tensor->shape != expected)
            refuse(tensors_->label_of(name), "the tensor " + name + " should have the shape " +
                                                 shape_text(expected) + ", found " +
                                                 shape_text(tensor->shape));
        if (dense_type(tensor->dtype) == nullptr)
            refuse(tensors_->label_of(name),
                   "the tensor " + name + " holds " + tensor->dtype +
                       " data, which is not supported; supported are F32, F16 and BF16");
        return tensor;
    }

    static std::vector<float> values(const SafeTensor& tensor) {
        std::vector<float> out(std::size_t(tensor.shape[0]));
        widen_to_f32(dense_type(tensor.dtype)->dtype, tensor.data.data(), tensor.shape[0], out.data());
        return out;
    }

    fs::path path_;
    FolderConfig config_;
    GenerationDefaults defaults_;
    std::shared_ptr<const FolderTensors> tensors_;
    std::unique_ptr<ModuleWeights> modules_;
    std::string head_warning_;
    Spelling names_{};
};

}  // namespace

std::unique_ptr<ModelSource> make_folder_source(const fs::path& folder) {
    return std::make_unique<FolderSource>(folder);
}

}  // namespace recto
