// Sixteen lanes in one AVX-512 register. The lanes_*.h give the same operations with the same
// roundings, so a kernel written once over them gives the same bits in every instruction set.
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace recto::cpu {

struct Avx512Lanes {
    using F = __m512;
    using I = __m512i;
    static constexpr int max_rows = 12;  // of activations that one weight tile meets at a time

    // --- floats
    static F zero() { return _mm512_setzero_ps(); }
    static F set1(float v) { return _mm512_set1_ps(v); }
    static F load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
    static F load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(mask(n), p); }
    static void store_n(float* p, F v, int n) { _mm512_mask_storeu_ps(p, mask(n), v); }
    static F add(F a, F b) { return _mm512_add_ps(a, b); }
    static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
    static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    static F div(F a, F b) { return _mm512_div_ps(a, b); }
    static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    static F max(F a, F b) { return _mm512_max_ps(a, b); }  // b when either is NaN
    static F min(F a, F b) { return _mm512_min_ps(a, b); }
    static F if_less(F a, F b, F yes, F no) {
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
    }
    static F first_n(F v, int n, F rest) { return _mm512_mask_blend_ps(mask(n), rest, v); }
    static F load_f16(const std::uint16_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static F load_bf16(const std::uint16_t* p) {
        const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
    }
    static void store_f16(std::uint16_t* p, F v) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    // Lanes 0-7 from one place, 8-15 from another.
    static F load_halves(const float* lo, const float* hi) {
        return _mm512_castsi512_ps(_mm512_inserti64x4(
            _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(lo))),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(hi)), 1));
    }
    static __m256i join(const std::uint16_t* lo, const std::uint16_t* hi) {
        return _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(lo))),
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(hi)), 1);
    }
    static F load_f16_halves(const std::uint16_t* lo, const std::uint16_t* hi) {
        return _mm512_cvtph_ps(join(lo, hi));
    }
    static F load_bf16_halves(const std::uint16_t* lo, const std::uint16_t* hi) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(join(lo, hi)), 16));
    }
    static F load_u8(const std::uint8_t* p) {
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static F load_i8(const std::int8_t* p) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    // Sixteen 4-bit values in 8 bytes: lanes 0-7 in the low nibbles, 8-15 in the high ones.
    static F load_u4(const std::uint8_t* p) {
        const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
        const __m128i low = _mm_and_si128(b, _mm_set1_epi8(15));
        const __m128i high = _mm_and_si128(_mm_srli_epi16(b, 4), _mm_set1_epi8(15));
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpacklo_epi64(low, high)));
    }

    // --- integers
    static I zero_i() { return _mm512_setzero_si512(); }
    static I set1_i(std::int32_t v) { return _mm512_set1_epi32(v); }
    static I load_i(const void* p) { return _mm512_loadu_si512(p); }
    static I and_i(I a, I b) { return _mm512_and_si512(a, b); }
    static I add_i(I a, I b) { return _mm512_add_epi32(a, b); }
    static I sub_i(I a, I b) { return _mm512_sub_epi32(a, b); }
    static I max_i(I a, I b) { return _mm512_max_epi32(a, b); }
    template <int N>
    static I shift_left(I a) {
        return _mm512_slli_epi32(a, N);
    }
    template <int N>
    static I shift_right(I a) {  // unsigned
        return _mm512_srli_epi32(a, N);
    }
    static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
    static I round(F a) { return _mm512_cvtps_epi32(a); }  // half to even
    static I bits(F a) { return _mm512_castps_si512(a); }
    static F from_bits(I a) { return _mm512_castsi512_ps(a); }
    static void store_i8(std::int8_t* p, I a) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
    }
    static std::int32_t sum_i(I a) { return _mm512_reduce_add_epi32(a); }
    static std::int32_t largest_i(I a) { return _mm512_reduce_max_epi32(a); }

    // acc[lane] += Σ over 4 of w.u8[4 lane + i] * x.s8[i]; with bytes_shifted, `dot` takes w − 128 for w.
    static constexpr bool bytes_shifted = false;
    using Bytes = __m512i;
    static I dot(I acc, Bytes w, const std::int8_t* x) {
        std::int32_t four;
        __builtin_memcpy(&four, x, 4);
        return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(four));
    }
    static I dot_nibbles(I acc, Bytes w, const std::int8_t* x) { return dot(acc, w, x); }
    static Bytes load_bytes(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
    static Bytes low_nibbles(Bytes b) { return _mm512_and_si512(b, _mm512_set1_epi8(15)); }
    static Bytes high_nibbles(Bytes b) {
        return _mm512_and_si512(_mm512_srli_epi16(b, 4), _mm512_set1_epi8(15));
    }
    static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

    // Over lanes, as a tree: i with i + 8, then + 4, + 2, + 1.
    static float sum(F v) {
        const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
        return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
    }
    static float largest(F v) {
        const __m256 a = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
        return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
    }

  private:
    static __mmask16 mask(int n) { return __mmask16(n >= 16 ? 0xFFFFU : (1U << n) - 1U); }
};

}  // namespace recto::cpu
