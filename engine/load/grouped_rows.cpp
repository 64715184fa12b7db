#include "engine/load/grouped_rows.h"

#include <cassert>
#include <numeric>

#include "engine/load/module_weights.h"
#include "engine/load/stored_rows.h"

namespace recto {

namespace {

ScaleForm scale_form(const SafeTensor& scales) {
    switch (dense_type(scales.dtype)->dtype) {
        case DType::f16:
            return ScaleForm::f16;
        case DType::bf16:
            return ScaleForm::bf16;
        default:
            return ScaleForm::f32;
    }
}

}  // namespace

int kernel_group(std::int64_t cols, std::int64_t file_group) {
    if (file_group >= cols) return int(cols);
    const std::int64_t common = std::gcd(cols, file_group);
    return common % 16 == 0 ? int(common) : 0;
}

GroupedRows::GroupedRows(const char* name, QuantInt integer, OffsetForm offset, QuantizedTensors&& tensors)
    : t_(std::move(tensors)) {
    form_.grouped = true;
    form_.integer = integer;
    form_.group_size = kernel_group(t_.cols, t_.file_group);
    form_.scale = scale_form(*t_.scales);
    form_.offset = offset;
    form_.source_name = name;
    form_.bits_per_weight = t_.bits_per_weight;
    groups_ = t_.cols / form_.group_size;
}

void GroupedRows::zero_points(std::int64_t, std::int64_t, std::uint8_t*) const {
    assert(!"a format with zero points reads them");
}

void GroupedRows::offsets(std::int64_t, std::int64_t, float*) const {
    assert(!"a format with offsets reads them");
}

void GroupedRows::read_dense(std::int64_t, std::int64_t, void*) const {
    assert(!"a grouped weight has no dense rows");
}

void GroupedRows::read_columns(const SafeTensor& tensor, std::int64_t first_row, std::int64_t n,
                               float* out) const {
    const DType dtype = dense_type(tensor.dtype)->dtype;
    const std::int64_t count = t_.file_groups();
    std::vector<float> line(std::size_t(n), 0.0F);
    for (std::int64_t g = 0; g < count; ++g) {
        const auto at = std::size_t(g * t_.rows + first_row) * dtype_bytes(dtype);
        widen_to_f32(dtype, tensor.data.data() + at, n, line.data());
        for (std::int64_t r = 0; r < n; ++r)
            out[r * count + g] = line[std::size_t(r)];
    }
}

RawWeight GroupedRows::raw_as(RawLayout layout) const {
    const auto plane = [](const SafeTensor* tensor) {
        RawPlane p;
        if (tensor == nullptr || tensor->data.empty()) return p;
        p.data = tensor->data.data();
        p.lines = tensor->shape[0];
        p.line_bytes = p.stride = std::int64_t(tensor->data.size()) / p.lines;
        return p;
    };
    RawWeight raw;
    raw.layout = layout;
    raw.packed = plane(t_.packed);
    raw.scales = plane(t_.scales);
    raw.zeros = plane(t_.zeros);
    raw.scale_dtype = dense_type(t_.scales->dtype)->dtype;
    raw.bits = t_.bits;
    raw.file_group = t_.file_group;
    raw.zeros_less_one = t_.zeros_v1;
    raw.zero_bytes = t_.zeros != nullptr && t_.zeros->dtype == "I8";
    raw.permutation = t_.permutation;
    raw.keep_alive = t_.keep_alive;
    return raw;
}

void GroupedRows::read(std::int64_t first_row, std::int64_t n, const WeightPlanes& out) const {
    assert(first_row >= 0 && n >= 0 && first_row + n <= t_.rows);
    assert(!out.super_scale && !out.scale_factor && !out.super_offset && !out.offset_factor);
    if (out.q != nullptr) {
        if (t_.permutation.empty()) {
            codes(first_row, n, out.q);
        } else {
            std::vector<std::uint8_t> natural(std::size_t(n * t_.cols));
            codes(first_row, n, natural.data());
            for (std::int64_t r = 0; r < n; ++r) {
                const std::uint8_t* from = natural.data() + r * t_.cols;
                std::uint8_t* to = out.q + r * t_.cols;
                for (std::int64_t k = 0; k < t_.cols; ++k)
                    to[k] = from[t_.permutation[std::size_t(k)]];
            }
        }
    }
    const std::int64_t file_groups = t_.file_groups();
    const auto count = std::size_t(n * file_groups);
    // Group j of a row lies in group j · group_size / file_group of the file.
    const auto spread = [&](const auto& from, auto* to) {
        for (std::int64_t r = 0; r < n; ++r)
            for (std::int64_t j = 0; j < groups_; ++j)
                to[r * groups_ + j] =
                    from[std::size_t(r * file_groups + j * form_.group_size / t_.file_group)];
    };
    const bool zero_point = form_.offset == OffsetForm::zero_point;
    std::vector<float> scale;
    if (out.scale != nullptr || (out.offset != nullptr && zero_point)) {
        scale.resize(count);
        scales(first_row, n, scale.data());
        if (out.scale != nullptr) spread(scale, out.scale);
    }
    if (zero_point && (out.zero_point != nullptr || out.offset != nullptr)) {
        std::vector<std::uint8_t> zero(count);
        zero_points(first_row, n, zero.data());
        if (out.zero_point != nullptr) spread(zero, out.zero_point);
        if (out.offset != nullptr) {
            for (std::size_t i = 0; i < count; ++i)
                scale[i] *= -float(zero[i]);
            spread(scale, out.offset);
        }
    } else if (out.offset != nullptr) {
        std::vector<float> offset(count, 0.0F);
        if (form_.offset != OffsetForm::none) offsets(first_row, n, offset.data());
        spread(offset, out.offset);
    }
}

void GroupedRows::read_f32(std::int64_t first_row, std::int64_t n, float* out) const {
    std::vector<std::uint8_t> q(std::size_t(n * t_.cols)), zero(std::size_t(n * groups_));
    std::vector<float> scale(std::size_t(n * groups_)), offset(std::size_t(n * groups_));
    WeightPlanes planes{q.data(), scale.data()};
    if (form_.offset == OffsetForm::zero_point)
        planes.zero_point = zero.data();
    else
        planes.offset = offset.data();
    read(first_row, n, planes);
    for (std::int64_t i = 0; i < n * groups_; ++i) {
        const auto g = std::size_t(i);
        for (std::int64_t k = i * form_.group_size; k < (i + 1) * form_.group_size; ++k) {
            const int code =
                form_.integer == QuantInt::i8 ? int(std::int8_t(q[std::size_t(k)])) : int(q[std::size_t(k)]);
            if (form_.offset == OffsetForm::zero_point)
                out[k] = scale[g] * float(code - int(zero[g]));
            else if (form_.offset == OffsetForm::none)
                out[k] = scale[g] * float(code);
            else
                out[k] = scale[g] * float(code) + offset[g];
        }
    }
}

}  // namespace recto
