#include "engine/load/module_weights.h"

#include "engine/load/name_map.h"
#include "engine/load/refuse.h"
#include "engine/load/stored_rows.h"

namespace recto {

const DenseType* dense_type(const std::string& name) {
    static constexpr DenseType types[] = {{"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}};
    for (const auto& type : types)
        if (name == type.name) return &type;
    return nullptr;
}

ModuleWeights::ModuleWeights(std::shared_ptr<const FolderTensors> tensors, std::string folder)
    : tensors_(std::move(tensors)), folder_(std::move(folder)) {}

bool ModuleWeights::has(const std::string& module) const {
    return tensors_->find(module + ".weight") != nullptr;
}

const SafeTensor& ModuleWeights::dense(const std::string& module, std::int64_t rows,
                                       std::int64_t cols) const {
    const std::string name = module + ".weight";
    const SafeTensor& tensor = *tensors_->find(name);
    const std::vector<std::int64_t> expected = {rows, cols};
    if (tensor.shape != expected)
        refuse(tensors_->label_of(name), "the tensor " + name + " should have the shape " +
                                             shape_text(expected) + ", found " + shape_text(tensor.shape));
    if (dense_type(tensor.dtype) == nullptr)
        refuse(tensors_->label_of(name),
               "the tensor " + name + " holds " + tensor.dtype +
                   " data, which is not supported; supported are F32, F16 and BF16");
    return tensor;
}

void ModuleWeights::check(const std::string& module, std::int64_t rows, std::int64_t cols) const {
    if (!has(module)) refuse(folder_, "the tensor " + module + ".weight is missing");
    (void)dense(module, rows, cols);
}

std::unique_ptr<WeightRows> ModuleWeights::open(const std::string& module, std::int64_t rows,
                                                std::int64_t cols, std::vector<float> bias) const {
    if (!has(module)) return nullptr;
    const SafeTensor& tensor = dense(module, rows, cols);
    const DenseType* type = dense_type(tensor.dtype);
    StoredMatrix matrix;
    matrix.data = tensor.data;
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.bias = std::move(bias);
    matrix.keep_alive = tensors_;
    return make_dense_rows(type->dtype, type->name, std::move(matrix));
}

}  // namespace recto
