// A decode program: many operations of a step as one kernel that stays on the card, for few rows.
//
// With one sequence a layer's kernels are shorter than what surrounds them: starting, the first reads, adding
// sums, ending. Here one block of threads a multiprocessor walks a list of operations, with a barrier over
// the whole grid between them, and the stream of weights goes on across the barriers: a warp that has asked
// for the last of one product's weights asks for the next product's, which depend on nothing (the idea of a
// "megakernel": Spector et al., "Look Ma, No Bubbles!", Hazy Research 2025).
//
// Plain structs here: the recorder (program_recorder.h) fills them, the kernel (program_kernel.cuh) reads
// them as launch parameters, so that a captured graph keeps its own copy.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/program_room.h"
#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

struct ProgramProduct {
    const void* data;            // TileWeight's
    const std::uint16_t* scale;  // FP16
    const void* second;
    const float* bias;  // [rows] or null
    const void* x;      // [rows, cols] 16-bit; with `norm` FP32
    const float* norm;  // [cols]: x is x / rms(x) · norm, rounded to 16 bits
    void* normed;       // [rows, cols]: where that goes too, or null
    void* out;
    int x_stride, normed_stride, out_stride;  // elements
    float eps;
    int outputs, cols, chunks, groups, chunks_a_group, zero;
    ProgramCut cut;
    SecondPlane mode;
    Epilogue epilogue;
    DType out_dtype;
};

// Rope, KV write and attention of the step's rows, each its sequence's only one.
struct ProgramAttention {
    const std::uint16_t* qkv;
    const float* table;  // [rows, rotary] cos, then sin
    std::uint16_t* out;
    void* k;  // KvView's
    void* v;
    long long block_stride;
    int qkv_stride, table_stride, out_stride;
    int rotary, kv_heads, group, head_groups, block_size, window;
    float scale, softcap;
};

struct ProgramStep {
    enum class Kind : std::uint8_t { product, attention } kind;
    union {
        ProgramProduct product;
        ProgramAttention attention;
    };
};

struct Program {
    ProgramStep steps[most_program_steps];
    BatchView batch;
    AttentionWorkspace workspace;
    unsigned* barrier;  // {arrivals, blocks that have left}; 0 between launches
    int count, rows;
    int shared_bytes;                            // that a block may have
    int step_bytes, x_bytes, ring_bytes, depth;  // ProgramLayout's
};
static_assert(sizeof(Program) <= 32764);

// What a launch of these steps needs.
struct ProgramShape {
    DType activation;
    DType cache;
    int head_dim;
    bool operator==(const ProgramShape&) const = default;
};
// Whether the driver takes launches with this much: CUDA 12.1 is the first.
bool wide_parameters();
// Whether a kernel for it is compiled.
bool program_serves(const ProgramShape& shape);
// Of a program whose layout fits.
void launch_program(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                    int multiprocessors);

// One file an activation type.
void program_half(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                  int multiprocessors);
void program_bf16(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                  int multiprocessors);

}  // namespace recto::cuda
