// 4- and 8-bit weights to 16-bit operands of a tensor core, in registers.
//
// FP16: an integer q < 1024 OR'ed into the mantissa of 1024 is 1024 + q; subtracting 1024 + z is exact, so
// w = (q − z) · scale + offset is rounded once (twice with an offset's own rounding). BF16 has too few bits
// for that trick to stay exact past the first step, so the scale is applied in FP32 and the result rounded
// once.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

// (a & b) | c
__device__ inline std::uint32_t mask_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    std::uint32_t r;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

__device__ inline __half2 as_half2(std::uint32_t v) {
    return *reinterpret_cast<const __half2*>(&v);
}
__device__ inline std::uint32_t as_bits(__half2 v) {
    return *reinterpret_cast<const std::uint32_t*>(&v);
}
__device__ inline std::uint32_t bf16_pair(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Scale and offset of one row's group. Made by integer operations: conversions between float types run at a
// sixteenth of their rate, and a group of 32 would spend more time in them than in its products.
template <class T>
struct RowGroup;

template <>
struct RowGroup<__half> {
    __half2 scale, offset, low, high;  // low: −(1024 + z); high: −(64 + z), for nibbles taken at bit 4

    __device__ static __half2 twice(std::uint32_t bits) { return as_half2(__byte_perm(bits, bits, 0x1010)); }
    // FP16 bits; planes of FP16 models are always FP16.
    __device__ void set_scale(std::uint32_t bits, bool) { scale = twice(bits); }
    __device__ void set_offset(std::uint32_t bits, bool) { offset = twice(bits); }
    __device__ void set_zero(std::uint32_t z) {
        low = twice(0xE400U | z);        // −1024 has z free mantissa steps of 1
        high = twice(0xD400U | z << 4);  // −64 has steps of 1/16
    }
    __device__ void settle() {}
};

template <>
struct RowGroup<__nv_bfloat16> {
    float scale, offset, zero;  // zero: 2^23 + z
    float offset4;              // of 128 + q

    __device__ static float wide(std::uint32_t bits, bool bf16) {
        return bf16 ? __uint_as_float(bits << 16)
                    : __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    }
    __device__ void set_scale(std::uint32_t bits, bool bf16) { scale = wide(bits, bf16); }
    __device__ void set_offset(std::uint32_t bits, bool bf16) { offset = wide(bits, bf16); }
    __device__ void set_zero(std::uint32_t z) { zero = __uint_as_float(0x4B000000U | z); }
    __device__ void settle() {
        offset4 = fmaf(8388480.0F - zero, scale, offset);
    }  // −(128 + z) · scale + offset
};

// One word of a 4-bit tile: the A fragment of 16 inputs, rows of `r[0]` and `r[1]`.
__device__ inline void unpack_u4(std::uint32_t (&a)[4], std::uint32_t q, const RowGroup<__half> (&r)[2]) {
    const std::uint32_t low = 0x000F000F, high = 0x00F000F0, magic = 0x64006400;
    const __half2 sixteenth = __float2half2_rn(1.0F / 16);
    const std::uint32_t q8 = q >> 8;
    const __half2 w0 = __hadd2(as_half2(mask_or(q, low, magic)), r[0].low);
    const __half2 w1 = __hfma2(as_half2(mask_or(q, high, magic)), sixteenth, r[1].high);
    const __half2 w2 = __hadd2(as_half2(mask_or(q8, low, magic)), r[0].low);
    const __half2 w3 = __hfma2(as_half2(mask_or(q8, high, magic)), sixteenth, r[1].high);
    a[0] = as_bits(__hfma2(w0, r[0].scale, r[0].offset));
    a[1] = as_bits(__hfma2(w1, r[1].scale, r[1].offset));
    a[2] = as_bits(__hfma2(w2, r[0].scale, r[0].offset));
    a[3] = as_bits(__hfma2(w3, r[1].scale, r[1].offset));
}

__device__ inline void unpack_u4(std::uint32_t (&a)[4], std::uint32_t q,
                                 const RowGroup<__nv_bfloat16> (&r)[2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const std::uint32_t pair = mask_or(q >> (4 * i), 0x000F000F, 0x43004300);  // 128 + q, twice
        const RowGroup<__nv_bfloat16>& g = r[i % 2];
        a[i] = bf16_pair(fmaf(__uint_as_float(pair << 16), g.scale, g.offset4),
                         fmaf(__uint_as_float(pair & 0xFFFF0000), g.scale, g.offset4));
    }
}

// Two words of an 8-bit tile: bytes are the pairs of a[0], a[1], then of a[2], a[3].
__device__ inline void unpack_u8(std::uint32_t (&a)[4], std::uint32_t q0, std::uint32_t q1,
                                 const RowGroup<__half> (&r)[2]) {
    const std::uint32_t magic = 0x64646464;
    const __half2 w0 = __hadd2(as_half2(__byte_perm(q0, magic, 0x4140)), r[0].low);
    const __half2 w1 = __hadd2(as_half2(__byte_perm(q0, magic, 0x4342)), r[1].low);
    const __half2 w2 = __hadd2(as_half2(__byte_perm(q1, magic, 0x4140)), r[0].low);
    const __half2 w3 = __hadd2(as_half2(__byte_perm(q1, magic, 0x4342)), r[1].low);
    a[0] = as_bits(__hfma2(w0, r[0].scale, r[0].offset));
    a[1] = as_bits(__hfma2(w1, r[1].scale, r[1].offset));
    a[2] = as_bits(__hfma2(w2, r[0].scale, r[0].offset));
    a[3] = as_bits(__hfma2(w3, r[1].scale, r[1].offset));
}

__device__ inline void unpack_u8(std::uint32_t (&a)[4], std::uint32_t q0, std::uint32_t q1,
                                 const RowGroup<__nv_bfloat16> (&r)[2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const std::uint32_t word = i < 2 ? q0 : q1;
        const RowGroup<__nv_bfloat16>& g = r[i % 2];
        float v[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {  // 2^23 + q
            const std::uint32_t bits = __byte_perm(word, 0x4B000000, 0x7540 + std::uint32_t(2 * (i % 2) + e));
            v[e] = fmaf(__uint_as_float(bits) - g.zero, g.scale, g.offset);
        }
        a[i] = bf16_pair(v[0], v[1]);
    }
}

}  // namespace recto::cuda
