// Widening FP16 fast enough for the load path: a model has millions of FP16 scales, nearly all of them
// normal.
#pragma once
#include <bit>
#include <cstdint>

#include "kernels/both.h"
#include "kernels/dtype.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace recto {

RECTO_BOTH inline float widen_f16(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(bits));
#else
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    if (exponent - 1 < 30) [[likely]]  // neither zero, subnormal, infinite nor NaN
        return std::bit_cast<float>((std::uint32_t(bits & 0x8000U) << 16) +
                                    (std::uint32_t(bits & 0x7FFFU) << 13) + (112U << 23));
    return f16_to_f32(bits);
#endif
}

}  // namespace recto
