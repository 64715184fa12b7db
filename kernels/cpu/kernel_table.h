// The inner kernels of one instruction set, as plain functions. CpuBackend cuts operations into tiles and row
// panels and calls them; what they compute is the same, bit for bit, in every set.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/packed.h"

namespace recto::cpu {

// Activations of up to max_rows rows, side by side, so that a kernel reaches all of them from one pointer.
//   int8:  a chunk after the other: [rows][chunk] int8, [rows] scale, [rows] scale · Σ int8, [rows] −128 · Σ
//   int8 FP32:  [cols padded to 32][rows]
inline std::size_t int8_panel_bytes(std::int64_t chunks, int chunk, int rows) {
    return std::size_t(chunks) * std::size_t(rows) * std::size_t(chunk + 12);
}
inline std::size_t float_panel_bytes(std::int64_t cols, int rows) {
    return std::size_t((cols + 31) / 32 * 32) * std::size_t(rows) * sizeof(float);
}

struct GroupedTile {
    const std::uint8_t* values = nullptr;
    const std::uint8_t* bytes = nullptr;  // AMX: the values, one byte each
    const float* scale = nullptr;         // [groups][16]
    const float* offset = nullptr;        // [groups][16]; not read by kernels without offset
    std::int64_t groups = 0;
    std::int64_t chunks_per_group = 0;
    std::int64_t chunks = 0;
    std::int64_t group_size = 0;  // floating kernels
    // int8 kernels: the tile is a later run of groups, whose sums go on from `out`.
    bool continues = false;
    const std::uint8_t* ahead = nullptr;  // int8 kernels: memory to ask for meanwhile, or null
};

// out [rows of the panel][16]
using TileKernel = void (*)(const GroupedTile& tile, const void* panel, float* out);
using DenseKernel = void (*)(const void* values, std::int64_t cols, const float* panel, float* out);

struct TileVariant {
    bool nibbles = true;     // 4-bit values
    bool is_signed = false;  // 8-bit values kept as value + 128
    bool offset = true;
    int chunk = 32;         // int8 activations
    bool floating = false;  // FP32 activations
};

// 256 positions of one KV head against n query vectors: softmax numerators, their sum and maximum.
constexpr int partition_tokens = 256;
constexpr int kv_unit = 8;      // slots that lie together whatever the block size
constexpr int units_ahead = 8;  // 8 KiB at 64 dimensions in FP16: what 40 GB/s bring in 200 ns

struct PartitionArgs {
    const float* const* q = nullptr;  // [n] query vectors of head_dim
    const int* lo = nullptr;          // [n] visible positions of the partition: lo ≤ i < hi, lo < hi
    const int* hi = nullptr;
    int n = 0;
    int head_dim = 0;
    int block_size = 0;                    // elements between K's rows of one dimension
    const void* const* k_units = nullptr;  // [32] K [head_dim][8 slots] of 8 positions
    const void* const* v_units = nullptr;  // [32] V [8 slots][head_dim]
    // Runs of 8 · head_dim elements in the order in which they are read, to be asked for ahead of time: K of
    // the tiles that are seen, V of the same, and `units_ahead` of what the worker reads next. Null: the
    // products outweigh the reads.
    const void* const* fetch = nullptr;
    float scale = 1, softcap = 0;
    float* scores = nullptr;       // [n][256] scratch
    float* out = nullptr;          // [n][head_stride]
    std::int64_t head_stride = 0;  // head_dim rounded up to 16
    float* maximum = nullptr;      // [n]
    float* sum = nullptr;          // [n]
};
using PartitionKernel = void (*)(const PartitionArgs&);

struct KernelTable {
    const char* name = "";
    int max_rows = 1;   // of a panel
    int int8_rows = 1;  // the same where all of a weight's parts take int8 activations
    // The largest panel a kernel exists for that is not wider than needed: 1, 2, 4, 6, 8, 12 rows.
    TileKernel (*tile)(const TileVariant& variant, int panel_rows) = nullptr;
    DenseKernel (*dense)(DType dtype, int panel_rows) = nullptr;
    void (*planes)(const PackedPart& part, const std::uint8_t* tile, std::int64_t first_group,
                   std::int64_t last_group, float* scale, float* offset) = nullptr;
    void (*prefetch)(const std::uint8_t* p, std::size_t bytes) = nullptr;

    // Row r of a panel. `order` is the input permutation or null. Columns beyond `cols` are zero.
    void (*quantize)(const float* x, const std::int32_t* order, std::int64_t cols, int chunk, int panel_rows,
                     int r, void* panel) = nullptr;

    // a, b: [rows][16] sums of gate and up (b only for the gated ones); n ≤ 16 columns are written.
    void (*epilogue)(Epilogue epilogue, const float* a, const float* b, const float* bias_a,
                     const float* bias_b, int rows, float* out, std::int64_t stride, int n) = nullptr;

    void (*rms_norm)(const float* x, const float* weight, float eps, std::int64_t n, float* out) = nullptr;
    void (*add)(float* x, const float* delta, std::int64_t n) = nullptr;
    // One head in place: x1' = x1 cos − x2 sin, x2' = x2 cos + x1 sin over halves of `dims`.
    void (*rotate)(float* x, const float* cos_sin, int dims) = nullptr;
    // K goes to [head_dim][block_size] at `slot`, V to [block_size][head_dim].
    void (*store_k)(DType dtype, const float* x, int head_dim, int block_size, int slot, void* k) = nullptr;
    void (*store_v)(DType dtype, const float* x, int head_dim, int slot, void* v) = nullptr;
    std::int32_t (*argmax)(const float* x, std::int64_t n) = nullptr;

    // AMX only, else null. Tiles are a thread's state: shaped for a chunk before products, given back after.
    void (*configure_tiles)(int chunk) = nullptr;
    void (*release_tiles)() = nullptr;
    void (*unpack_nibbles)(const std::uint8_t* values, std::size_t bytes, std::uint8_t* out) = nullptr;

    // For ceilings: sums of a run of memory; `steps` rounds of register-only products, returning operations
    // done.
    std::int32_t (*read_memory)(const std::uint8_t* p, std::size_t bytes) = nullptr;
    double (*int8_rounds)(std::int64_t steps, float* sink) = nullptr;
    double (*fp32_rounds)(std::int64_t steps, float* sink) = nullptr;

    PartitionKernel (*partition)(DType kv) = nullptr;
    // State (maximum, sum, out) ⊕= (m, l, o); the first partition of a row is copied instead.
    void (*merge)(float* maximum, float* sum, float* out, float m, float l, const float* o,
                  int head_dim) = nullptr;
    void (*finish)(const float* state, float sum, int head_dim, float* out) = nullptr;
};

const KernelTable& scalar_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avxvnni_kernels();
const KernelTable& avx512_kernels();
const KernelTable& amx_kernels();

}  // namespace recto::cpu
