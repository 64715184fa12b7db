// Unpacks a weight's bytes, as they lie in the file, into logical planes: on the device, from and to device
// memory.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/cuda/logical_planes.h"
#include "kernels/raw_words.h"

namespace recto::cuda {

// A RawWeight whose planes lie in device memory without gaps, rows in logical order.
struct RawView {
    RawLayout layout = RawLayout::dense;
    const std::byte* blocks = nullptr;          // [rows][blocks of a row], of block layouts
    raw::WordView words;                        // of word layouts
    std::int64_t file_group = 0;                // of word layouts
    const std::int32_t* permutation = nullptr;  // [cols], or null
};
void unpack(cudaStream_t stream, const RawView& raw, const LogicalPlanes& out);

}  // namespace recto::cuda
