// Matrix products and the embedding: one warp an output, dequantizing as it reads.
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {
namespace {

constexpr int rows_a_block = 8;   // warps: outputs of the matrix
constexpr int tokens_a_warp = 4;  // rows of x that share one pass over the weights

// acc[t] = Σ_k x[t, k] · W[row, k], on every lane
__device__ void dot_rows(float (&acc)[tokens_a_warp], const float* x, long long x_stride, int tokens,
                         const WeightView& w, int row) {
    const PartView& part = part_of(w, row);
    for (int t = 0; t < tokens_a_warp; ++t)
        acc[t] = 0.0F;
    for (int k = threadIdx.x % warp; k < w.cols; k += warp) {
        const float value = weight_at(part, row, k, w.cols);
        const int input = part.order ? part.order[k] : k;
        for (int t = 0; t < tokens_a_warp; ++t)
            if (t < tokens) acc[t] = fmaf(value, x[t * x_stride + input], acc[t]);
    }
    const float bias = part.bias ? part.bias[row] : 0.0F;
    for (int t = 0; t < tokens_a_warp; ++t)
        acc[t] = warp_sum(acc[t]) + bias;
}

__global__ void linear_kernel(Tensor x, WeightView w, Epilogue epilogue, Tensor out) {
    const int row = int(blockIdx.x) * rows_a_block + int(threadIdx.x) / warp;
    const int first = int(blockIdx.y) * tokens_a_warp;
    const int tokens = min(tokens_a_warp, int(x.rows) - first);
    const bool gated = epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul;
    const int outputs = gated ? w.rows / 2 : w.rows;
    if (row >= outputs) return;
    const float* in = static_cast<const float*>(x.data) + (long long)first * x.row_stride;
    float acc[tokens_a_warp];
    float up[tokens_a_warp];
    dot_rows(acc, in, x.row_stride, tokens, w, row);
    if (gated) dot_rows(up, in, x.row_stride, tokens, w, row + outputs);
    if (threadIdx.x % warp != 0) return;
    for (int t = 0; t < tokens; ++t) {
        float* to = static_cast<float*>(out.data) + (long long)(first + t) * out.row_stride + row;
        if (gated)
            *to = gate(acc[t], epilogue) * up[t];
        else
            *to = epilogue == Epilogue::add ? *to + acc[t] : acc[t];
    }
}

__global__ void embed_kernel(BatchView batch, WeightView table, float scale, Tensor out) {
    const int from = batch.token_from[blockIdx.x];
    // A row that is not finite drew -1: its sequence ends when the host sees it, and this row is dropped.
    int row = from < 0 ? batch.token_ids[blockIdx.x] : max(batch.drawn[from], 0);
    const PartView& part = part_of(table, row);
    float* to = static_cast<float*>(out.data) + (long long)blockIdx.x * out.row_stride;
    for (int k = int(threadIdx.x); k < table.cols; k += int(blockDim.x))
        to[k] = weight_at(part, row, k, table.cols) * scale;
}

}  // namespace

void linear(cudaStream_t stream, Tensor x, const WeightView& weight, Epilogue epilogue, Tensor out) {
    assert(x.cols == weight.cols && x.rows == out.rows);
    const bool gated = epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul;
    const int outputs = gated ? weight.rows / 2 : weight.rows;
    assert(out.cols == outputs);
    const dim3 grid(unsigned((outputs + rows_a_block - 1) / rows_a_block),
                    unsigned((x.rows + tokens_a_warp - 1) / tokens_a_warp));
    linear_kernel<<<grid, rows_a_block * warp, 0, stream>>>(x, weight, epilogue, out);
    check_launch("linear");
}

void embed(cudaStream_t stream, const BatchView& batch, const WeightView& table, float scale, Tensor out) {
    embed_kernel<<<unsigned(out.rows), 256, 0, stream>>>(batch, table, scale, out);
    check_launch("embed");
}

}  // namespace recto::cuda
