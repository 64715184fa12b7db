// Sixteen lanes in two AVX2 registers; see lanes_avx512.h.
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace recto::cpu {

struct Avx2Lanes {
    struct F {
        __m256 a, b;
    };
    struct I {
        __m256i a, b;
    };
    static constexpr int max_rows = 4;

    // --- floats
    static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
    static F set1(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
    static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
    static void store(float* p, F v) {
        _mm256_storeu_ps(p, v.a);
        _mm256_storeu_ps(p + 8, v.b);
    }
    static F load_n(const float* p, int n) {
        return {_mm256_maskload_ps(p, mask(n)),
                n > 8 ? _mm256_maskload_ps(p + 8, mask(n - 8)) : _mm256_setzero_ps()};
    }
    static void store_n(float* p, F v, int n) {
        _mm256_maskstore_ps(p, mask(n), v.a);
        if (n > 8) _mm256_maskstore_ps(p + 8, mask(n - 8), v.b);
    }
    static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
    static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
    static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
    static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
    static F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
    static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
    static F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
    static F if_less(F x, F y, F yes, F no) {
        return {_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
                _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
    }
    static F first_n(F v, int n, F rest) {
        return {_mm256_blendv_ps(rest.a, v.a, _mm256_castsi256_ps(mask(n))),
                _mm256_blendv_ps(rest.b, v.b, _mm256_castsi256_ps(mask(n - 8)))};
    }
    static F load_f16(const std::uint16_t* p) { return load_f16_halves(p, p + 8); }
    static F load_bf16(const std::uint16_t* p) { return load_bf16_halves(p, p + 8); }
    static void store_f16(std::uint16_t* p, F v) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT));
    }
    static F load_halves(const float* lo, const float* hi) {
        return {_mm256_loadu_ps(lo), _mm256_loadu_ps(hi)};
    }
    static F load_f16_halves(const std::uint16_t* lo, const std::uint16_t* hi) {
        return {_mm256_cvtph_ps(half(lo)), _mm256_cvtph_ps(half(hi))};
    }
    static F load_bf16_halves(const std::uint16_t* lo, const std::uint16_t* hi) {
        return {widen_bf16(lo), widen_bf16(hi)};
    }
    static F load_u8(const std::uint8_t* p) {
        const __m128i b = half(p);
        return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(b)),
                _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(b, 8)))};
    }
    static F load_i8(const std::int8_t* p) {
        const __m128i b = half(p);
        return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)),
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(b, 8)))};
    }
    static F load_u4(const std::uint8_t* p) {
        const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
        const __m128i low = _mm_and_si128(b, _mm_set1_epi8(15));
        const __m128i high = _mm_and_si128(_mm_srli_epi16(b, 4), _mm_set1_epi8(15));
        return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low)),
                _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(high))};
    }

    // --- integers
    static I zero_i() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
    static I set1_i(std::int32_t v) { return {_mm256_set1_epi32(v), _mm256_set1_epi32(v)}; }
    static I load_i(const void* p) {
        const auto* q = static_cast<const __m256i*>(p);
        return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
    }
    static I and_i(I x, I y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
    static I add_i(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
    static I sub_i(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
    static I max_i(I x, I y) { return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)}; }
    template <int N>
    static I shift_left(I x) {
        return {_mm256_slli_epi32(x.a, N), _mm256_slli_epi32(x.b, N)};
    }
    template <int N>
    static I shift_right(I x) {
        return {_mm256_srli_epi32(x.a, N), _mm256_srli_epi32(x.b, N)};
    }
    static F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
    static I round(F x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
    static I bits(F x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
    static F from_bits(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
    static void store_i8(std::int8_t* p, I x) {
        const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                         _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
    }
    static std::int32_t sum_i(I x) {
        const __m256i s = _mm256_add_epi32(x.a, x.b);
        __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
        t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4E));
        return _mm_cvtsi128_si32(_mm_add_epi32(t, _mm_shuffle_epi32(t, 0xB1)));
    }
    static std::int32_t largest_i(I x) {
        const __m256i s = _mm256_max_epi32(x.a, x.b);
        __m128i t = _mm_max_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
        t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4E));
        return _mm_cvtsi128_si32(_mm_max_epi32(t, _mm_shuffle_epi32(t, 0xB1)));
    }

    using Bytes = I;
    // vpmaddubsw saturates at 16 bits, so full bytes are taken as u − 128: two products of |u − 128| ≤ 128
    // and |x| ≤ 127 stay within 32,512.
    static constexpr bool bytes_shifted = true;
    static I dot(I acc, Bytes w, const std::int8_t* x) {
        const __m256i v = four(x), flip = _mm256_set1_epi8(-128), one = _mm256_set1_epi16(1);
        const __m256i sa = _mm256_xor_si256(w.a, flip), sb = _mm256_xor_si256(w.b, flip);
        const __m256i pa = _mm256_maddubs_epi16(_mm256_abs_epi8(sa), _mm256_sign_epi8(v, sa));
        const __m256i pb = _mm256_maddubs_epi16(_mm256_abs_epi8(sb), _mm256_sign_epi8(v, sb));
        return {_mm256_add_epi32(acc.a, _mm256_madd_epi16(pa, one)),
                _mm256_add_epi32(acc.b, _mm256_madd_epi16(pb, one))};
    }
    // Weights 0 … 15: two products are at most 3810.
    static I dot_nibbles(I acc, Bytes w, const std::int8_t* x) {
        const __m256i v = four(x), one = _mm256_set1_epi16(1);
        return {_mm256_add_epi32(acc.a, _mm256_madd_epi16(_mm256_maddubs_epi16(w.a, v), one)),
                _mm256_add_epi32(acc.b, _mm256_madd_epi16(_mm256_maddubs_epi16(w.b, v), one))};
    }
    static Bytes load_bytes(const std::uint8_t* p) { return load_i(p); }
    static Bytes low_nibbles(Bytes x) {
        const __m256i m = _mm256_set1_epi8(15);
        return {_mm256_and_si256(x.a, m), _mm256_and_si256(x.b, m)};
    }
    static Bytes high_nibbles(Bytes x) {
        const __m256i m = _mm256_set1_epi8(15);
        return {_mm256_and_si256(_mm256_srli_epi16(x.a, 4), m),
                _mm256_and_si256(_mm256_srli_epi16(x.b, 4), m)};
    }
    static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

    static float sum(F v) {
        const __m256 a = _mm256_add_ps(v.a, v.b);
        const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
        return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
    }
    static float largest(F v) {
        const __m256 a = _mm256_max_ps(v.a, v.b);
        const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
        return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
    }

  protected:
    static __m256i mask(int n) {
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
    static __m128i half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
    static __m256 widen_bf16(const std::uint16_t* p) {
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half(p)), 16));
    }
    static __m256i four(const std::int8_t* x) {
        std::int32_t v;
        __builtin_memcpy(&v, x, 4);
        return _mm256_set1_epi32(v);
    }
};

}  // namespace recto::cpu
