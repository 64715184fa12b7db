// What a block of threads does with a share of one row's context: paged attention of single rows (decode),
// one pass over K and V, bound by reading them.
//
// A share is for one KV head and up to 8 query heads of its group. The block's `Warps` warps take the chunks
// of 16 tokens in turns and never meet until the end. Both
// products run on the tensor cores as transposes, S^T = K·Q^T and O^T = V^T·P^T, so that the heads are the 8
// columns of mma.m16n8k16, K and V go from memory straight to their fragments (attention_tiles.h), and a
// lane's scores, maxima, sums and outputs belong to the same two heads. Running {max, sum, out} as in
// FlashAttention (Dao et al. 2022); shares of a row are merged by the block that ends last, in the order of
// the context.
#pragma once
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_math.cuh"
#include "kernels/cuda/device_math.cuh"

namespace recto::cuda {

template <DType Kv, int Dim, int Warps>
struct DecodeShape {
    static constexpr int element_bytes = int(dtype_bytes(Kv));
    static constexpr RowSegments key = row_segments(Dim, key_lanes, element_bytes);
    static constexpr RowSegments value = row_segments(Dim, value_lanes, element_bytes);
    static constexpr int steps = Dim / 16;
    static constexpr int warps = Warps, threads = 32 * Warps;
    // 16-bit rows of 256 elements leave no registers for the query.
    static constexpr bool query_in_shared = Dim * element_bytes > 256;
    static constexpr int octet_bytes = 8 * Dim * element_bytes;  // 8 tokens of a head lie together
};

// Shared memory of a block. What the merge of warps and the merge of shares use is never needed at once.
template <int Dim>
struct ShareMemory {
    static constexpr int out_stride =
        Dim + 4;    // floats; keeps the four lanes of a row off each other's banks
    float* out;     // [warps, heads, out_stride]
    float* top;     // [warps, heads]
    float* sum;     // [warps, heads]
    float* weight;  // [most_splits, heads]
    int* is_last;
    int heads;  // that there is room for

    __device__ float* out_of(int w, int head) const { return out + (w * heads + head) * out_stride; }
    __device__ float& top_of(int w, int head) const { return top[w * heads + head]; }
    __device__ float& sum_of(int w, int head) const { return sum[w * heads + head]; }
    __device__ float& weight_of(int split, int head) const { return weight[split * heads + head]; }
};

// A call for each of 0 … N − 1 as a constant.
template <int N, typename F>
__device__ inline void unrolled(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
        (f(std::integral_constant<int, I>{}), ...);
    }
    (std::make_integer_sequence<int, N>{});
}

// Keys of tokens g and g + 8 of a chunk; values of tokens 2c, 2c + 1, 2c + 8, 2c + 9 (lane 4g + c).
template <DType Kv, int Dim, int Warps>
struct ChunkWords {
    // Set on every way: else they would take registers in loops around, where they mean nothing.
    uint32_t key[2][DecodeShape<Kv, Dim, Warps>::key.words] = {};
    uint32_t value[4][DecodeShape<Kv, Dim, Warps>::value.words] = {};
};

template <DType Kv, int Dim, int Warps>
__device__ inline void load_keys(ChunkWords<Kv, Dim, Warps>& w, const char* octet0, const char* octet1, int g,
                                 int c) {
    using Shape = DecodeShape<Kv, Dim, Warps>;
    constexpr int bytes = Shape::element_bytes;
    unrolled<Shape::key.count>([&](auto s) {
        constexpr int base = Shape::key.base[s], width = Shape::key.width[s], at = Shape::key.first_word[s];
        const int offset = (g * Dim + base + c * width) * bytes;
        load_stream<width * bytes>(&w.key[0][at], octet0 + offset);
        load_stream<width * bytes>(&w.key[1][at], octet1 + offset);
    });
}

template <DType Kv, int Dim, int Warps>
__device__ inline void load_values(ChunkWords<Kv, Dim, Warps>& w, const char* octet0, const char* octet1,
                                   int g, int c) {
    using Shape = DecodeShape<Kv, Dim, Warps>;
    constexpr int bytes = Shape::element_bytes;
    unrolled<Shape::value.count>([&](auto s) {
        constexpr int base = Shape::value.base[s], width = Shape::value.width[s];
        constexpr int at = Shape::value.first_word[s];
        const int offset = (2 * c * Dim + base + g * width) * bytes;
        load_stream<width * bytes>(&w.value[0][at], octet0 + offset);
        load_stream<width * bytes>(&w.value[1][at], octet0 + offset + Dim * bytes);
        load_stream<width * bytes>(&w.value[2][at], octet1 + offset);
        load_stream<width * bytes>(&w.value[3][at], octet1 + offset + Dim * bytes);
    });
}

// The running state of a lane's two heads, 2c and 2c + 1.
template <int Dim>
struct DecodeState {
    float out[Dim / 16][4] = {};  // tile: elements 2t (0: head 2c, 1: head 2c + 1) and 2t + 1 (2, 3)
    float top[2] = {-INFINITY, -INFINITY};
    float sum[2] = {};  // of this lane's tokens
};

// Scores (in powers of two) to probabilities: scores[0], [1] are token g's for heads 2c, 2c + 1; [2], [3]
// token g + 8's. Tops of a head agree over the warp.
template <int Dim>
__device__ inline void take_scores(float (&scores)[4], DecodeState<Dim>& state) {
    for (int h = 0; h < 2; ++h) {
        float top = fmaxf(scores[h], scores[2 + h]);
        for (int step = 4; step < 32; step *= 2)
            top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, step));
        top = fmaxf(top, state.top[h]);
        const float zero = top == -INFINITY ? 0.0F : top;  // nothing seen yet: every power is 0, none NaN
        const float keep = exp2_fast(state.top[h] - zero);
        scores[h] = exp2_fast(scores[h] - zero);
        scores[2 + h] = exp2_fast(scores[2 + h] - zero);
        state.sum[h] = state.sum[h] * keep + scores[h] + scores[2 + h];
        state.top[h] = top;
        for (int t = 0; t < Dim / 16; ++t) {
            state.out[t][h] *= keep;
            state.out[t][2 + h] *= keep;
        }
    }
}

template <DType Kv, int Dim, int Warps>
__device__ inline void add_values(const ChunkWords<Kv, Dim, Warps>& w, const float (&p)[4],
                                  DecodeState<Dim>& state) {
    using Shape = DecodeShape<Kv, Dim, Warps>;
    constexpr DType math = math_dtype(Kv);
    const uint32_t p0 = transpose(pack_pair(math, p[0], p[1]));
    const uint32_t p1 = transpose(pack_pair(math, p[2], p[3]));
    unrolled<Shape::value.count>([&](auto s) {
        constexpr int at = Shape::value.first_word[s], first_tile = Shape::value.base[s] / 16;
        unrolled<Shape::value.width[s] / 2>([&](auto t) {
            uint32_t a[4];
            value_pairs<Kv>(&w.value[0][at], &w.value[1][at], t, a[0], a[1]);
            value_pairs<Kv>(&w.value[2][at], &w.value[3][at], t, a[2], a[3]);
            multiply_add<math>(state.out[first_tile + t], a, p0, p1);
        });
    });
}

// The share [begin, end) of chunks, of which a warp walks every Warps-th; octets of 8 tokens are found
// through the block table, 32 of them (16 chunks) at a time, one a lane.
struct OctetWalk {
    const int* blocks;
    int block_stride_octets, head_octet;  // both in octets of one head
    int octets_per_block;
    int first_octet, last_octet;  // with visible tokens; others may have no block any more

    __device__ int find(int octet) const {
        octet = min(max(octet, first_octet), last_octet);
        const int logical = octet / octets_per_block;
        return blocks[logical] * block_stride_octets + head_octet + octet - logical * octets_per_block;
    }
};

// `from`: a head's query, in device or shared memory.
template <DType Kv, int Dim, int Warps>
__device__ inline void load_query(const uint16_t* from, DType activation, bool wanted, int c,
                                  uint2 (&query)[Dim / 16]) {
    using Shape = DecodeShape<Kv, Dim, Warps>;
    constexpr DType math = math_dtype(Kv);
    unrolled<Shape::steps>([&](auto k) {
        constexpr int base = key_element(Shape::key, k, 0), step = key_element(Shape::key, k, 1) - base;
        uint2 words{0, 0};
        if (wanted) words = *reinterpret_cast<const uint2*>(from + base + c * step);
        query[k] = {convert_pair(activation, math, words.x), convert_pair(activation, math, words.y)};
    });
}

// One warp's part of a share: its chunks from `chunk` on, every Warps-th. `begin` asks for the first chunk,
// `walk` goes through all.
template <DType Kv, int Dim, int Warps, class Octets>
struct ChunkWalk {
    using Shape = DecodeShape<Kv, Dim, Warps>;
    const char *k, *v;  // KvView's
    Octets octets;      // find(octet): its place in the cache, in octets of a head
    int chunk, end;
    int found = 0;  // this lane's octet of the 16 chunks from `chunk` on
    ChunkWords<Kv, Dim, Warps> words;

    __device__ const char* keys(long long octet) const { return k + octet * Shape::octet_bytes; }
    __device__ const char* values(long long octet) const { return v + octet * Shape::octet_bytes; }
    // `finds`: found is not set yet for these 16 chunks.
    __device__ void find(int n, int& o0, int& o1, bool finds) {
        const int lane = own_thread() % 32;
        if (finds && n % 16 == 0) found = octets.find(2 * (chunk + Warps * (n + lane / 2)) + lane % 2);
        o0 = __shfl_sync(0xFFFFFFFFU, found, 2 * (n % 16));
        o1 = __shfl_sync(0xFFFFFFFFU, found, 2 * (n % 16) + 1);
    }
    __device__ void begin(bool finds = true) {
        const int lane = own_thread() % 32, g = lane / 4, c = lane % 4;
        if (chunk >= end) return;
        int o0, o1;
        find(0, o0, o1, finds);
        load_keys(words, keys(o0), keys(o1), g, c);
        load_values(words, values(o0), values(o1), g, c);
    }

    // query(k): this lane's part of the query at step k of the score product, a constant.
    template <class Query>
    __device__ void walk(const AttentionHeads& heads, int first, int last, Query&& query,
                         DecodeState<Dim>& state) {
        const int lane = own_thread() % 32, g = lane / 4, c = lane % 4;
        const bool capped = heads.softcap > 0.0F;
        const float scale = capped ? heads.scale / heads.softcap : heads.scale * log2_e;
        const float cap = heads.softcap * log2_e;
        int o0 = 0, o1 = 0;
        for (int n = 0; chunk + Warps * n < end; ++n) {
            const int token = decode_chunk * (chunk + Warps * n);
            const bool more = chunk + Warps * (n + 1) < end;
            float even[4] = {}, odd[4] = {};
            unrolled<Shape::steps>([&](auto k) {
                uint32_t a[4];
                key_pairs<Kv>(words.key[0], k, a[0], a[2]);
                key_pairs<Kv>(words.key[1], k, a[1], a[3]);
                const uint2 b = query(k);
                multiply_add<math_dtype(Kv)>(k % 2 == 0 ? even : odd, a, b.x, b.y);
            });
            if (more) {
                find(n + 1, o0, o1, true);
                load_keys(words, keys(o0), keys(o1), g, c);
            }
            float scores[4];
            for (int i = 0; i < 4; ++i) {
                scores[i] = (even[i] + odd[i]) * scale;
                if (capped) scores[i] = cap * tanh_fast(scores[i]);
            }
            if (token < first || token + decode_chunk - 1 > last) {
                // Slots that hold no visible token may hold anything, NaN too: neither scores nor values
                // count.
                for (int i = 0; i < 4; ++i) {
                    const int at = token + g + (i / 2) * 8;
                    if (at < first || at > last) scores[i] = -INFINITY;
                    const int value_at = token + 2 * c + i % 2 + (i / 2) * 8;
                    if (value_at >= first && value_at <= last) continue;
                    for (int w = 0; w < Shape::value.words; ++w)
                        words.value[i][w] = 0;
                }
            }
            take_scores(scores, state);
            add_values(words, scores, state);
            if (more) load_values(words, values(o0), values(o1), g, c);
        }
    }
};

// What the warps found, put side by side in shared memory.
template <DType Kv, int Dim, int Warps>
__device__ inline void put_state(const ShareMemory<Dim>& shared, DecodeState<Dim>& state, int heads) {
    using Shape = DecodeShape<Kv, Dim, Warps>;
    const int thread = own_thread(), warp = thread / 32, lane = thread % 32, g = lane / 4, c = lane % 4;
    for (int h = 0; h < 2; ++h) {
        for (int step = 4; step < 32; step *= 2)
            state.sum[h] += __shfl_xor_sync(0xFFFFFFFFU, state.sum[h], step);
        const int head = 2 * c + h;
        if (head >= heads) continue;
        if (g == 0) {
            shared.top_of(warp, head) = state.top[h];
            shared.sum_of(warp, head) = state.sum[h];
        }
        unrolled<Shape::value.count>([&](auto s) {
            constexpr int base = Shape::value.base[s], width = Shape::value.width[s];
            float* to = shared.out_of(warp, head) + base + g * width;
            unrolled<width / 2>([&](auto t) {
                const auto& tile = state.out[base / 16 + t];
                *reinterpret_cast<float2*>(to + 2 * t) = {tile[h], tile[2 + h]};
            });
        });
    }
}

// The warps' states of one head at elements 2i and 2i + 1, still undivided.
struct MergedPair {
    float2 out;
    float top, sum;
};
template <DType Kv, int Dim, int Warps>
__device__ inline MergedPair merge_warps(const ShareMemory<Dim>& shared, int head, int i) {
    constexpr int warps = DecodeShape<Kv, Dim, Warps>::warps;
    MergedPair m{{0.0F, 0.0F}, -INFINITY, 0.0F};
    for (int w = 0; w < warps; ++w)
        m.top = fmaxf(m.top, shared.top_of(w, head));
    const float zero = m.top == -INFINITY ? 0.0F : m.top;
    for (int w = 0; w < warps; ++w) {
        const float weight = exp2_fast(shared.top_of(w, head) - zero);
        const float2 v = *reinterpret_cast<const float2*>(shared.out_of(w, head) + 2 * i);
        m.out.x += weight * v.x;
        m.out.y += weight * v.y;
        m.sum += weight * shared.sum_of(w, head);
    }
    return m;
}

// Shares of one row and unit, from number `partial` on, to the output. The whole block takes part.
template <DType Kv, int Dim, int Warps>
__device__ inline void merge_shares(const DecodeParameters& p, const ShareMemory<Dim>& shared,
                                    const DecodeItem& item, int unit, int units, int heads, uint16_t* out) {
    const AttentionWorkspace& space = p.workspace;
    const int most_heads = min(p.heads.group, decode_heads);
    const long long first = (long long)item.first_partial * units + unit;  // shares are `units` apart
    const int thread = own_thread(), warp = thread / 32, lane = thread % 32;
    for (int head = warp; head < heads; head += DecodeShape<Kv, Dim, Warps>::warps) {
        constexpr int each = most_splits / 32;
        float2 states[each];  // {top, sum}
        float top = -INFINITY;
        for (int j = 0; j < each; ++j) {
            const int s = lane + 32 * j;
            states[j] = {-INFINITY, 0.0F};
            if (s < item.splits)
                states[j] =
                    load_shared_result(space.states + (first + (long long)s * units) * most_heads + head);
            top = fmaxf(top, states[j].x);
        }
        for (int step = 16; step > 0; step /= 2)
            top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, step));
        float sum = 0.0F;
        for (int j = 0; j < each; ++j) {
            states[j].x = exp2_fast(states[j].x - top);
            sum += states[j].x * states[j].y;
        }
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_xor_sync(0xFFFFFFFFU, sum, step);
        for (int j = 0; j < each; ++j) {
            if (lane + 32 * j < item.splits) shared.weight_of(lane + 32 * j, head) = states[j].x / sum;
        }
    }
    __syncthreads();
    for (int i = own_thread(); i < heads * (Dim / 4); i += 32 * Warps) {
        const int head = i / (Dim / 4), at = i % (Dim / 4);
        const auto* from =
            reinterpret_cast<const float4*>(space.out + (first * most_heads + head) * Dim) + at;
        const long long step = (long long)units * most_heads * (Dim / 4);
        float4 sum{0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll 8
        for (int s = 0; s < item.splits; ++s) {
            const float4 v = load_shared_result(from + s * step);
            const float weight = shared.weight_of(s, head);
            sum.x += weight * v.x;
            sum.y += weight * v.y;
            sum.z += weight * v.z;
            sum.w += weight * v.w;
        }
        const uint2 words{pack_pair(p.activation, sum.x, sum.y), pack_pair(p.activation, sum.z, sum.w)};
        *reinterpret_cast<uint2*>(out + head * Dim + 4 * at) = words;
    }
}

// Writes an item's result, or its share; the block that brings a row's last share merges them all.
template <DType Kv, int Dim, int Warps>
__device__ inline void finish_item(const DecodeParameters& p, const ShareMemory<Dim>& shared,
                                   DecodeState<Dim>& state, const DecodeItem& item, int unit, int units,
                                   int heads, uint16_t* out) {
    const AttentionWorkspace& space = p.workspace;
    const int most_heads = min(p.heads.group, decode_heads);
    __syncthreads();  // the item before is read to its end
    put_state<Kv, Dim, Warps>(shared, state, heads);
    __syncthreads();
    const long long partial = (long long)(item.first_partial + item.split) * units + unit;
    for (int i = own_thread(); i < heads * (Dim / 2); i += 32 * Warps) {
        const int head = i / (Dim / 2), at = i % (Dim / 2);
        const MergedPair m = merge_warps<Kv, Dim, Warps>(shared, head, at);
        if (item.splits == 1) {
            const float inverse = 1.0F / m.sum;
            *reinterpret_cast<uint32_t*>(out + head * Dim + 2 * at) =
                pack_pair(p.activation, m.out.x * inverse, m.out.y * inverse);
            continue;
        }
        *reinterpret_cast<float2*>(space.out + (partial * most_heads + head) * Dim + 2 * at) = m.out;
        if (at == 0) space.states[partial * most_heads + head] = {m.top, m.sum};
    }
    if (item.splits == 1) return;
    __threadfence();
    __syncthreads();
    int* arrived = space.arrived + (long long)item.first_partial * units + unit;
    if (own_thread() == 0) *shared.is_last = atomicAdd(arrived, 1) == item.splits - 1;
    __syncthreads();
    if (!*shared.is_last) return;
    __threadfence();
    merge_shares<Kv, Dim, Warps>(p, shared, item, unit, units, heads, out);
    if (own_thread() == 0) *arrived = 0;  // for the next launch
}

}  // namespace recto::cuda
