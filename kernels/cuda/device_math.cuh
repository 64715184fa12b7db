// Small device functions that several kernels share.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/dtype.h"

namespace recto::cuda {

constexpr int warp = 32;

// threadIdx.x, of which the compiler does not know that it is always the same: what follows from it is worked
// out where it is used, and takes no registers through a whole kernel.
__device__ inline int own_thread() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

__device__ inline float warp_sum(float v) {
    for (int step = warp / 2; step > 0; step /= 2)
        v += __shfl_xor_sync(0xFFFFFFFFU, v, step);
    return v;
}

// Sum over a block of at most 1,024 threads; every thread gets it. `scratch` holds 33 floats of shared
// memory.
__device__ inline float block_sum(float v, float* scratch) {
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % warp == 0) scratch[threadIdx.x / warp] = v;
    __syncthreads();
    if (threadIdx.x < warp) {
        const int warps = (blockDim.x + warp - 1) / warp;
        const float total = warp_sum(threadIdx.x < warps ? scratch[threadIdx.x] : 0.0F);
        if (threadIdx.x == 0) scratch[32] = total;
    }
    __syncthreads();
    return scratch[32];
}

__device__ inline float load(const void* base, long long index, DType dtype) {
    switch (dtype) {
        case DType::f16:
            return __half2float(static_cast<const __half*>(base)[index]);
        case DType::bf16:
            return __bfloat162float(static_cast<const __nv_bfloat16*>(base)[index]);
        case DType::f8_e4m3:
            return float(static_cast<const __nv_fp8_e4m3*>(base)[index]);
        default:
            return static_cast<const float*>(base)[index];
    }
}

// Two neighbours of a 16-bit row.
__device__ inline unsigned pair_bits(float low, float high, bool half) {
    if (half) {
        const __half2 v = __floats2half2_rn(low, high);
        return *reinterpret_cast<const unsigned*>(&v);
    }
    const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&v);
}
__device__ inline float2 unpair(unsigned bits, bool half) {
    if (half) return __half22float2(*reinterpret_cast<const __half2*>(&bits));
    return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xFFFF0000U));
}

__device__ inline void store(void* base, long long index, DType dtype, float value) {
    switch (dtype) {
        case DType::f16:
            static_cast<__half*>(base)[index] = __float2half_rn(value);
            break;
        case DType::bf16:
            static_cast<__nv_bfloat16*>(base)[index] = __float2bfloat16_rn(value);
            break;
        case DType::f8_e4m3:
            static_cast<__nv_fp8_e4m3*>(base)[index] = __nv_fp8_e4m3(value);  // saturates
            break;
        default:
            static_cast<float*>(base)[index] = value;
    }
}

}  // namespace recto::cuda
