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

// Queries are copied side by side at this distance, so that a kernel reaches all of them from one register;
// not a multiple of 1 KiB, so that they do not crowd a few sets of the cache.
constexpr int query_stride = 272;
constexpr int query_dims = 256;  // dimensions at a time

// Where score_tiles is in its work.
struct ScorePlace {
    const float* q = nullptr;  // [N][query_stride], dimensions from d0
    int first = 0;             // query
    int tile = 0;
    int d0 = 0, d1 = 0;
    const void* const* fetch = nullptr;  // two units a tile, or null
};

// Scores of T tiles of 16 positions for N queries over dimensions d0 … d1.
template <class L, DType D, int N, int T>
void score_tiles(const PartitionArgs& a, const ScorePlace& at) {
    typename L::F acc[T][N];
    const void *lo[T], *hi[T];
    float* scores = a.scores + at.first * partition_tokens + at.tile * lanes;
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
        lo[t] = a.k_units[2 * (at.tile + t)];
        hi[t] = a.k_units[2 * (at.tile + t) + 1];
#pragma GCC unroll 12
        for (int n = 0; n < N; ++n)
            acc[t][n] = at.d0 == 0 ? L::zero() : L::load(scores + n * partition_tokens + t * lanes);
    }
    constexpr std::ptrdiff_t element = D == DType::f32 ? 4 : 2;
    const int half = a.head_dim / 2;
    const float* q = at.q;
    for (int d = at.d0; d < at.d1; ++d, ++q) {
        if (at.fetch != nullptr && (element == 4 || d % 2 == 0)) {
            const std::ptrdiff_t offset = std::ptrdiff_t(d < half ? d : d - half) * 2 * kv_unit * element;
#pragma GCC unroll 4
            for (int t = 0; t < T; ++t)
                L::prefetch(static_cast<const char*>(at.fetch[2 * t + (d < half ? 0 : 1)]) + offset);
        }
        typename L::F k[T];
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t)
            k[t] = load_k<L, D>(lo[t], hi[t], std::ptrdiff_t(d) * a.block_size);
#pragma GCC unroll 12
        for (int n = 0; n < N; ++n) {
            const typename L::F x = L::set1(q[n * query_stride]);
#pragma GCC unroll 4
            for (int t = 0; t < T; ++t)
                acc[t][n] = L::fma(x, k[t], acc[t][n]);
        }
    }
    const bool last = at.d1 == a.head_dim;
    const typename L::F scale = L::set1(a.scale);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 12
        for (int n = 0; n < N; ++n) {
            typename L::F s = acc[t][n];
            if (last) s = L::mul(s, scale);
            if (last && a.softcap > 0) {
                const typename L::F cap = L::set1(a.softcap);
                s = L::mul(cap, tanh_lanes<L>(L::div(s, cap)));
            }
            L::store(scores + n * partition_tokens + t * lanes, s);
        }
    }
}

// Scores of N queries from `first` in tiles begin … end. T tiles at a time keep enough sums going that none
// waits for the one before it.
template <class L, DType D, int N>
void score_queries(const PartitionArgs& a, int first, int begin, int end, const void* const* fetch) {
    constexpr int T = L::max_rows >= 12 ? (N > 6 ? 2 : 4) : (N > 2 ? 1 : 2);
    static_assert(2 * T <= units_ahead);
    float q[N * query_stride];
    for (int d0 = 0; d0 < a.head_dim; d0 += query_dims) {
        ScorePlace at{q,      first, begin, d0, d0 + query_dims < a.head_dim ? d0 + query_dims : a.head_dim,
                      nullptr};
        for (int n = 0; n < N; ++n)
            std::memcpy(q + n * query_stride, a.q[first + n] + d0, std::size_t(at.d1 - d0) * sizeof(float));
        auto ahead = [&] { return fetch == nullptr ? nullptr : fetch + 2 * (at.tile - begin) + units_ahead; };
        for (; at.tile + T <= end; at.tile += T) {
            at.fetch = ahead();
            score_tiles<L, D, N, T>(a, at);
        }
        for (; at.tile < end; ++at.tile) {
            at.fetch = ahead();
            score_tiles<L, D, N, 1>(a, at);
        }
    }
}

// The largest group of queries that is compiled and not more than n.
constexpr int group_of(int n, bool wide) {
    if (wide && n >= 12) return 12;
    if (wide && n >= 8) return 8;
    if (wide && n >= 6) return 6;
    if (wide && n >= 4) return 4;
    return n >= 3 ? 3 : n >= 2 ? 2 : 1;
}

template <class L, DType D>
void scores(const PartitionArgs& a, int begin, int end) {
    constexpr bool wide = L::max_rows >= 12;
    for (int n = 0; n < a.n;) {
        const void* const* fetch = n == 0 ? a.fetch : nullptr;
        const int group = group_of(a.n - n, wide);
        if constexpr (wide) {
            if (group == 12) score_queries<L, D, 12>(a, n, begin, end, fetch);
            if (group == 8) score_queries<L, D, 8>(a, n, begin, end, fetch);
            if (group == 6) score_queries<L, D, 6>(a, n, begin, end, fetch);
            if (group == 4) score_queries<L, D, 4>(a, n, begin, end, fetch);
        }
        if (group == 3) score_queries<L, D, 3>(a, n, begin, end, fetch);
        if (group == 2) score_queries<L, D, 2>(a, n, begin, end, fetch);
        if (group == 1) score_queries<L, D, 1>(a, n, begin, end, fetch);
        n += group;
    }
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
        const F p = exp_nonpositive<L>(L::sub(L::load(s + t * lanes), m));
        L::store(s + t * lanes, p);
        sum = L::add(sum, p);
    }
    a.maximum[n] = maximum;
    a.sum[n] = L::sum(sum);
}

// V's units that are asked for while others are multiplied: those of unit u at units[u - first].
struct ValuesAhead {
    const void* const* units = nullptr;
    int first = 0;
};

// out += Σ p · V over positions begin … end for N queries, Width vectors of dimensions from `at`.
template <class L, DType D, int N, int Width>
void values_block(const PartitionArgs& a, int first, int begin, int end, std::int64_t at,
                  const ValuesAhead& fetch) {
    constexpr std::ptrdiff_t element = D == DType::f32 ? 4 : 2;
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
        if (fetch.units != nullptr) {
            const auto* ahead =
                static_cast<const char*>(fetch.units[i / kv_unit - fetch.first]) + row * element;
#pragma GCC unroll 4
            for (std::ptrdiff_t j = 0; j < Width * lanes * element; j += 64)
                L::prefetch(ahead + j);
        }
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
void values(const PartitionArgs& a, int first, int begin, int end, const ValuesAhead& fetch) {
    if (begin >= end) return;
    constexpr int width = L::max_rows >= 12 ? 4 : 2;
    std::int64_t at = 0;
    for (; at + width * lanes <= a.head_stride; at += width * lanes) {
        values_block<L, D, N, width>(a, first, begin, end, at, fetch);
    }
    for (; at < a.head_stride; at += lanes)
        values_block<L, D, N, 1>(a, first, begin, end, at, fetch);
}

// N queries together where all see a position, each alone at the edges of its window: what a query must not
// see is never multiplied, not even by zero.
template <class L, DType D, int N>
void values_of(const PartitionArgs& a, int first, const ValuesAhead& fetch) {
    int begin = a.lo[first], end = a.hi[first];
    for (int n = 1; n < N; ++n) {
        begin = a.lo[first + n] > begin ? a.lo[first + n] : begin;
        end = a.hi[first + n] < end ? a.hi[first + n] : end;
    }
    if (begin >= end) {
#pragma GCC unroll 12
        for (int n = 0; n < N; ++n)
            values<L, D, 1>(a, first + n, a.lo[first + n], a.hi[first + n], {});
        return;
    }
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n)
        values<L, D, 1>(a, first + n, a.lo[first + n], begin, {});
    values<L, D, N>(a, first, begin, end, fetch);
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n)
        values<L, D, 1>(a, first + n, end, a.hi[first + n], {});
}

template <class L, DType D>
void partition(const PartitionArgs& a) {
    int lo = a.lo[0], hi = a.hi[0];
    for (int n = 1; n < a.n; ++n) {
        lo = a.lo[n] < lo ? a.lo[n] : lo;
        hi = a.hi[n] > hi ? a.hi[n] : hi;
    }
    const int begin = lo / lanes, end = (hi + lanes - 1) / lanes;
    scores<L, D>(a, begin, end);
    for (int n = 0; n < a.n; ++n)
        softmax_row<L>(a, n);
    for (std::int64_t i = 0; i < a.n * a.head_stride; i += lanes)
        L::store(a.out + i, L::zero());
    ValuesAhead ahead;  // V's units lie behind K's
    if (a.fetch != nullptr) ahead = {a.fetch + 2 * (end - begin) + units_ahead, 2 * begin};
    constexpr bool wide = L::max_rows >= 12;
    for (int n = 0; n < a.n;) {
        const ValuesAhead fetch = n == 0 ? ahead : ValuesAhead{};
        const int left = a.n - n, group = group_of(left < 6 ? left : 6, wide);
        if constexpr (wide) {
            if (group == 6) values_of<L, D, 6>(a, n, fetch);
            if (group == 4) values_of<L, D, 4>(a, n, fetch);
        }
        if (group == 3) values_of<L, D, 3>(a, n, fetch);
        if (group == 2) values_of<L, D, 2>(a, n, fetch);
        if (group == 1) values_of<L, D, 1>(a, n, fetch);
        n += group;
    }
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
