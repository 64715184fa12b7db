// The weight matrix of one module of a Hugging Face folder ("model.layers.0.self_attn.q_proj"), in whatever
// form its tensors have. Which form that is, the tensors say.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/load/folder_tensors.h"
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
    ModuleWeights(std::shared_ptr<const FolderTensors> tensors, std::string folder);

    // Whether the files hold a weight of this module.
    bool has(const std::string& module) const;
    // Checks all that the headers say of the module's tensors, for a weight of [rows, cols]; Error(input)
    // with file, tensor, what was expected and what was found, also if there is none.
    void check(const std::string& module, std::int64_t rows, std::int64_t cols) const;
    // The weight, `bias` [rows] (or empty) attached; null if the files have none. Error(input) as check().
    std::unique_ptr<WeightRows> open(const std::string& module, std::int64_t rows, std::int64_t cols,
                                     std::vector<float> bias = {}) const;

  private:
    const SafeTensor& dense(const std::string& module, std::int64_t rows, std::int64_t cols) const;

    std::shared_ptr<const FolderTensors> tensors_;
    std::string folder_;
};

}  // namespace recto
