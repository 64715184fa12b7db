// Operations on rows, over lanes.
#pragma once
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/math_lanes.h"

namespace recto::cpu {

template <class L>
void epilogue_rows(Epilogue kind, const float* a, const float* b, const float* bias_a, const float* bias_b,
                   int rows, float* out, std::int64_t stride, int n) {
    for (int r = 0; r < rows; ++r, a += lanes, out += stride) {
        typename L::F v = L::load(a);
        if (bias_a != nullptr) v = L::add(v, L::load(bias_a));
        if (kind == Epilogue::add) v = L::add(L::load_n(out, n), v);
        if (kind == Epilogue::silu_mul || kind == Epilogue::gelu_mul) {
            typename L::F up = L::load(b + r * lanes);
            if (bias_b != nullptr) up = L::add(up, L::load(bias_b));
            v = L::mul(kind == Epilogue::silu_mul ? silu_lanes<L>(v) : gelu_lanes<L>(v), up);
        }
        L::store_n(out, v, n);
    }
}

// Squares are summed in 16 lanes (column mod 16), then over lanes as a tree.
template <class L>
void rms_norm_row(const float* x, const float* weight, float eps, std::int64_t n, float* out) {
    typename L::F squares = L::zero();
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const typename L::F v = L::load(x + i);
        squares = L::fma(v, v, squares);
    }
    const int rest = int(n - i);
    if (rest > 0) {
        const typename L::F v = L::load_n(x + i, rest);
        squares = L::fma(v, v, squares);
    }
    const typename L::F inverse = L::set1(1.0F / std::sqrt(L::sum(squares) / float(n) + eps));
    for (i = 0; i + lanes <= n; i += lanes) {
        L::store(out + i, L::mul(L::mul(L::load(x + i), inverse), L::load(weight + i)));
    }
    if (rest > 0) {
        L::store_n(out + i, L::mul(L::mul(L::load_n(x + i, rest), inverse), L::load_n(weight + i, rest)),
                   rest);
    }
}

template <class L>
void add_row(float* x, const float* delta, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += lanes) {
        const int m = int(n - i < lanes ? n - i : lanes);
        L::store_n(x + i, L::add(L::load_n(x + i, m), L::load_n(delta + i, m)), m);
    }
}

template <class L>
void rotate_head(float* x, const float* cos_sin, int dims) {
    const int half = dims / 2;
    for (int i = 0; i < half; i += lanes) {
        const int m = half - i < lanes ? half - i : lanes;
        const typename L::F a = L::load_n(x + i, m), b = L::load_n(x + half + i, m);
        const typename L::F c = L::load_n(cos_sin + i, m), s = L::load_n(cos_sin + half + i, m);
        L::store_n(x + i, L::sub(L::mul(a, c), L::mul(b, s)), m);
        L::store_n(x + half + i, L::add(L::mul(b, c), L::mul(a, s)), m);
    }
}

// Head dimensions come in runs of 8 at least; `narrow` turns up to 16 of them into the cache's dtype.
template <class L>
void narrow_f16(const float* x, int n, std::uint16_t* out) {
    std::uint16_t all[lanes];
    L::store_f16(all, L::load_n(x, n));
    std::memcpy(out, all, std::size_t(n) * 2);
}

template <class L>
void store_k_head(DType dtype, const float* x, int head_dim, int block_size, int slot, void* k) {
    if (dtype == DType::f32) {
        auto* to = static_cast<float*>(k) + slot;
        for (int d = 0; d < head_dim; ++d)
            to[std::ptrdiff_t(d) * block_size] = x[d];
        return;
    }
    auto* to = static_cast<std::uint16_t*>(k) + slot;
    for (int d = 0; d < head_dim; d += lanes) {
        const int n = head_dim - d < lanes ? head_dim - d : lanes;
        std::uint16_t narrow[lanes];
        if (dtype == DType::f16) {
            narrow_f16<L>(x + d, n, narrow);
        } else {
            for (int i = 0; i < n; ++i)
                narrow[i] = f32_to_bf16(x[d + i]);
        }
        for (int i = 0; i < n; ++i)
            to[std::ptrdiff_t(d + i) * block_size] = narrow[i];
    }
}

template <class L>
void store_v_head(DType dtype, const float* x, int head_dim, int slot, void* v) {
    if (dtype == DType::f32) {
        std::memcpy(static_cast<float*>(v) + std::ptrdiff_t(slot) * head_dim, x, std::size_t(head_dim) * 4);
        return;
    }
    auto* to = static_cast<std::uint16_t*>(v) + std::ptrdiff_t(slot) * head_dim;
    for (int d = 0; d < head_dim; d += lanes) {
        const int n = head_dim - d < lanes ? head_dim - d : lanes;
        if (dtype == DType::f16) {
            narrow_f16<L>(x + d, n, to + d);
        } else {
            for (int i = 0; i < n; ++i)
                to[d + i] = f32_to_bf16(x[d + i]);
        }
    }
}

// The lowest index of the largest element; −1 when one is a NaN or an infinity.
template <class L>
std::int32_t argmax_row(const float* x, std::int64_t n) {
    constexpr std::int64_t block = 1024;  // the first block that holds the largest is then searched
    const auto magnitude = L::set1_i(0x7FFFFFFF);
    auto top_bits = L::zero_i();
    float best = 0;
    std::int64_t best_block = -1;
    for (std::int64_t b = 0; b < n; b += block) {
        const std::int64_t end = b + block < n ? b + block : n;
        const typename L::F first = L::set1(x[b]);
        typename L::F top = first;
        for (std::int64_t i = b; i < end; i += lanes) {
            const int m = int(end - i < lanes ? end - i : lanes);
            const typename L::F v = L::first_n(L::load_n(x + i, m), m, first);
            top = L::max(top, v);
            top_bits = L::max_i(top_bits, L::and_i(L::bits(v), magnitude));
        }
        const float largest = L::largest(top);
        if (best_block < 0 || largest > best) {
            best = largest;
            best_block = b;
        }
    }
    if (best_block < 0 || L::largest_i(top_bits) >= 0x7F800000) return -1;
    std::int64_t i = best_block;
    while (x[i] != best)
        ++i;
    return std::int32_t(i);
}

}  // namespace recto::cpu
