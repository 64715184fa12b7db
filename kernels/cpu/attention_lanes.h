// Attention of query vectors over one partition of 256 positions of one KV head, and the merge of partitions.
//
// Partitions and their tiles of 16 are counted from position 0, and everything that a query adds up, it adds
// in ascending position: scores over head_dim in order, numerators in 16 lanes (position mod 16), values in
// order, partitions as a left fold. Queries share loads but no sums, so a query's bits do not depend on its
// neighbours, on the block size, or on who computed which partition. The split over the context is
// FlashDecoding's (Dao et al. 2023); the online softmax is Milakov & Gimelshein's (2018).
#pragma once
#include <cstring>
#include <limits>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/math_lanes.h"

namespace recto::cpu {

template <class L, DType D>
inline typename L::F load_k(const void* lo, const void* hi, std::ptrdiff_t at) {
    if constexpr (D == DType::f32) {
        return L::load_halves(static_cast<const float*>(lo) + at, static_cast<const float*>(hi) + at);
    } else {
        const auto* a = static_cast<const std::uint16_t*>(lo) + at;
        const auto* b = static_cast<const std::uint16_t*>(hi) + at;
        return D == DType::f16 ? L::load_f16_halves(a, b) : L::load_bf16_halves(a, b);
    }
}

template <class L, DType D>
inline typename L::F load_v(const void* row, std::ptrdiff_t at) {
    if constexpr (D == DType::f32) return L::load(static_cast<const float*>(row) + at);
    if constexpr (D == DType::f16) return L::load_f16(static_cast<const std::uint16_t*>(row) + at);
    if constexpr (D == DType::bf16) return L::load_bf16(static_cast<const std::uint16_t*>(row) + at);
}

// Scores of 16 positions for N queries from `first`.
template <class L, DType D, int N>
void score_tile(const PartitionArgs& a, int first, int tile) {
    typename L::F acc[N];
    const float* q[N];
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n) {
        acc[n] = L::zero();
        q[n] = a.q[first + n];
    }
    const void* lo = a.k_units[2 * tile];
    const void* hi = a.k_units[2 * tile + 1];
    for (int d = 0; d < a.head_dim; ++d) {
        const typename L::F k = load_k<L, D>(lo, hi, std::ptrdiff_t(d) * a.block_size);
#pragma GCC unroll 12
        for (int n = 0; n < N; ++n)
            acc[n] = L::fma(L::set1(q[n][d]), k, acc[n]);
    }
    const typename L::F scale = L::set1(a.scale);
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n) {
        typename L::F s = L::mul(acc[n], scale);
        if (a.softcap > 0) {
            const typename L::F cap = L::set1(a.softcap);
            s = L::mul(cap, tanh_lanes<L>(L::div(s, cap)));
        }
        L::store(a.scores + (first + n) * partition_tokens + tile * lanes, s);
    }
}

template <class L, DType D>
void scores(const PartitionArgs& a, int tile) {
    int n = 0;
    if constexpr (L::max_rows >= 12) {
        for (; n + 12 <= a.n; n += 12)
            score_tile<L, D, 12>(a, n, tile);
        for (; n + 6 <= a.n; n += 6)
            score_tile<L, D, 6>(a, n, tile);
    }
    for (; n + 3 <= a.n; n += 3)
        score_tile<L, D, 3>(a, n, tile);
    for (; n < a.n; ++n)
        score_tile<L, D, 1>(a, n, tile);
}

// Scores of query n become numerators of its softmax, zero outside lo … hi.
template <class L>
void softmax_row(const PartitionArgs& a, int n) {
    using F = typename L::F;
    float* s = a.scores + n * partition_tokens;
    const F none = L::set1(-std::numeric_limits<float>::infinity());
    const int lo = a.lo[n], hi = a.hi[n];
    const int first = lo / lanes, last = (hi + lanes - 1) / lanes;
    F top = none;
    for (int t = first; t < last; ++t) {
        F v = L::load(s + t * lanes);
        if (hi < (t + 1) * lanes) v = L::first_n(v, hi - t * lanes, none);
        if (lo > t * lanes) v = L::first_n(none, lo - t * lanes, v);
        L::store(s + t * lanes, v);
        top = L::max(top, v);
    }
    const float maximum = L::largest(top);
    const F m = L::set1(maximum);
    F sum = L::zero();
    for (int t = first; t < last; ++t) {
        const F p = exp_lanes<L>(L::sub(L::load(s + t * lanes), m));
        L::store(s + t * lanes, p);
        sum = L::add(sum, p);
    }
    a.maximum[n] = maximum;
    a.sum[n] = L::sum(sum);
}

// out += Σ p · V over positions begin … end for N queries, Width vectors of dimensions from `at`.
template <class L, DType D, int N, int Width>
void values_block(const PartitionArgs& a, int first, int begin, int end, std::int64_t at) {
    typename L::F acc[N][Width];
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 4
        for (int j = 0; j < Width; ++j)
            acc[n][j] = L::load(a.out + (first + n) * a.head_stride + at + j * lanes);
    }
    const float* p = a.scores + first * partition_tokens;
    for (int i = begin; i < end; ++i) {
        const void* unit = a.v_units[i / kv_unit];
        const std::ptrdiff_t row = std::ptrdiff_t(i % kv_unit) * a.head_dim + at;
        typename L::F v[Width];
#pragma GCC unroll 4
        for (int j = 0; j < Width; ++j)
            v[j] = load_v<L, D>(unit, row + j * lanes);
#pragma GCC unroll 12
        for (int n = 0; n < N; ++n) {
            const typename L::F w = L::set1(p[n * partition_tokens + i]);
#pragma GCC unroll 4
            for (int j = 0; j < Width; ++j)
                acc[n][j] = L::fma(w, v[j], acc[n][j]);
        }
    }
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 4
        for (int j = 0; j < Width; ++j)
            L::store(a.out + (first + n) * a.head_stride + at + j * lanes, acc[n][j]);
    }
}

template <class L, DType D, int N>
void values(const PartitionArgs& a, int first, int begin, int end) {
    if (begin >= end) return;
    constexpr int width = L::max_rows >= 12 ? 4 : 2;
    std::int64_t at = 0;
    for (; at + width * lanes <= a.head_stride; at += width * lanes) {
        values_block<L, D, N, width>(a, first, begin, end, at);
    }
    for (; at < a.head_stride; at += lanes)
        values_block<L, D, N, 1>(a, first, begin, end, at);
}

// N queries together where all see a position, each alone at the edges of its window: what a query must not
// see is never multiplied, not even by zero.
template <class L, DType D, int N>
void values_of(const PartitionArgs& a, int first) {
    int begin = a.lo[first], end = a.hi[first];
    for (int n = 1; n < N; ++n) {
        begin = a.lo[first + n] > begin ? a.lo[first + n] : begin;
        end = a.hi[first + n] < end ? a.hi[first + n] : end;
    }
    if (begin >= end) {
#pragma GCC unroll 12
        for (int n = 0; n < N; ++n)
            values<L, D, 1>(a, first + n, a.lo[first + n], a.hi[first + n]);
        return;
    }
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n)
        values<L, D, 1>(a, first + n, a.lo[first + n], begin);
    values<L, D, N>(a, first, begin, end);
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n)
        values<L, D, 1>(a, first + n, end, a.hi[first + n]);
}

template <class L, DType D>
void partition(const PartitionArgs& a) {
    int lo = a.lo[0], hi = a.hi[0];
    for (int n = 1; n < a.n; ++n) {
        lo = a.lo[n] < lo ? a.lo[n] : lo;
        hi = a.hi[n] > hi ? a.hi[n] : hi;
    }
    for (int t = lo / lanes; t < (hi + lanes - 1) / lanes; ++t)
        scores<L, D>(a, t);
    for (int n = 0; n < a.n; ++n)
        softmax_row<L>(a, n);
    for (std::int64_t i = 0; i < a.n * a.head_stride; i += lanes)
        L::store(a.out + i, L::zero());
    int n = 0;
    if constexpr (L::max_rows >= 12) {
        for (; n + 6 <= a.n; n += 6)
            values_of<L, D, 6>(a, n);
    }
    for (; n + 3 <= a.n; n += 3)
        values_of<L, D, 3>(a, n);
    for (; n < a.n; ++n)
        values_of<L, D, 1>(a, n);
}

template <class L>
PartitionKernel select_partition(DType kv) {
    switch (kv) {
        case DType::f32:
            return partition<L, DType::f32>;
        case DType::f16:
            return partition<L, DType::f16>;
        case DType::bf16:
            return partition<L, DType::bf16>;
        default:
            return nullptr;
    }
}

template <class L>
void merge_state(float* maximum, float* sum, float* out, float m, float l, const float* o, int head_dim) {
    using F = typename L::F;
    const float top = *maximum > m ? *maximum : m;
    float scales[lanes] = {*maximum - top, m - top};
    L::store(scales, exp_lanes<L>(L::load(scales)));
    const F a = L::set1(scales[0]), b = L::set1(scales[1]);
    for (int d = 0; d < head_dim; d += lanes) {
        L::store(out + d, L::fma(L::load(out + d), a, L::mul(L::load(o + d), b)));
    }
    *sum = *sum * scales[0] + l * scales[1];
    *maximum = top;
}

template <class L>
void finish_state(const float* state, float sum, int head_dim, float* out) {
    const typename L::F total = L::set1(sum);
    for (int d = 0; d < head_dim; d += lanes) {
        const int n = head_dim - d < lanes ? head_dim - d : lanes;
        L::store_n(out + d, L::div(L::load(state + d), total), n);
    }
}

}  // namespace recto::cpu
