// What the loader gives a packer: one grouped part of a weight, all of its rows, unpacked into the logical
// form of kernels/weight.h and lying in device memory. The packer's kernels rearrange it into the order that
// they read.
#pragma once
#include <cstdint>

#include "kernels/both.h"
#include "kernels/weight.h"

namespace recto::cuda {

// Device pointers, 256-byte aligned, row-major without padding; G = groups().
//     w = scale · (q − zero_point)      where zero_point is set
//     w = scale · q + offset            where offset is set
//     w = scale · q                     where neither is
// Act-order files: element k of a row belongs to input WeightRows::input_permutation()[k], as in
// WeightRows::read.
struct LogicalPlanes {
    std::int64_t rows = 0, cols = 0;
    QuantInt integer = QuantInt::u4;
    int group_size = 0;  // divides cols
    const std::uint8_t* q =
        nullptr;  // u4: [rows, cols / 2], element 2j in the low nibble; u8, i8: [rows, cols]

    // In the width of the file; composed scales and offsets as their exact FP32 product.
    DType scale_dtype = DType::f16;            // f16, bf16, f32
    const void* scale = nullptr;               // [rows, G]
    const std::uint8_t* zero_point = nullptr;  // [rows, G], OffsetForm::zero_point only
    DType offset_dtype = DType::f16;           // f16, bf16, f32
    const void* offset = nullptr;              // [rows, G], OffsetForm::f16, f16_times_u6 and f32

    // The parts of composed ones (ScaleForm::f16_times_*, OffsetForm::f16_times_u6), else null.
    const std::uint16_t* super_scale = nullptr;  // [rows, cols / 256] FP16
    const std::int8_t* scale_factor = nullptr;   // [rows, G]
    const std::uint16_t* super_offset =
        nullptr;  // [rows, cols / 256] FP16 of dmin: offset = −(dmin · factor)
    const std::uint8_t* offset_factor = nullptr;  // [rows, G]

    RECTO_BOTH std::int64_t groups() const { return cols / group_size; }
};

}  // namespace recto::cuda
