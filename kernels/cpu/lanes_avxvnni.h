// Sixteen lanes in two AVX registers, with the products of four bytes in one instruction: processors from
// Alder Lake on that have no AVX-512.
#pragma once
#include "kernels/cpu/lanes_avx2.h"

namespace recto::cpu {

struct AvxVnniLanes : Avx2Lanes {
    // vpdpbusd adds in 32 bits and never saturates, so full bytes need no shift.
    static constexpr bool bytes_shifted = false;
    static I dot(I acc, Bytes w, const std::int8_t* x) {
        const __m256i v = four(x);
        return {_mm256_dpbusd_avx_epi32(acc.a, w.a, v), _mm256_dpbusd_avx_epi32(acc.b, w.b, v)};
    }
    static I dot_nibbles(I acc, Bytes w, const std::int8_t* x) { return dot(acc, w, x); }
};

}  // namespace recto::cpu
