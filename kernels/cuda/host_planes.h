// Logical planes by way of the host: what WeightRows::read gives, narrowed to the planes' widths.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/cuda/logical_planes.h"
#include "kernels/cuda/staging.h"

namespace recto::cuda {

// Bytes that read_planes writes for a row.
std::size_t host_plane_bytes(const WeightForm& form, std::int64_t cols);

// Rows first … first + n − 1 into `slot`, and for each plane's part the place in `planes` where it belongs.
void read_planes(const WeightRows& rows, std::int64_t first, std::int64_t n, const LogicalPlanes& planes,
                 std::byte* slot, std::vector<StagedPiece>& pieces);

// Which plane in device memory differs from what read_planes gives, and where; empty: none. Waits for
// `stream`.
std::string compare_with_read(const WeightRows& rows, const LogicalPlanes& planes, cudaStream_t stream);

}  // namespace recto::cuda
