// Operations over rows: norm, gather, add, argmax.
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {
namespace {

constexpr int threads = 256;

__device__ float* row_of(const Tensor& t, long long row) {
    return static_cast<float*>(t.data) + row * t.row_stride;
}

__global__ void rms_norm_kernel(Tensor x, const float* weight, float eps, Tensor out) {
    __shared__ float scratch[33];
    let_next_start();
    wait_for_previous();
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
    let_next_start();
    wait_for_previous();
    const long long in = (long long)rows[blockIdx.x] * x.row_stride,
                    to = (long long)blockIdx.x * out.row_stride;
    for (int i = int(threadIdx.x); i < x.cols; i += threads)
        store(out.data, to + i, out.dtype, load(x.data, in + i, x.dtype));
}

__global__ void add_kernel(Tensor x, Tensor delta) {
    let_next_start();
    wait_for_previous();
    const long long in = (long long)blockIdx.x * delta.row_stride, to = (long long)blockIdx.x * x.row_stride;
    for (int i = int(threadIdx.x); i < x.cols; i += threads)
        store(x.data, to + i, x.dtype, load(x.data, to + i, x.dtype) + load(delta.data, in + i, delta.dtype));
}

__global__ void argmax_kernel(Tensor logits, int valid, int* ids) {
    __shared__ float best_value[threads];
    __shared__ int best_id[threads];
    __shared__ int broken;
    let_next_start();
    wait_for_previous();
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

// Rows of FP32 held in registers between the two passes; 16-bit results. Few rows take more threads each:
// their time is that of one load after the other.
template <int norm_threads>
__global__ void __launch_bounds__(norm_threads)
    norm_rows_kernel(Tensor x, const float* weight, float eps, Tensor out) {
    __shared__ float scratch[33];
    let_next_start();
    const int fours = int(x.cols) / 4;
    float4 v[4], w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = int(threadIdx.x) + i * norm_threads;
        if (at < fours) w[i] = reinterpret_cast<const float4*>(weight)[at];
    }
    wait_for_previous();
    const auto* in = reinterpret_cast<const float4*>(row_of(x, blockIdx.x));
    float square = 0.0F;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = int(threadIdx.x) + i * norm_threads;
        v[i] = at < fours ? in[at] : make_float4(0, 0, 0, 0);
        square += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
    }
    const float inverse = 1.0F / sqrtf(block_sum(square, scratch) / float(x.cols) + eps);
    const bool half = out.dtype == DType::f16;
    auto* to = reinterpret_cast<uint2*>(static_cast<unsigned short*>(out.data) +
                                        (long long)blockIdx.x * out.row_stride);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = int(threadIdx.x) + i * norm_threads;
        if (at >= fours) break;
        to[at] = make_uint2(pair_bits(v[i].x * inverse * w[i].x, v[i].y * inverse * w[i].y, half),
                            pair_bits(v[i].z * inverse * w[i].z, v[i].w * inverse * w[i].w, half));
    }
}

// out = act(gate) · up, from rows of gate|up
__global__ void gate_kernel(Tensor both, Epilogue epilogue, Tensor out) {
    let_next_start();
    wait_for_previous();
    const long long row = (long long)blockIdx.y * both.row_stride,
                    to = (long long)blockIdx.y * out.row_stride;
    const bool pairs = out.cols % 2 == 0 && both.row_stride % 2 == 0 && out.row_stride % 2 == 0 &&
                       both.dtype == out.dtype && out.dtype != DType::f32;
    if (pairs) {
        const int i = int(blockIdx.x) * threads + int(threadIdx.x);
        if (i >= out.cols / 2) return;
        const bool half = out.dtype == DType::f16;
        const auto* in =
            reinterpret_cast<const unsigned*>(static_cast<const unsigned short*>(both.data) + row);
        const float2 g = unpair(in[i], half);
        // The up half may begin at an odd pair only if out.cols is odd, which `pairs` excludes.
        const float2 u = unpair(in[out.cols / 2 + i], half);
        reinterpret_cast<unsigned*>(static_cast<unsigned short*>(out.data) + to)[i] =
            pair_bits(gate(g.x, epilogue) * u.x, gate(g.y, epilogue) * u.y, half);
        return;
    }
    for (int i = int(blockIdx.x) * threads + int(threadIdx.x); i < out.cols; i += int(gridDim.x) * threads)
        store(out.data, to + i, out.dtype,
              gate(load(both.data, row + i, both.dtype), epilogue) *
                  load(both.data, row + out.cols + i, both.dtype));
}

__global__ void bias_kernel(Tensor x, const float* bias) {
    let_next_start();
    wait_for_previous();
    const long long row = (long long)blockIdx.x * x.row_stride;
    for (int i = int(threadIdx.x); i < x.cols; i += threads)
        store(x.data, row + i, x.dtype, load(x.data, row + i, x.dtype) + bias[i]);
}

__global__ void columns_kernel(Tensor x, const int* order, Tensor out) {
    let_next_start();
    wait_for_previous();
    const long long from = (long long)blockIdx.x * x.row_stride, to = (long long)blockIdx.x * out.row_stride;
    for (int i = int(threadIdx.x); i < out.cols; i += threads)
        store(out.data, to + i, out.dtype, load(x.data, from + (order ? order[i] : i), x.dtype));
}

}  // namespace

void rms_norm(cudaStream_t stream, Tensor x, const float* weight, float eps, Tensor out) {
    const dim3 grid(unsigned(x.rows));
    const bool fours = x.dtype == DType::f32 && out.dtype != DType::f32 && x.cols % 4 == 0 &&
                       x.row_stride % 4 == 0 && out.row_stride % 4 == 0;
    if (fours && x.cols <= 16 * 256 && x.rows > 64)
        launch("rms_norm", norm_rows_kernel<256>, grid, dim3(256), 0, stream, x, weight, eps, out);
    else if (fours && x.cols <= 16 * 1024)
        launch("rms_norm", norm_rows_kernel<1024>, grid, dim3(1024), 0, stream, x, weight, eps, out);
    else
        launch("rms_norm", rms_norm_kernel, grid, dim3(threads), 0, stream, x, weight, eps, out);
}

void gather_rows(cudaStream_t stream, const BatchView& batch, Tensor x, Tensor out) {
    launch("gather_rows", gather_kernel, dim3(unsigned(out.rows)), dim3(threads), 0, stream, batch.logit_rows,
           x, out);
}

void argmax(cudaStream_t stream, Tensor logits, int valid_cols, int* ids) {
    launch("argmax", argmax_kernel, dim3(unsigned(logits.rows)), dim3(threads), 0, stream, logits, valid_cols,
           ids);
}

void add(cudaStream_t stream, Tensor x, Tensor delta) {
    launch("add", add_kernel, dim3(unsigned(x.rows)), dim3(threads), 0, stream, x, delta);
}

void gate_rows(cudaStream_t stream, Tensor both, Epilogue epilogue, Tensor out) {
    const auto blocks = unsigned((out.cols / 2 + threads - 1) / threads + 1);
    launch("gate", gate_kernel, dim3(blocks, unsigned(out.rows)), dim3(threads), 0, stream, both, epilogue,
           out);
}

void add_bias(cudaStream_t stream, Tensor x, const float* bias) {
    launch("add_bias", bias_kernel, dim3(unsigned(x.rows)), dim3(threads), 0, stream, x, bias);
}

void copy_columns(cudaStream_t stream, Tensor x, const int* order, Tensor out) {
    launch("copy_columns", columns_kernel, dim3(unsigned(x.rows)), dim3(threads), 0, stream, x, order, out);
}

}  // namespace recto::cuda
