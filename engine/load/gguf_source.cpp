#include "engine/load/gguf_source.h"

#include <map>

#include "engine/load/gguf_config.h"
#include "engine/load/gguf_vocabulary.h"
#include "engine/load/name_map.h"
#include "engine/load/refuse.h"
#include "engine/load/row_range.h"
#include "engine/load/stored_rows.h"
#include "engine/load/unused_tensors.h"

namespace recto {

namespace {

std::vector<std::int64_t> row_major_shape(const GgufTensor& tensor) {
    std::vector<std::int64_t> shape(tensor.dims.begin(),
                                    tensor.dims.begin() + std::max(tensor.dimensions, 1));
    // Trailing ones say nothing: a vector may be written as (n, 1).
    while (shape.size() > 1 && shape.back() == 1)
        shape.pop_back();
    return {shape.rbegin(), shape.rend()};
}

class GgufSource final : public ModelSource {
  public:
    GgufSource(std::shared_ptr<const GgufFiles> files, std::filesystem::path path)
        : files_(std::move(files)),
          path_(std::move(path)),
          config_(read_gguf_config(*files_)),
          defaults_(read_gguf_generation_defaults(files_->metadata())) {
        for_each_required_tensor(config_, [&](TensorRole role, int layer, int expert) {
            if (find(place(role, layer, expert), ".weight") == nullptr)
                refuse(label(), "the tensor " + tensor_name(role, layer, expert) + " is missing");
        });
    }

    const std::filesystem::path& path() const override { return path_; }
    std::string format() const override { return "GGUF"; }
    const ModelConfig& config() const override { return config_; }
    const GenerationDefaults& generation_defaults() const override { return defaults_; }
    std::uint64_t file_bytes() const override { return files_->bytes(); }
    void prefetch() const override { files_->prefetch(); }
    void release_pages() const override { files_->release(); }
    std::string tensor_name(TensorRole role, int layer, int expert = 0) const override {
        return place(role, layer, expert).name + ".weight";
    }
    bool has_tokenizer() const override { return has_gguf_vocabulary(files_->metadata()); }
    TokenizerFiles tokenizer_files() const override { return read_gguf_vocabulary(files_->metadata()); }

    std::string quantization() const override {
        const auto bytes = matrix_bytes();
        std::string most = main_type(bytes);
        if (is_dense(most)) most = "none (" + most + ")";
        return bytes.size() > 1 ? most + " (mixed)" : most;
    }
    std::string quantization_method() const override {
        return is_dense(main_type(matrix_bytes())) ? "none" : "gguf";
    }

    std::vector<std::string> warnings() const override {
        TensorUse use;
        for_each_required_tensor(config_, [&](TensorRole role, int layer, int expert) {
            const TensorPlace where = place(role, layer, expert);
            use.module(where.name);
            if (!is_norm(role)) use.tensor(where.name + ".bias");
        });
        for (const char* table :
             {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})
            use.tensor(table);
        std::vector<std::string> names;
        for (const auto& tensor : files_->tensors())
            names.emplace_back(tensor.name);
        const std::string note = use.note(path_.string(), names, config_.layers);
        return note.empty() ? std::vector<std::string>() : std::vector<std::string>{note};
    }

    std::vector<TensorInfo> tensors() const override {
        std::vector<TensorInfo> infos;
        for (const auto& tensor : files_->tensors()) {
            infos.push_back(
                {std::string(tensor.name), tensor.type->name, row_major_shape(tensor), tensor.data.size()});
            StoredMatrix none;  // of the type
            none.cols = tensor.type->elements;
            if (const auto rows = make_gguf_rows(tensor.type->type, none); rows->form().grouped)
                infos.back().form = rows->form();
        }
        return infos;
    }

    std::int64_t parameters() const override {
        std::int64_t all = 0;
        for (const auto& tensor : files_->tensors()) {
            std::int64_t n = 1;
            for (const auto dim : row_major_shape(tensor))
                n *= dim;
            all += n;
        }
        return all;
    }

    std::unique_ptr<WeightRows> weight(TensorRole role, int layer, int expert) const override {
        const TensorPlace where = place(role, layer, expert);
        const GgufTensor* tensor = find(where, ".weight");
        if (tensor == nullptr) return nullptr;
        StoredMatrix matrix;
        matrix.data = tensor->data;
        matrix.cols = tensor->dims[0];
        matrix.rows = where.all_rows();
        if (role == TensorRole::attn_q || role == TensorRole::attn_k) matrix.order = gguf_qk_order(config_);
        matrix.bias = bias(where, matrix.order);
        matrix.keep_alive = files_;
        auto whole = make_gguf_rows(tensor->type->type, std::move(matrix));
        if (!where.shared()) return whole;
        return make_row_range(std::move(whole), where.first_row, where.rows);
    }

    std::vector<float> norm(TensorRole role, int layer) const override {
        const GgufTensor* tensor = find(place(role, layer), ".weight");
        return tensor == nullptr ? std::vector<float>() : values(*tensor);
    }

  private:
    static bool is_dense(const std::string& type) { return type == "F32" || type == "F16" || type == "BF16"; }

    // Of the matrices, by type.
    std::map<std::string, std::uint64_t> matrix_bytes() const {
        std::map<std::string, std::uint64_t> bytes;
        for (const auto& tensor : files_->tensors())
            if (row_major_shape(tensor).size() >= 2) bytes[tensor.type->name] += tensor.data.size();
        return bytes;
    }
    // The one that takes most.
    static std::string main_type(const std::map<std::string, std::uint64_t>& bytes) {
        std::string most;
        for (const auto& [name, size] : bytes)
            if (most.empty() || size > bytes.at(most)) most = name;
        return most;
    }

    TensorPlace place(TensorRole role, int layer, int expert = 0) const {
        const TensorPlace where = gguf_place(role, layer, config_, expert);
        if (!is_expert(role) || files_->find(where.name + ".weight") != nullptr) return where;
        const TensorPlace first = gguf_lone_expert(role, layer, config_, 0);
        const bool lone = files_->find(first.name + ".weight") != nullptr;
        return lone ? gguf_lone_expert(role, layer, config_, expert) : where;
    }

    const std::string& label() const { return files_->metadata().label(); }

    // Null if the file has none; Error(input) if it has another shape than the configuration asks for.
    const GgufTensor* find(const TensorPlace& where, const char* suffix) const {
        if (where.name.empty()) return nullptr;
        const std::string name = where.name + suffix;
        const GgufTensor* tensor = files_->find(name);
        if (tensor == nullptr) return nullptr;
        auto expected = where.shape;
        if (std::string_view(suffix) == ".bias") expected.resize(1);
        if (const auto shape = row_major_shape(*tensor); shape != expected)
            refuse(label(), "the tensor " + name + " should have the shape " + shape_text(expected) +
                                ", found " + shape_text(shape));
        return tensor;
    }

    static std::vector<float> values(const GgufTensor& tensor) {
        StoredMatrix matrix;
        matrix.data = tensor.data;
        matrix.rows = 1;
        matrix.cols = tensor.dims[0];
        std::vector<float> out(std::size_t(matrix.cols));
        make_gguf_rows(tensor.type->type, std::move(matrix))->read_f32(0, 1, out.data());
        return out;
    }

    std::vector<float> bias(const TensorPlace& where, const RowOrder& order) const {
        const GgufTensor* tensor = find(where, ".bias");
        if (tensor == nullptr) return {};
        const std::vector<float> stored = values(*tensor);
        std::vector<float> logical(stored.size());
        for (std::size_t row = 0; row < logical.size(); ++row)
            logical[row] = stored[std::size_t(order.file_row(std::int64_t(row)))];
        return logical;
    }

    std::shared_ptr<const GgufFiles> files_;
    std::filesystem::path path_;
    ModelConfig config_;
    GenerationDefaults defaults_;
};

}  // namespace

std::unique_ptr<ModelSource> make_gguf_source(std::shared_ptr<const GgufFiles> files,
                                              const std::filesystem::path& path) {
    return std::make_unique<GgufSource>(std::move(files), path);
}

}  // namespace recto
