// Operations over rows: norm, gather, add, argmax.
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"

namespace recto::cuda {
namespace {

constexpr int threads = 256;

__device__ float* row_of(const Tensor& t, long long row) {
    return static_cast<float*>(t.data) + row * t.row_stride;
}

__global__ void rms_norm_kernel(Tensor x, const float* weight, float eps, Tensor out) {
    __shared__ float scratch[33];
    const long long in = (long long)blockIdx.x * x.row_stride;
    float square = 0.0F;
    for (int i = int(threadIdx.x); i < x.cols; i += threads) {
        const float v = load(x.data, in + i, x.dtype);
        square += v * v;
    }
    const float inverse = 1.0F / sqrtf(block_sum(square, scratch) / float(x.cols) + eps);
    const long long to = (long long)blockIdx.x * out.row_stride;
    for (int i = int(threadIdx.x); i < x.cols; i += threads)
        store(out.data, to + i, out.dtype, load(x.data, in + i, x.dtype) * inverse * weight[i]);
}

__global__ void gather_kernel(const int* rows, Tensor x, Tensor out) {
    const long long in = (long long)rows[blockIdx.x] * x.row_stride, to = (long long)blockIdx.x * out.row_stride;
    for (int i = int(threadIdx.x); i < x.cols; i += threads)
        store(out.data, to + i, out.dtype, load(x.data, in + i, x.dtype));
}

__global__ void add_kernel(Tensor x, Tensor delta) {
    const long long in = (long long)blockIdx.x * delta.row_stride, to = (long long)blockIdx.x * x.row_stride;
    for (int i = int(threadIdx.x); i < x.cols; i += threads)
        store(x.data, to + i, x.dtype, load(x.data, to + i, x.dtype) + load(delta.data, in + i, delta.dtype));
}

__global__ void argmax_kernel(Tensor logits, int valid, int* ids) {
    __shared__ float best_value[threads];
    __shared__ int best_id[threads];
    __shared__ int broken;
    if (threadIdx.x == 0) broken = 0;
    __syncthreads();
    const float* row = row_of(logits, blockIdx.x);
    float value = -INFINITY;
    int id = valid;
    for (int i = int(threadIdx.x); i < valid; i += threads) {
        if (!isfinite(row[i])) broken = 1;
        if (row[i] > value) {
            value = row[i];
            id = i;
        }
    }
    best_value[threadIdx.x] = value;
    best_id[threadIdx.x] = id;
    __syncthreads();
    for (int step = threads / 2; step > 0; step /= 2) {
        if (int(threadIdx.x) < step) {
            const int other = int(threadIdx.x) + step;
            const bool better =
                best_value[other] > best_value[threadIdx.x] ||
                (best_value[other] == best_value[threadIdx.x] && best_id[other] < best_id[threadIdx.x]);
            if (better) {
                best_value[threadIdx.x] = best_value[other];
                best_id[threadIdx.x] = best_id[other];
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) ids[blockIdx.x] = broken ? -1 : best_id[0];
}

}  // namespace

void rms_norm(cudaStream_t stream, Tensor x, const float* weight, float eps, Tensor out) {
    rms_norm_kernel<<<unsigned(x.rows), threads, 0, stream>>>(x, weight, eps, out);
    check_launch("rms_norm");
}

void gather_rows(cudaStream_t stream, const BatchView& batch, Tensor x, Tensor out) {
    gather_kernel<<<unsigned(out.rows), threads, 0, stream>>>(batch.logit_rows, x, out);
    check_launch("gather_rows");
}

void argmax(cudaStream_t stream, Tensor logits, int valid_cols, int* ids) {
    argmax_kernel<<<unsigned(logits.rows), threads, 0, stream>>>(logits, valid_cols, ids);
    check_launch("argmax");
}

void add(cudaStream_t stream, Tensor x, Tensor delta) {
    add_kernel<<<unsigned(x.rows), threads, 0, stream>>>(x, delta);
    check_launch("add");
}

}  // namespace recto::cuda
