// Matrix products over tiled weights: the layout that both tensor-core kernels read, and what a launch needs.
//
// A segment is a run of a weight's output rows that share one stored form. Its rows are cut into blocks of
// 64, its inputs padded to a multiple of 128. Quantized integers lie as
//     [block][k tile of 64][warp w of 4][lane][16 bytes]          4 bit: 2,048 bytes a tile
//     [block][k tile of 64][warp w][half h of 2][lane][16 bytes]  8 bit: 4,096 bytes a tile
// so that a lane's 16 bytes are its operands of four (8 bit: two) successive m16·k16 fragments of the tensor
// cores: with lane = 4 g + t, rows 16 w + g and 16 w + g + 8 at k = 2 t, 2 t + 1, 2 t + 8, 2 t + 9 (PTX ISA,
// "matrix fragments for mma.m16n8k16"; wgmma's A is the same). A 4-bit word holds, from bit 0, the pair's
// first elements of (row g, 2t) (row g + 8, 2t) (row g, 2t + 8) (row g + 8, 2t + 8) and in bits 16 … 31 their
// second ones: one mask gives a pair in the two halves of a register (the layout and the conversion by magic
// numbers follow the idea of Kim et al., "Who says elephants can't run" (2022), and Frantar et al., "MARLIN"
// (2024)). Scales lie as [block][group][64 rows]: what one stage of a pipeline needs is contiguous.
//
// A block of a gated weight holds 32 gate rows, then the 32 up rows that belong to them.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/tile_cut.h"

namespace recto::cuda {

// What is subtracted from q, or added to scale · q.
enum class SecondPlane : std::uint8_t { none, zero_u8, offset_16 };

struct TileWeight {  // device pointers
    TileKind kind = TileKind::dense;
    DType dtype = DType::f16;  // of the activations and of dense weights
    bool gated = false;
    int outputs = 0;  // valid outputs of the epilogue: rows, or rows / 2 when gated
    int rows = 0;     // of the weight
    int cols = 0;     // inputs
    int blocks = 0;   // of 64 rows
    int chunks = 0;   // of 128 inputs

    const void* data = nullptr;  // tiles, or dense [rows, cols] row-major
    // Quantized only. Groups of 16, 32, 64 or a multiple of 128 inputs (the last may be cut short).
    const std::uint16_t* scale = nullptr;
    const void* second = nullptr;
    bool planes_bf16 = false;  // scale and offset are bfloat16, else FP16
    SecondPlane mode = SecondPlane::none;
    int zero = 0;  // subtracted from q where mode is not zero_u8
    int group_size = 128;
    int groups = 0;  // stored a block
    // What products of many rows round weight and activations to: f8_e4m3 or i8 (eight_bit.h); f32: nothing.
    DType eight = DType::f32;
    const float* row_scale = nullptr;  // [rows] of what `eight` makes of the weight, in logical order

    RECTO_HOST_DEVICE int groups_a_chunk() const { return group_size >= chunk_k ? 1 : chunk_k / group_size; }
    // 1, or more where groups are longer than 128.
    int chunks_a_group() const { return group_size > chunk_k ? group_size / chunk_k : 1; }
    // log2 of a group's fragments of 16 inputs, at most 3.
    int group_shift() const {
        int shift = 0;
        while (shift < 3 && (16 << shift) < group_size)
            ++shift;
        return shift;
    }
};

struct TileOutput {
    Tensor out;  // [x rows, outputs]
    Epilogue epilogue = Epilogue::store;
    const float* bias = nullptr;  // [rows] of the segment, in logical order
};

// Room for sums of work that several blocks share. Counters are zero between launches.
struct LinearScratch {
    float* partials = nullptr;
    std::size_t partial_floats = 0;
    unsigned* counters = nullptr;
    std::size_t counter_count = 0;
};

inline TileShape choose_tile(const TileWeight& w, std::int64_t rows, int multiprocessors) {
    return choose_cut({w.kind, w.blocks, w.chunks, rows, w.gated}, multiprocessors);
}

// x [rows, cols] of weight.dtype; rows 16 bytes apart at least. sm_90a.
void hopper_linear(cudaStream_t stream, Tensor x, const TileWeight& weight, const TileOutput& output,
                   const LinearScratch& scratch, const TileShape& shape);

}  // namespace recto::cuda
