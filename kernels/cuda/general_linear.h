// Matrix products over tiled weights by mma.sync and cp.async: what cards of compute capability 8.0 and newer
// take where they do not have hopper_linear (Ampere, Ada, Blackwell; Hopper in a build without sm_90a).
// Unpacking to 16-bit rows is every card's.
#pragma once
#include "kernels/cuda/general_cut.h"
#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

inline GeneralShape choose_general_tile(const TileWeight& w, std::int64_t rows, int multiprocessors) {
    return choose_general_cut(w.blocks, w.chunks, rows, multiprocessors);
}

// What the loop needs beside the weight, worked out by the host.
struct GeneralCut {
    int groups_a_chunk = 1;  // stored for 128 inputs
    int chunks_a_group = 1;  // or more where groups are longer than 128
    int group_shift = 3;     // log2 of a group's fragments of 16 inputs, at most 3
    std::uint32_t stage_bytes = 0;
};

// x [rows, cols] of weight.dtype, rows 16 bytes apart at least and aligned so. sm_80.
void general_linear(cudaStream_t stream, Tensor x, const TileWeight& weight, const TileOutput& output,
                    const LinearScratch& scratch, const GeneralShape& shape);

// Blocks [first_block, first_block + blocks) of a quantized weight as 16-bit rows of weight.dtype, in logical
// order [dequantized_rows(…), cols]; of a gated weight the gate rows, then the up rows that belong to them.
int dequantized_rows(const TileWeight& weight, int first_block, int blocks);
void dequantize_tiles(cudaStream_t stream, const TileWeight& weight, int first_block, int blocks, void* to);

}  // namespace recto::cuda
