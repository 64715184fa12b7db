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

// A plane of a tiled weight [block][row][row_bytes]: boxes of `box_rows` successive rows of `box_blocks`
// blocks; what lies past the last row or block arrives as zero. `data` and `row_bytes` are multiples of 16,
// `row_bytes` at most 2,048.
CUtensorMap block_map(const void* data, int row_bytes, int rows, int blocks, int box_rows, int box_blocks);

// A plane of a tiled weight [block][row][quarter of 4][piece]: boxes of one quarter's pieces of `box_rows`
// successive rows; rows past the last arrive as zero. `data` and `piece_bytes` are multiples of 16.
CUtensorMap slab_map(const void* data, int piece_bytes, int rows, int blocks, int box_rows);

}  // namespace recto::cuda
