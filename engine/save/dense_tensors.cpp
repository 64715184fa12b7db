#include "engine/save/dense_tensors.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>

#include "engine/load/name_map.h"
#include "engine/load/refuse.h"
#include "kernels/dtype.h"

namespace recto {

namespace {

struct Part {
    TensorRole role;
    int layer = 0;
    int expert = 0;
};
struct Module {
    std::string name;  // "model.layers.3.self_attn.q_proj"
    std::vector<Part> parts;
};

std::size_t element_bytes(SaveType type) {
    return type == SaveType::f32 ? 4 : 2;
}

// False if a finite value has no finite form in `type`.
bool narrow(const float* from, std::size_t n, SaveType type, std::byte* to) {
    if (type == SaveType::f32) {
        std::memcpy(to, from, n * sizeof(float));
        return true;
    }
    bool fits = true;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint16_t bits = narrow_16(from[i], type);
        const std::uint16_t infinite = type == SaveType::f16 ? 0x7C00 : 0x7F80;
        fits = fits && ((bits & 0x7FFF) != infinite || std::isinf(from[i]));
        std::memcpy(to + 2 * i, &bits, sizeof bits);
    }
    return fits;
}

[[noreturn]] void too_large(const ModelSource& source, const std::string& name, SaveType type) {
    refuse(source.path().string(), "the tensor " + name + " has values that " + config_dtype_name(type) +
                                       " cannot hold; choose --dtype bfloat16 or float32");
}

// One row in the model's own order of inputs: act-order files deliver theirs sorted by group.
void unsort(std::span<const std::int32_t> permutation, const float* from, float* to) {
    for (std::size_t k = 0; k < permutation.size(); ++k)
        to[permutation[k]] = from[k];
}

void write_matrix(const ModelSource& source, const WeightRows& weight, const std::string& name, SaveType type,
                  const ByteSink& sink) {
    const auto rows = std::size_t(weight.rows()), cols = std::size_t(weight.cols());
    const std::size_t row_bytes = cols * element_bytes(type);
    const std::size_t at_once =
        std::clamp<std::size_t>(save_piece_bytes / std::max<std::size_t>(row_bytes, 1), 1, rows);
    const auto permutation = weight.input_permutation();
    std::vector<std::byte> piece(at_once * row_bytes);
    std::atomic<bool> fits{true};
    for (std::size_t first = 0; first < rows; first += at_once) {
        const std::size_t n = std::min(at_once, rows - first);
        for_parts(n, 1, [&](std::size_t begin, std::size_t end) {
            constexpr std::size_t step = 64;
            std::vector<float> wide(step * cols), sorted(permutation.empty() ? 0 : cols);
            for (std::size_t row = begin; row < end; row += step) {
                const std::size_t count = std::min(step, end - row);
                weight.read_f32(std::int64_t(first + row), std::int64_t(count), wide.data());
                for (std::size_t r = 0; r < count && !permutation.empty(); ++r) {
                    std::copy_n(wide.data() + r * cols, cols, sorted.data());
                    unsort(permutation, sorted.data(), wide.data() + r * cols);
                }
                if (!narrow(wide.data(), count * cols, type, piece.data() + row * row_bytes)) fits = false;
            }
        });
        if (!fits) too_large(source, name, type);
        sink(std::span(piece).first(n * row_bytes));
    }
}

void write_values(const ModelSource& source, std::span<const float> values, const std::string& name,
                  SaveType type, const ByteSink& sink) {
    std::vector<std::byte> bytes(values.size() * element_bytes(type));
    if (!narrow(values.data(), values.size(), type, bytes.data())) too_large(source, name, type);
    sink(bytes);
}

std::unique_ptr<WeightRows> weight_of(const ModelSource& source, const Part& part) {
    return source.weight(part.role, part.layer, part.expert);
}

// Modules in the order of the model. Parts of one name follow each other in it.
std::vector<Module> modules_of(ModelConfig config) {
    config.fused_tensors = huggingface_fuses(config);
    config.experts.stacked = false;
    std::vector<Module> modules;
    for_each_required_tensor(config, [&](TensorRole role, int layer, int expert) {
        std::string name = huggingface_place(role, layer, config, expert).name;
        if (modules.empty() || modules.back().name != name) modules.push_back({std::move(name), {}});
        modules.back().parts.push_back({role, layer, expert});
    });
    return modules;
}

SaveTensor norm_tensor(const ModelSource& source, const Module& module, SaveType type) {
    const Part part = module.parts.front();
    const std::string name = module.name + ".weight";
    return {name, type, expected_shape(part.role, source.config()), [=, &source](const ByteSink& sink) {
                std::vector<float> values = source.norm(part.role, part.layer);
                if (huggingface_norms_less_one(source.config()))
                    for (float& w : values)
                        w -= 1.0F;
                write_values(source, values, name, type, sink);
            }};
}

SaveTensor matrix_tensor(const ModelSource& source, const Module& module, SaveType type) {
    std::vector<std::int64_t> shape = expected_shape(module.parts.front().role, source.config());
    for (auto part = module.parts.begin() + 1; part != module.parts.end(); ++part)
        shape[0] += expected_shape(part->role, source.config())[0];
    const std::string name = module.name + ".weight";
    return {name, type, shape, [=, &source](const ByteSink& sink) {
                for (const Part& part : module.parts)
                    write_matrix(source, *weight_of(source, part), name, type, sink);
                source.release_pages();
            }};
}

SaveTensor bias_tensor(const ModelSource& source, const Module& module, SaveType type) {
    std::vector<std::int64_t> shape = {0};
    for (const Part& part : module.parts)
        shape[0] += expected_shape(part.role, source.config())[0];
    const std::string name = module.name + ".bias";
    return {name, type, shape, [=, &source](const ByteSink& sink) {
                for (const Part& part : module.parts) {
                    const auto weight = weight_of(source, part);
                    const auto bias = weight->bias();
                    std::vector<float> values(bias.begin(), bias.end());
                    values.resize(std::size_t(weight->rows()));  // none in the source: zeros
                    write_values(source, values, name, type, sink);
                }
            }};
}

}  // namespace

SavedBiases biases_of(const ModelSource& source) {
    const auto any = [&](std::initializer_list<TensorRole> roles) {
        return std::any_of(roles.begin(), roles.end(), [&](TensorRole role) {
            const auto weight = source.weight(role, 0);
            return weight && !weight->bias().empty();
        });
    };
    SavedBiases biases;
    biases.qkv = any({TensorRole::attn_q, TensorRole::attn_k, TensorRole::attn_v});
    biases.o = any({TensorRole::attn_o});
    biases.mlp = any({TensorRole::ffn_gate, TensorRole::ffn_up, TensorRole::ffn_down});
    if (biases_go_together(source.config())) biases.qkv = biases.o = biases.qkv || biases.o;
    return biases;
}

std::vector<SaveTensor> dense_tensors(const ModelSource& source, const SavedBiases& biases, SaveType type) {
    std::vector<SaveTensor> tensors;
    for (const Module& module : modules_of(source.config())) {
        const TensorRole role = module.parts.front().role;
        if (is_norm(role)) {
            tensors.push_back(norm_tensor(source, module, type));
            continue;
        }
        tensors.push_back(matrix_tensor(source, module, type));
        if (has_bias(role, biases)) tensors.push_back(bias_tensor(source, module, type));
    }
    return tensors;
}

}  // namespace recto
