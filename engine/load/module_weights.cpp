#include "engine/load/module_weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/load/name_map.h"
#include "engine/load/quantized_module.h"
#include "engine/load/refuse.h"
#include "engine/load/stored_rows.h"

namespace recto {

namespace {

// Tensors by which other packings, none of which is read, give themselves away.
struct Foreign {
    const char* tensor;
    const char* name;
};
constexpr Foreign foreign[] = {
    {".B", "Marlin"}, {".q_weight", "EXL2"}, {".trellis", "EXL3"}, {".W_q", "HQQ"}};

// "1 linear is", "3 linears are"
std::string counted(std::size_t n) {
    return n == 1 ? "1 linear is" : std::to_string(n) + " linears are";
}

}  // namespace

const DenseType* dense_type(const std::string& name) {
    static constexpr DenseType types[] = {{"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}};
    for (const auto& type : types)
        if (name == type.name) return &type;
    return nullptr;
}

ModuleWeights::ModuleWeights(std::shared_ptr<const FolderTensors> tensors, std::string folder,
                             QuantizationConfig config)
    : tensors_(std::move(tensors)), folder_(std::move(folder)), config_(std::move(config)) {}

bool ModuleWeights::has(const std::string& module) const {
    return tensors_->find(module + ".weight") != nullptr || tensors_->find(module + ".qweight") != nullptr ||
           tensors_->find(module + ".weight_packed") != nullptr;
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

void ModuleWeights::check(const std::string& module, std::int64_t rows, std::int64_t cols) {
    if (!checked_names_.insert(module).second) return;
    if (const auto found = find_quantized(*tensors_, config_, module, rows, cols)) {
        checked_.push_back({module, rows, cols, found->describe(), found->method(),
                            found->tensors.packed->data.size(), found->order != nullptr});
        return;
    }
    if (!has(module)) {
        for (const auto& other : foreign)
            if (tensors_->find(module + other.tensor) != nullptr)
                refuse(tensors_->label_of(module + other.tensor),
                       "the tensor " + module + other.tensor + " is of weights packed by " + other.name +
                           ", which is not supported; choose a copy of the model in AWQ, GPTQ or "
                           "compressed-tensors");
        refuse(folder_, "the tensor " + module + ".weight is missing");
    }
    const SafeTensor& tensor = dense(module, rows, cols);
    checked_.push_back({module, rows, cols, tensor.dtype, QuantMethod::none, tensor.data.size(), false});
}

std::unique_ptr<WeightRows> ModuleWeights::open(const std::string& module, std::int64_t rows,
                                                std::int64_t cols, std::vector<float> bias) const {
    if (auto found = find_quantized(*tensors_, config_, module, rows, cols)) {
        read_contents(*tensors_, config_, *found);
        found->tensors.bias = std::move(bias);
        found->tensors.keep_alive = tensors_;
        return make_quantized_rows(std::move(*found));
    }
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

std::int64_t ModuleWeights::parameters() const {
    std::set<std::string> quantized;
    std::int64_t all = 0;
    for (const auto& one : checked_)
        if (one.method != QuantMethod::none && quantized.insert(one.module).second)
            all += one.rows * one.cols;
    for (const SafeTensor* tensor : tensors_->tensors()) {
        const auto dot = tensor->name.rfind('.');
        const bool part = dot != std::string::npos && quantized.contains(tensor->name.substr(0, dot)) &&
                          tensor->name.substr(dot) != ".bias";
        std::int64_t n = part ? 0 : 1;
        for (const auto dim : tensor->shape)
            n *= dim;
        all += n;
    }
    return all;
}

const ModuleWeights::Checked* ModuleWeights::main_form() const {
    std::map<std::string, std::uint64_t> bytes;
    const Checked* main = nullptr;
    for (const auto& one : checked_) {
        if (one.method == QuantMethod::none) continue;
        bytes[one.form] += one.bytes;
    }
    for (const auto& one : checked_)
        if (one.method != QuantMethod::none && (main == nullptr || bytes[one.form] > bytes[main->form]))
            main = &one;
    return main;
}

QuantMethod ModuleWeights::method() const {
    const Checked* main = main_form();
    return main == nullptr ? QuantMethod::none : main->method;
}

// A layer's worth of permutations tells: quantizers permute all or none.
bool ModuleWeights::act_order() const {
    int looked_at = 0;
    for (const auto& one : checked_) {
        if (!one.ordered || ++looked_at > 8) continue;
        auto found = find_quantized(*tensors_, config_, one.module, one.rows, one.cols);
        read_contents(*tensors_, config_, *found);
        if (!found->tensors.permutation.empty()) return true;
    }
    return false;
}

// Among the linears; embeddings seldom are quantized and go without saying.
std::string ModuleWeights::not_quantized() const {
    std::string head;
    std::size_t others = 0;
    for (const auto& one : checked_) {
        if (one.method != QuantMethod::none || one.module.find("embed") != std::string::npos) continue;
        if (one.module.ends_with("lm_head"))
            head = "lm_head " + one.form;
        else
            ++others;
    }
    if (others == 0) return head;
    return head + (head.empty() ? "" : ", ") + counted(others) + " not quantized";
}

std::string ModuleWeights::describe() const {
    const Checked* main = main_form();
    if (main == nullptr) return {};
    std::string text = main->form + (act_order() ? ", act-order" : "");
    if (const std::string rest = not_quantized(); !rest.empty()) text += " (" + rest + ")";
    const bool mixed = std::any_of(checked_.begin(), checked_.end(), [&](const Checked& one) {
        return one.method != QuantMethod::none && one.form != main->form;
    });
    return mixed ? text + " (mixed)" : text;
}

void ModuleWeights::warn_of_config(std::vector<std::string>& all) const {
    if (config_.label.empty()) return;
    std::map<std::string, std::pair<std::string, std::size_t>>
        disagreeing;  // what is found → where first, how often
    const auto add = [&](const std::string& what, const Checked& where) {
        auto& entry = disagreeing[what];
        if (entry.second++ == 0) entry.first = where.module;
    };
    for (const auto& one : checked_) {
        if (one.method == QuantMethod::none) continue;
        const auto found = find_quantized(*tensors_, config_, one.module, one.rows, one.cols);
        if (config_.method && one.method != *config_.method)
            add(std::string("says ") + method_name(*config_.method) + ", but its tensors are those of " +
                    method_name(one.method),
                one);
        else if (config_.awq_layout && found->layout != *config_.awq_layout && one.method == QuantMethod::awq)
            add("names another AWQ version, but its tensors are " + found->describe(), one);
        else if (config_.bits && found->tensors.bits != *config_.bits)
            add("says " + std::to_string(*config_.bits) + " bits, but its tensors have " +
                    std::to_string(found->tensors.bits),
                one);
        else if (config_.group_size && found->tensors.file_group != *config_.group_size && !found->whole_rows)
            add("says \"group_size\" " + std::to_string(*config_.group_size) + ", but its tensors have " +
                    std::to_string(found->tensors.file_group),
                one);
        if (found->layout == quantized::Layout::gptq && config_.method == QuantMethod::gptq &&
            config_.symmetric.value_or(false)) {
            QuantizedModule read = *found;
            read_contents(*tensors_, config_, read);
            if (read.tensors.zeros_v1 == config_.gptq_v2)
                add(std::string("says GPTQ version ") + (config_.gptq_v2 ? "2" : "1") +
                        ", but its zero points are those of the other",
                    one);
        }
    }
    for (const auto& [what, where] : disagreeing)
        all.push_back(config_.label + ": of " + where.first +
                      (where.second > 1 ? " and " + std::to_string(where.second - 1) + " more" : "") +
                      " it " + what + ", and they count");
}

void ModuleWeights::warn_of_lists(std::vector<std::string>& all) const {
    const Checked* first[2] = {nullptr, nullptr};
    std::size_t count[2] = {0, 0};
    for (const auto& one : checked_) {
        const bool quantized = one.method != QuantMethod::none;
        const auto expected = config_.expects_quantized(one.module);
        if (expected && *expected != quantized && count[quantized]++ == 0) first[quantized] = &one;
    }
    for (const bool quantized : {false, true})
        if (count[quantized] > 0)
            all.push_back(config_.label + ": it says that " + first[quantized]->module +
                          (count[quantized] > 1
                               ? " and " + std::to_string(count[quantized] - 1) + " more are "
                               : " is ") +
                          (quantized ? "not quantized" : "quantized") +
                          ", but the tensors say otherwise, and they count");
}

// A packer that takes 1 from each zero point apart, as AutoGPTQ's does, turns 0 and all above it in the word
// into 15.
void ModuleWeights::warn_of_zero_points(std::vector<std::string>& all) const {
    if (config_.method != QuantMethod::gptq || config_.gptq_v2 || config_.symmetric.value_or(true) ||
        config_.sound_zero_points || config_.bits.value_or(4) != 4)
        return;
    for (const auto& one : checked_) {
        const auto found = find_quantized(*tensors_, config_, one.module, one.rows, one.cols);
        if (!found || found->layout != quantized::Layout::gptq || found->tensors.bits != 4) continue;
        const SafeTensor& zeros = *found->tensors.zeros;
        for (std::size_t at = 0; at < zeros.data.size(); at += 4) {
            const std::uint64_t nibbles = spread_nibbles(load_u32(zeros.data.data() + at));
            // A byte of 15 is the only one that 1 carries into bit 4.
            if (((nibbles + 0x0101010101010101ULL) & 0x1010101010101010ULL) == 0) continue;
            all.push_back(
                tensors_->label_of(zeros.name) + ": the tensor " + zeros.name +
                " may hold zero points that its packer spoilt, as AutoGPTQ did to zero points of 0; if "
                "the model answers badly, choose a copy that GPTQModel made");
            return;
        }
    }
}

void ModuleWeights::warn_of_dense_copies(std::vector<std::string>& all) const {
    const Checked* first = nullptr;
    std::size_t count = 0;
    for (const auto& one : checked_)
        if (one.method != QuantMethod::none && tensors_->find(one.module + ".weight") != nullptr &&
            count++ == 0)
            first = &one;
    if (first == nullptr) return;
    all.push_back(tensors_->label_of(first->module + ".weight") + ": " + first->module +
                  (count > 1 ? " and " + std::to_string(count - 1) + " more have" : " has") +
                  " a dense weight beside the quantized one; the quantized one is used");
}

std::vector<std::string> ModuleWeights::warnings() const {
    std::vector<std::string> all = config_.warnings;
    warn_of_config(all);
    warn_of_lists(all);
    warn_of_zero_points(all);
    warn_of_dense_copies(all);
    return all;
}

}  // namespace recto
