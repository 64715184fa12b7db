#include "kernels/cuda/general_linear.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/launch.h"

namespace recto::cuda {

template <class T>
void launch_general_kinds(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                          const LinearScratch& scratch, const GeneralShape& shape);

namespace {

constexpr int threads = 128;  // four warps of 16 rows: a block of the weight and 64 inputs

// One tile of 64 rows and 64 inputs a block of threads, by way of shared memory so that rows are written
// whole.
template <TileKind Kind, class T>
__global__ void __launch_bounds__(threads)
    dequantize_kernel(TileWeight w, int first_block, int rows, std::uint16_t* to) {
    __shared__ __align__(16)
        std::uint32_t lines[block_rows][tile_k / 2 + 4];  // pairs; rows 16 bytes longer than needed
    let_next_start();
    const int tile = int(blockIdx.x), block = first_block + int(blockIdx.y);
    const int thread = int(threadIdx.x), lane = thread % 32, warp_of = thread / 32;
    constexpr int parts = Kind == TileKind::u8 ? 2 : 1;
    const auto* from =
        static_cast<const uint4*>(w.data) + ((long long)block * w.chunks * 2 + tile) * (threads * parts);
    uint4 q[parts];
#pragma unroll
    for (int i = 0; i < parts; ++i)
        q[i] = from[(warp_of * parts + i) * 32 + lane];
    const auto* words = reinterpret_cast<const std::uint32_t*>(q);
    RowGroup<T> r[2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int group = (tile * tile_k + 16 * i) / w.group_size;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const long long at =
                ((long long)block * w.groups + group) * block_rows + warp_of * 16 + lane / 4 + 8 * e;
            r[e].set_zero(w.mode == SecondPlane::zero_u8 ? static_cast<const std::uint8_t*>(w.second)[at]
                                                         : std::uint32_t(w.zero));
            r[e].set_offset(
                w.mode == SecondPlane::offset_16 ? static_cast<const std::uint16_t*>(w.second)[at] : 0,
                w.mode == SecondPlane::offset_16 && w.planes_bf16);
            r[e].set_scale(w.scale[at], w.planes_bf16);
            r[e].settle();
        }
        std::uint32_t a[4];
        if constexpr (Kind == TileKind::u4)
            unpack_u4(a, words[i], r);
        else
            unpack_u8(a, words[2 * i], words[2 * i + 1], r);
#pragma unroll
        for (int e = 0; e < 4; ++e)
            lines[warp_of * 16 + lane / 4 + e % 2 * 8][8 * i + lane % 4 + e / 2 * 4] = a[e];
    }
    __syncthreads();
    wait_for_previous();  // the products before this one read what is written now
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = thread / 8 + 16 * i, k = tile * tile_k + thread % 8 * 8, h = block_rows / 2;
        const int width = w.gated ? h : block_rows, part = w.gated ? rows / 2 : rows;
        const int output = int(blockIdx.y) * width + row % width;
        if (output >= part || k >= w.cols) continue;
        const long long line = output + (row >= width ? part : 0);
        *reinterpret_cast<uint4*>(to + line * w.cols + k) =
            *reinterpret_cast<const uint4*>(&lines[row][thread % 8 * 4]);
    }
}

}  // namespace

void general_linear(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                    const LinearScratch& scratch, const GeneralShape& shape) {
    assert(x.dtype == w.dtype && x.cols == w.cols && x.rows == output.out.rows &&
           w.outputs == output.out.cols);
    if (w.dtype == DType::f16)
        launch_general_kinds<__half>(stream, x, w, output, scratch, shape);
    else
        launch_general_kinds<__nv_bfloat16>(stream, x, w, output, scratch, shape);
}

int dequantized_rows(const TileWeight& w, int first_block, int blocks) {
    const int width = w.gated ? block_rows / 2 : block_rows;
    return (std::min((first_block + blocks) * width, w.outputs) - first_block * width) * (w.gated ? 2 : 1);
}

void dequantize_tiles(cudaStream_t stream, const TileWeight& w, int first_block, int blocks, void* to) {
    assert(w.kind != TileKind::dense && first_block + blocks <= w.blocks);
    const bool half = w.dtype == DType::f16, u4 = w.kind == TileKind::u4;
    const auto kernel =
        u4 ? (half ? dequantize_kernel<TileKind::u4, __half> : dequantize_kernel<TileKind::u4, __nv_bfloat16>)
           : (half ? dequantize_kernel<TileKind::u8, __half>
                   : dequantize_kernel<TileKind::u8, __nv_bfloat16>);
    launch("dequantize", kernel, dim3(unsigned((w.cols + tile_k - 1) / tile_k), unsigned(blocks)),
           dim3(threads), 0, stream, w, first_block, dequantized_rows(w, first_block, blocks),
           static_cast<std::uint16_t*>(to));
}

}  // namespace recto::cuda
