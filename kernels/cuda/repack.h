// Logical planes in device memory → the tiles of tile_linear.h, once at load.
#pragma once
#include "kernels/cuda/logical_planes.h"
#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

// Which rows of a block a part fills: all, or of a gated weight its gate half, its up half, or both from one
// part.
enum class BlockHalf : std::uint8_t { whole, gate, up, both };

struct TilePlanes {  // device memory of one segment
    std::byte* data = nullptr;
    std::uint16_t* scale = nullptr;
    void* second = nullptr;
};

// Writes blocks `first_block` … of the segment that `shape` describes (kind, chunks, groups, mode, dtype,
// planes).
void repack(cudaStream_t stream, const LogicalPlanes& from, const TileWeight& shape, const TilePlanes& to,
            int first_block, BlockHalf half);

}  // namespace recto::cuda
