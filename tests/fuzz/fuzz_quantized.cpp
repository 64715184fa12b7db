// A quantized module: rows, columns, the configuration up to a zero byte, a safetensors file. Any bytes are
// refused with a sentence or read in the logical form without leaving them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/load/module_weights.h"
#include "kernels/error.h"

using namespace recto;

namespace {

void read_all(const WeightRows& weight) {
    const auto cells = std::size_t(weight.rows() * weight.cols());
    std::vector<float> values(cells);
    weight.read_f32(0, weight.rows(), values.data());
    weight.read_f32(weight.rows() - 1, 1, values.data());
    const WeightForm& form = weight.form();
    if (!form.grouped) return;
    // What packers build on.
    if (form.group_size < 1 || weight.cols() % form.group_size != 0 ||
        (form.group_size != weight.cols() && form.group_size % 16 != 0))
        __builtin_trap();
    std::vector<bool> seen(weight.input_permutation().size());
    for (const std::int32_t input : weight.input_permutation()) {
        if (seen.at(std::size_t(input))) __builtin_trap();
        seen[std::size_t(input)] = true;
    }
    const auto groups = cells / std::size_t(form.group_size);
    std::vector<std::uint8_t> q(cells), zero(groups);
    std::vector<float> scale(groups), offset(groups);
    WeightPlanes planes{q.data(), scale.data(), offset.data()};
    if (form.offset == OffsetForm::zero_point) planes.zero_point = zero.data();
    weight.read(0, weight.rows(), planes);
    const bool nibbles = form.integer == QuantInt::u4;
    const auto fits = [](std::uint8_t value) { return value < 16; };
    if (nibbles && !(std::all_of(q.begin(), q.end(), fits) && std::all_of(zero.begin(), zero.end(), fits)))
        __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    const std::int64_t rows = data[0] + 1, cols = data[1] + 1;
    const std::uint8_t* end = std::find(data + 2, data + size, 0);
    if (end == data + size) return 0;
    const std::string_view json(reinterpret_cast<const char*>(data + 2), std::size_t(end - data - 2));
    const std::span file(reinterpret_cast<const std::byte*>(end + 1), std::size_t(data + size - end - 1));
    try {
        ModuleWeights modules(std::make_shared<const FolderTensors>(file, "fuzz.safetensors"), "fuzz",
                              read_separate_quantization_config(json, "config.json"));
        modules.check("layers.0.m", rows, cols);
        const auto weight = modules.open("layers.0.m", rows, cols);
        if (weight == nullptr || weight->rows() != rows || weight->cols() != cols) __builtin_trap();
        read_all(*weight);
        (void)modules.describe();
        (void)modules.warnings();
        (void)modules.parameters();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
    return 0;
}
