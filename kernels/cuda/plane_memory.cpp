#include "kernels/cuda/plane_memory.h"

#include <cassert>
#include <type_traits>

namespace recto::cuda {

namespace {

std::size_t aligned(std::size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

}  // namespace

PlaneMemory planes_at(const WeightForm& form, std::int64_t rows, std::int64_t cols, std::byte* base) {
    assert(form.grouped && (form.integer != QuantInt::u4 || cols % 2 == 0));
    PlaneMemory m;
    LogicalPlanes& p = m.planes;
    p.rows = rows;
    p.cols = cols;
    p.integer = form.integer;
    p.group_size = form.group_size;
    const auto take = [&](auto*& plane, std::int64_t count, std::size_t width) {
        plane = reinterpret_cast<std::remove_reference_t<decltype(plane)>>(base ? base + m.bytes : nullptr);
        m.bytes += aligned(std::size_t(count) * width);
    };
    const std::int64_t groups = rows * p.groups(), supers = rows * (cols / super_group);
    take(p.q, form.integer == QuantInt::u4 ? rows * cols / 2 : rows * cols, 1);
    p.scale_dtype = form.scale == ScaleForm::f16    ? DType::f16
                    : form.scale == ScaleForm::bf16 ? DType::bf16
                                                    : DType::f32;
    take(p.scale, groups, dtype_bytes(p.scale_dtype));
    if (form.scale == ScaleForm::f16_times_u6 || form.scale == ScaleForm::f16_times_i8) {
        take(p.super_scale, supers, 2);
        take(p.scale_factor, groups, 1);
    }
    if (form.offset == OffsetForm::zero_point) {
        take(p.zero_point, groups, 1);
    } else if (form.offset != OffsetForm::none) {
        p.offset_dtype = form.offset == OffsetForm::f16 ? DType::f16 : DType::f32;
        take(p.offset, groups, dtype_bytes(p.offset_dtype));
    }
    if (form.offset == OffsetForm::f16_times_u6) {
        take(p.super_offset, supers, 2);
        take(p.offset_factor, groups, 1);
    }
    return m;
}

}  // namespace recto::cuda
