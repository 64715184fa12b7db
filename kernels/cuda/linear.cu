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
__device__ void dot_rows(float (&acc)[tokens_a_warp], const Tensor& x, long long first, int tokens,
                         const WeightView& w, int row) {
    const PartView& part = part_of(w, row);
    for (int t = 0; t < tokens_a_warp; ++t)
        acc[t] = 0.0F;
    for (int k = threadIdx.x % warp; k < w.cols; k += warp) {
        const float value = weight_at(part, row, k, w.cols);
        const int input = part.order ? part.order[k] : k;
        for (int t = 0; t < tokens_a_warp; ++t)
            if (t < tokens) acc[t] = fmaf(value, load(x.data, (first + t) * x.row_stride + input, x.dtype), acc[t]);
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

__global__ void embed_kernel(const int* ids, WeightView table, float scale, Tensor out) {
    int row = ids[blockIdx.x];
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
    embed_kernel<<<unsigned(out.rows), 256, 0, stream>>>(batch.token_ids, table, scale, out);
    check_launch("embed");
}

}  // namespace recto::cuda
