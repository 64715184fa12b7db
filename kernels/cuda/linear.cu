// Matrix products and the embedding: one warp an output, dequantizing as it reads.
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tiled_weight.h"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {
namespace {

constexpr int rows_a_block = 8;   // warps: outputs of the matrix
constexpr int tokens_a_warp = 4;  // rows of x that share one pass over the weights

// acc[t] = Σ_k x[t, k] · W[row, k], on every lane
__device__ void dot_rows(float (&acc)[tokens_a_warp], const Tensor& x, long long first, int tokens,
                         const WeightView& w, int row) {
    const PartView& part = part_of(w, row);
    for (int t = 0; t < tokens_a_warp; ++t)
        acc[t] = 0.0F;
    for (int k = threadIdx.x % warp; k < w.cols; k += warp) {
        const float value = weight_at(part, row, k, w.cols);
        const int input = part.order ? part.order[k] : k;
        for (int t = 0; t < tokens_a_warp; ++t)
            if (t < tokens)
                acc[t] = fmaf(value, load(x.data, (first + t) * x.row_stride + input, x.dtype), acc[t]);
    }
    const float bias = part.bias ? part.bias[row] : 0.0F;
    for (int t = 0; t < tokens_a_warp; ++t)
        acc[t] = warp_sum(acc[t]) + bias;
}

__global__ void linear_kernel(Tensor x, WeightView w, Epilogue epilogue, Tensor out) {
    let_next_start();
    wait_for_previous();
    const int row = int(blockIdx.x) * rows_a_block + int(threadIdx.x) / warp;
    const int first = int(blockIdx.y) * tokens_a_warp;
    const int tokens = min(tokens_a_warp, int(x.rows) - first);
    const bool gated = epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul;
    const int outputs = gated ? w.rows / 2 : w.rows;
    if (row >= outputs) return;
    float acc[tokens_a_warp];
    float up[tokens_a_warp];
    dot_rows(acc, x, first, tokens, w, row);
    if (gated) dot_rows(up, x, first, tokens, w, row + outputs);
    if (threadIdx.x % warp != 0) return;
    for (int t = 0; t < tokens; ++t) {
        const long long at = (long long)(first + t) * out.row_stride + row;
        float value = acc[t];
        if (gated) value = gate(acc[t], epilogue) * up[t];
        if (epilogue == Epilogue::add) value += load(out.data, at, out.dtype);
        store(out.data, at, out.dtype, value);
    }
}

// The token of a row: given, or drawn by the step before, on the card. A row that is not finite drew −1: its
// sequence ends when the host sees it, and this row is dropped.
__device__ int token_of(const BatchView& batch, int row) {
    const int from = batch.token_from[row];
    return from < 0 ? batch.token_ids[row] : max(batch.drawn[from], 0);
}

__global__ void embed_kernel(BatchView batch, WeightView table, float scale, Tensor out) {
    let_next_start();
    wait_for_previous();
    int row = token_of(batch, int(blockIdx.x));
    const PartView& part = part_of(table, row);
    float* to = static_cast<float*>(out.data) + (long long)blockIdx.x * out.row_stride;
    for (int k = int(threadIdx.x); k < table.cols; k += int(blockDim.x))
        to[k] = weight_at(part, row, k, table.cols) * scale;
}

// The weight of a tile's row at input k, as the tensor-core products round it.
__device__ float tile_weight(const TileWeight& w, int row, int k) {
    if (w.kind == TileKind::dense) return load(w.data, (long long)row * w.cols + k, w.dtype);
    const int block = row / block_rows, r = row % block_rows, in_warp = r % 16;
    const int lane = in_warp % 8 * 4 + k % 8 / 2;
    const int fragment = k % tile_k / 16, pair = in_warp / 8 + 2 * (k % 16 / 8), e = k % 2;
    const long long tile = (long long)block * w.chunks * 2 + k / tile_k;
    const auto* words = static_cast<const unsigned*>(w.data);
    unsigned q;
    if (w.kind == TileKind::u4) {
        q = words[((tile * 4 + r / 16) * warp + lane) * 4 + fragment] >> (4 * pair + 16 * e) & 15U;
    } else {
        const long long at = ((tile * 4 + r / 16) * 2 + fragment / 2) * warp + lane;
        const unsigned word = words[at * 4 + fragment % 2 * 2 + pair / 2];
        q = word >> (16 * (pair % 2) + 8 * e) & 255U;
    }
    const long long plane = ((long long)block * w.groups + k / w.group_size) * block_rows + r;
    const auto value = [&](const void* p) {
        const unsigned short bits = static_cast<const unsigned short*>(p)[plane];
        return w.planes_bf16 ? __uint_as_float(unsigned(bits) << 16) : __half2float(__ushort_as_half(bits));
    };
    const float zero = w.mode == SecondPlane::zero_u8
                           ? float(static_cast<const unsigned char*>(w.second)[plane])
                           : float(w.zero);
    const float offset = w.mode == SecondPlane::offset_16 ? value(w.second) : 0.0F;
    return fmaf(float(q) - zero, value(w.scale), offset);
}

__global__ void embed_tiles_kernel(BatchView batch, TileWeight table, float scale, Tensor out) {
    let_next_start();
    wait_for_previous();
    const int row = token_of(batch, int(blockIdx.x));
    for (int k = int(threadIdx.x); k < table.cols; k += int(blockDim.x))
        store(out.data, (long long)blockIdx.x * out.row_stride + k, out.dtype,
              tile_weight(table, row, k) * scale);
}

}  // namespace

void embed_tiles(cudaStream_t stream, const BatchView& batch, const TiledWeight& table, float scale,
                 Tensor out) {
    assert(table.segments().size() == 1 && !table.permuted());
    // Not by launch(): the step's first kernel starts when its packet is in place, and so do all that follow
    // it.
    embed_tiles_kernel<<<unsigned(out.rows), 256, 0, stream>>>(batch, table.segments()[0].tile, scale, out);
    check_launch("embed");
}

void linear(cudaStream_t stream, Tensor x, const WeightView& weight, Epilogue epilogue, Tensor out) {
    assert(x.cols == weight.cols && x.rows == out.rows);
    const bool gated = epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul;
    const int outputs = gated ? weight.rows / 2 : weight.rows;
    assert(out.cols == outputs);
    const dim3 grid(unsigned((outputs + rows_a_block - 1) / rows_a_block),
                    unsigned((x.rows + tokens_a_warp - 1) / tokens_a_warp));
    launch("linear", linear_kernel, grid, dim3(rows_a_block * warp), 0, stream, x, weight, epilogue, out);
}

void embed(cudaStream_t stream, const BatchView& batch, const WeightView& table, float scale, Tensor out) {
    embed_kernel<<<unsigned(out.rows), 256, 0, stream>>>(batch, table, scale, out);  // see embed_tiles
    check_launch("embed");
}

}  // namespace recto::cuda
