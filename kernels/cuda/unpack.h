// Unpacks a weight's bytes, as they lie in the file, into logical planes: on the device, from and to device
// memory.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/cuda/logical_planes.h"
#include "kernels/raw_words.h"

namespace recto::cuda {

// The planes of a part, one after the other from `base` on; with a null base only `bytes` counts.
struct PlaneMemory {
    LogicalPlanes planes;
    std::size_t bytes = 0;
};
PlaneMemory planes_at(const WeightForm& form, std::int64_t rows, std::int64_t cols, std::byte* base);

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
