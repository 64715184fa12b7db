// Descriptors of the bulk tensor copy engine (compute capability 9.0; CUDA driver API,
// cuTensorMapEncodeTiled).
#pragma once
#include <cuda.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace recto::cuda {

// Boxes of 64 columns and `box_rows` rows of a row-major 16-bit matrix, written to shared memory with the
// 128-byte swizzle; what lies outside the matrix arrives as zero. `data` and the row stride are multiples of
// 16 bytes.
CUtensorMap tile_map(const void* data, DType dtype, std::int64_t rows, std::int64_t cols,
                     std::int64_t row_stride, int box_rows);

}  // namespace recto::cuda
