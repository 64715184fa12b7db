// The instructions that the attention kernels are made of, one small function each, and how each element type
// of the KV cache becomes operands of a tensor-core product.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/tensor_core.cuh"
#include "kernels/dtype.h"

namespace recto::cuda {

constexpr float log2_e = 1.4426950408889634F;

__device__ inline float exp2_fast(float x) {  // 2 ulp; 0 for -infinity
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 1 − 2 / (e^2x + 1): a few 2^-24 off, which a cap of c makes c times as much of a score. Ends at ±1; NaN
// stays.
__device__ inline float tanh_fast(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(exp2_fast(x * (2.0F * log2_e)) + 1.0F));
    return 1.0F - 2.0F * r;
}

// Reads past the first-level cache: what is read once would only push out what is read again. Volatile, so
// that the compiler leaves each where it stands: behind wait_for_previous.
template <int Bytes>
__device__ inline void load_stream(uint32_t* to, const void* from) {
    if constexpr (Bytes == 16)
        asm volatile("ld.global.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "l"(from));
    else if constexpr (Bytes == 8)
        asm volatile("ld.global.L1::no_allocate.L2::256B.v2.b32 {%0, %1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "l"(from));
    else if constexpr (Bytes == 4)
        asm volatile("ld.global.L1::no_allocate.L2::256B.b32 %0, [%1];" : "=r"(to[0]) : "l"(from));
    else {
        static_assert(Bytes == 2);
        uint16_t half;
        asm volatile("ld.global.L1::no_allocate.L2::256B.b16 %0, [%1];" : "=h"(half) : "l"(from));
        to[0] = half;
    }
}

// What another block of this launch wrote: the second-level cache is where it is.
__device__ inline float4 load_shared_result(const float4* from) {
    float4 v;
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}
__device__ inline float2 load_shared_result(const float2* from) {
    float2 v;
    asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(from) : "memory");
    return v;
}

__device__ inline void load_matrices_transposed(uint32_t (&m)[4], uint32_t row_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row_address));
}

// An 8x8 matrix of 16-bit elements, held as fragments are (row lane / 4, columns 2 (lane % 4) and the next).
__device__ inline uint32_t transpose(uint32_t fragment) {
    uint32_t t;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(fragment));
    return t;
}

// c += a · b; a [16, 16], b [16, 8], c [16, 8] (PTX ISA, mma.m16n8k16).
template <DType Math>
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (Math == DType::f16)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
            "%9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two elements side by side, the first in the low half, rounded half to even.
__device__ inline uint32_t pack_pair(DType type, float low, float high) {
    uint32_t r;
    if (type == DType::f16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
__device__ inline float2 unpack_pair(DType type, uint32_t pair) {
    if (type == DType::f16) {
        __half2 h;
        memcpy(&h, &pair, sizeof(h));
        return __half22float2(h);
    }
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U)};
}
__device__ inline uint32_t convert_pair(DType from, DType to, uint32_t pair) {
    if (from == to) return pair;
    const float2 v = unpack_pair(from, pair);
    return pack_pair(to, v.x, v.y);
}

// Two e4m3 bytes, exactly, as two halves.
__device__ inline uint32_t widen_e4m3(uint32_t low_two_bytes) {
    const __half2_raw h =
        __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t(low_two_bytes & 0xFFFFU), __NV_E4M3);
    return uint32_t(h.x) | uint32_t(h.y) << 16;
}

// Bytes of `a` (0-3) and `b` (4-7) by the nibbles of `selector`, lowest first.
template <uint32_t Selector>
__device__ inline uint32_t pick_bytes(uint32_t a, uint32_t b) {
    return __byte_perm(a, b, Selector);
}

// What the products compute in, for each type the cache holds. FP8 is widened to FP16, exactly.
constexpr DType math_dtype(DType kv) {
    return kv == DType::bf16 ? DType::bf16 : DType::f16;
}

// The right-hand factors of score step `k` (rows of 4 lanes): 4 consecutive elements of a key as two pairs.
template <DType Kv>
__device__ inline void key_pairs(const uint32_t* words, int k, uint32_t& first, uint32_t& second) {
    if constexpr (Kv == DType::f8_e4m3) {
        first = widen_e4m3(words[k]);
        second = widen_e4m3(words[k] >> 16);
    } else {
        first = words[2 * k];
        second = words[2 * k + 1];
    }
}

// Tile t of a segment: the pairs (token 0, token 1) of elements 2t and 2t + 1 of two tokens' runs.
template <DType Kv>
__device__ inline void value_pairs(const uint32_t* token0, const uint32_t* token1, int t, uint32_t& even,
                                   uint32_t& odd) {
    if constexpr (Kv == DType::f8_e4m3) {
        const uint32_t bytes = t % 2 == 0 ? pick_bytes<0x5140>(token0[t / 2], token1[t / 2])
                                          : pick_bytes<0x7362>(token0[t / 2], token1[t / 2]);
        even = widen_e4m3(bytes);
        odd = widen_e4m3(bytes >> 16);
    } else {
        even = pick_bytes<0x5410>(token0[t], token1[t]);
        odd = pick_bytes<0x7632>(token0[t], token1[t]);
    }
}

}  // namespace recto::cuda
