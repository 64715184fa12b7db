// Sixteen lanes as plain loops; see lanes_avx512.h. std::fma keeps the fused roundings.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/dtype.h"

namespace recto::cpu {

struct ScalarLanes {
    struct F {
        float v[16];
    };
    struct I {
        std::int32_t v[16];
    };
    static constexpr int max_rows = 4;

    template <class Op>
    static F each(Op op) {
        F r;
        for (int i = 0; i < 16; ++i)
            r.v[i] = op(i);
        return r;
    }
    template <class Op>
    static I each_i(Op op) {
        I r;
        for (int i = 0; i < 16; ++i)
            r.v[i] = op(i);
        return r;
    }

    // --- floats
    static F zero() { return set1(0.0F); }
    static F set1(float x) {
        return each([&](int) { return x; });
    }
    static F load(const float* p) {
        return each([&](int i) { return p[i]; });
    }
    static void store(float* p, const F& x) { store_n(p, x, 16); }
    static F load_n(const float* p, int n) {
        return each([&](int i) { return i < n ? p[i] : 0.0F; });
    }
    static void store_n(float* p, const F& x, int n) {
        for (int i = 0; i < n && i < 16; ++i)
            p[i] = x.v[i];
    }
    static F add(const F& x, const F& y) {
        return each([&](int i) { return x.v[i] + y.v[i]; });
    }
    static F sub(const F& x, const F& y) {
        return each([&](int i) { return x.v[i] - y.v[i]; });
    }
    static F mul(const F& x, const F& y) {
        return each([&](int i) { return x.v[i] * y.v[i]; });
    }
    static F div(const F& x, const F& y) {
        return each([&](int i) { return x.v[i] / y.v[i]; });
    }
    static F fma(const F& x, const F& y, const F& z) {
        return each([&](int i) { return std::fma(x.v[i], y.v[i], z.v[i]); });
    }
    static F max(const F& x, const F& y) {
        return each([&](int i) { return x.v[i] > y.v[i] ? x.v[i] : y.v[i]; });
    }
    static F min(const F& x, const F& y) {
        return each([&](int i) { return x.v[i] < y.v[i] ? x.v[i] : y.v[i]; });
    }
    static F if_less(const F& x, const F& y, const F& yes, const F& no) {
        return each([&](int i) { return x.v[i] < y.v[i] ? yes.v[i] : no.v[i]; });
    }
    static F first_n(const F& x, int n, const F& rest) {
        return each([&](int i) { return i < n ? x.v[i] : rest.v[i]; });
    }
    static F load_f16(const std::uint16_t* p) { return load_f16_halves(p, p + 8); }
    static F load_bf16(const std::uint16_t* p) { return load_bf16_halves(p, p + 8); }
    static void store_f16(std::uint16_t* p, const F& x) {
        for (int i = 0; i < 16; ++i)
            p[i] = f32_to_f16(x.v[i]);
    }
    static F load_halves(const float* lo, const float* hi) {
        return each([&](int i) { return i < 8 ? lo[i] : hi[i - 8]; });
    }
    static F load_f16_halves(const std::uint16_t* lo, const std::uint16_t* hi) {
        return each([&](int i) { return f16_to_f32(i < 8 ? lo[i] : hi[i - 8]); });
    }
    static F load_bf16_halves(const std::uint16_t* lo, const std::uint16_t* hi) {
        return each([&](int i) { return bf16_to_f32(i < 8 ? lo[i] : hi[i - 8]); });
    }
    static F load_u8(const std::uint8_t* p) {
        return each([&](int i) { return float(p[i]); });
    }
    static F load_i8(const std::int8_t* p) {
        return each([&](int i) { return float(p[i]); });
    }
    static F load_u4(const std::uint8_t* p) {
        return each([&](int i) { return float(i < 8 ? p[i] & 15 : p[i - 8] >> 4); });
    }

    // --- integers
    static I zero_i() { return set1_i(0); }
    static I set1_i(std::int32_t x) {
        return each_i([&](int) { return x; });
    }
    static I load_i(const void* p) {
        I r;
        __builtin_memcpy(r.v, p, sizeof r.v);
        return r;
    }
    static I and_i(const I& x, const I& y) {
        return each_i([&](int i) { return x.v[i] & y.v[i]; });
    }
    static I add_i(const I& x, const I& y) {
        return each_i([&](int i) { return wrap(std::uint32_t(x.v[i]) + std::uint32_t(y.v[i])); });
    }
    static I sub_i(const I& x, const I& y) {
        return each_i([&](int i) { return wrap(std::uint32_t(x.v[i]) - std::uint32_t(y.v[i])); });
    }
    static I max_i(const I& x, const I& y) {
        return each_i([&](int i) { return x.v[i] > y.v[i] ? x.v[i] : y.v[i]; });
    }
    template <int N>
    static I shift_left(const I& x) {
        return each_i([&](int i) { return wrap(std::uint32_t(x.v[i]) << N); });
    }
    template <int N>
    static I shift_right(const I& x) {
        return each_i([&](int i) { return wrap(std::uint32_t(x.v[i]) >> N); });
    }
    static F to_float(const I& x) {
        return each([&](int i) { return float(x.v[i]); });
    }
    // Out of range (and NaN) gives the smallest integer, as the vector instruction does.
    static I round(const F& x) {
        return each_i([&](int i) {
            const float r = std::nearbyint(x.v[i]);
            return r >= -0x1p31F && r < 0x1p31F ? std::int32_t(r) : INT32_MIN;
        });
    }
    static I bits(const F& x) {
        return each_i([&](int i) { return std::bit_cast<std::int32_t>(x.v[i]); });
    }
    static F from_bits(const I& x) {
        return each([&](int i) { return std::bit_cast<float>(x.v[i]); });
    }
    static void store_i8(std::int8_t* p, const I& x) {
        for (int i = 0; i < 16; ++i)
            p[i] = std::int8_t(x.v[i]);
    }
    static std::int32_t sum_i(const I& x) {
        std::int32_t s = 0;
        for (const std::int32_t e : x.v)
            s += e;
        return s;
    }
    static std::int32_t largest_i(const I& x) {
        std::int32_t s = x.v[0];
        for (const std::int32_t e : x.v)
            s = e > s ? e : s;
        return s;
    }

    struct Bytes {
        std::uint8_t v[64];
    };
    static constexpr bool bytes_shifted = false;
    static I dot(const I& acc, const Bytes& w, const std::int8_t* x) {
        return each_i([&](int i) {
            std::int32_t s = acc.v[i];
            for (int j = 0; j < 4; ++j)
                s += std::int32_t(w.v[4 * i + j]) * x[j];
            return s;
        });
    }
    static I dot_nibbles(const I& acc, const Bytes& w, const std::int8_t* x) { return dot(acc, w, x); }
    static Bytes load_bytes(const std::uint8_t* p) {
        Bytes r;
        __builtin_memcpy(r.v, p, sizeof r.v);
        return r;
    }
    static Bytes low_nibbles(const Bytes& b) {
        Bytes r;
        for (int i = 0; i < 64; ++i)
            r.v[i] = b.v[i] & 15;
        return r;
    }
    static Bytes high_nibbles(const Bytes& b) {
        Bytes r;
        for (int i = 0; i < 64; ++i)
            r.v[i] = b.v[i] >> 4;
        return r;
    }
    static void prefetch(const void*) {}

    static float sum(F x) {
        for (int n = 8; n > 0; n /= 2) {
            for (int i = 0; i < n; ++i)
                x.v[i] = x.v[i] + x.v[i + n];
        }
        return x.v[0];
    }
    static float largest(F x) {
        for (int n = 8; n > 0; n /= 2) {
            for (int i = 0; i < n; ++i)
                x.v[i] = x.v[i] > x.v[i + n] ? x.v[i] : x.v[i + n];
        }
        return x.v[0];
    }

  private:
    static std::int32_t wrap(std::uint32_t x) { return std::bit_cast<std::int32_t>(x); }
};

}  // namespace recto::cpu
