// Where the logical planes of a part lie in one piece of memory.
#pragma once
#include <cstddef>

#include "kernels/cuda/logical_planes.h"

namespace recto::cuda {

// One plane after the other from `base` on; with a null base only `bytes` counts.
struct PlaneMemory {
    LogicalPlanes planes;
    std::size_t bytes = 0;
};
PlaneMemory planes_at(const WeightForm& form, std::int64_t rows, std::int64_t cols, std::byte* base);

}  // namespace recto::cuda
