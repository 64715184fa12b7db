// The weight matrix of one module of a Hugging Face folder ("model.layers.0.self_attn.q_proj"), in whatever
// form its tensors have: `weight` (dense), `qweight` (AWQ, GPTQ), `weight_packed` (compressed-tensors). A
// linear is quantized exactly when its packed tensor exists; where the configuration says otherwise, the
// tensors are followed and a warning says so.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/load/folder_tensors.h"
#include "engine/load/quantization_config.h"
#include "kernels/weight.h"

namespace recto {

// A dtype of dense tensors, as safetensors names it.
struct DenseType {
    const char* name;
    DType dtype;
};
const DenseType* dense_type(const std::string& name);  // null for dtypes that weights cannot have

class ModuleWeights {
  public:
    // `folder` is the label of messages that concern no single file.
    ModuleWeights(std::shared_ptr<const FolderTensors> tensors, std::string folder,
                  QuantizationConfig config = {});

    // Whether the files hold a weight of this module, quantized or not.
    bool has(const std::string& module) const;
    // Checks all that the headers say of the module's tensors, for a weight of [rows, cols], and keeps what
    // was found for the reports below. Error(input) with file, tensor, what was expected and what was found,
    // also if there is none.
    void check(const std::string& module, std::int64_t rows, std::int64_t cols);
    // The weight, `bias` [rows] (or empty) attached; null if the files have none. Error(input) as check(),
    // and for indices or zero points that are none.
    std::unique_ptr<WeightRows> open(const std::string& module, std::int64_t rows, std::int64_t cols,
                                     std::vector<float> bias = {}) const;

    // In all files: quantized modules count what they stand for, once checked, and their tensors do not.
    std::int64_t parameters() const;

    // Of all modules checked so far: what takes most of the quantized ones, and which are not quantized, as
    // in "AWQ gemm, 4 bit, group 128 (lm_head F16)"; empty if none is quantized.
    std::string describe() const;
    QuantMethod method() const;
    // Where configuration and tensors disagree. Reads zero points where their packer may have spoilt them.
    std::vector<std::string> warnings() const;

  private:
    struct Checked {
        std::string module;
        std::int64_t rows, cols;
        std::string form;     // "AWQ gemm, 4 bit, group 128"; "F16"
        QuantMethod method;   // none: dense
        std::uint64_t bytes;  // of the integers, or the values
        bool ordered;         // has a g_idx
    };

    const SafeTensor& dense(const std::string& module, std::int64_t rows, std::int64_t cols) const;
    const Checked* main_form() const;
    bool act_order() const;
    std::string not_quantized() const;
    void warn_of_config(std::vector<std::string>& all) const;
    void warn_of_lists(std::vector<std::string>& all) const;
    void warn_of_zero_points(std::vector<std::string>& all) const;
    void warn_of_dense_copies(std::vector<std::string>& all) const;

    std::shared_ptr<const FolderTensors> tensors_;
    std::string folder_;
    QuantizationConfig config_;
    std::vector<Checked> checked_;
    std::set<std::string> checked_names_;  // fused modules are asked for once for each of their parts
};

}  // namespace recto
