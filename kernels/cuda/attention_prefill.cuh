// Paged attention of chunks of queries (prefill): tensor-core flash attention (Dao 2023, FlashAttention-2)
// that reads K and V through the block table.
//
// A block has a tile of packed rows, (query, head of the group) with the heads innermost, so that a group
// shares each K and V tile; its four warps own 32 rows each (16 where a row is 256 long), which halves what a
// warp reads of K and V from shared memory for a product. K and V tiles come by asynchronous copies one tile
// ahead. Eight rows that are read at once touch all 32 banks of shared memory once: where a row is a multiple
// of 128 bytes its 16-byte columns are exchanged by the row's number, else rows are 16 bytes longer than what
// they hold.
#pragma once
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_math.cuh"
#include "kernels/cuda/launch.h"

namespace recto::cuda {

template <DType Kv, int Dim>
struct PrefillShape {
    static constexpr DType math = math_dtype(Kv);
    static constexpr int rows = prefill_rows(Dim);
    static constexpr int warps = prefill_threads / 32;
    static constexpr int row_tiles = rows / (16 * warps);  // m16 tiles of a warp
    static constexpr int tokens = Dim <= 128 ? 64 : 32;    // of a K or V tile
    static constexpr int score_tiles = tokens / 8;
    static constexpr int out_tiles = Dim / 8;
    static constexpr bool exchanged = Dim * 2 % 128 == 0;
    static constexpr int row_bytes = Dim * 2 + (exchanged ? 0 : 16);
    static constexpr int tile_bytes = tokens * row_bytes;
    // FP8 tiles arrive as they are, packed, and are widened into one K and one V tile.
    static constexpr bool widened = Kv == DType::f8_e4m3;
    static constexpr int source_row_bytes = Dim * int(dtype_bytes(Kv));
    static constexpr int source_tile_bytes = tokens * source_row_bytes;
    static constexpr int stage_bytes = 2 * (widened ? source_tile_bytes : tile_bytes);
    static constexpr int query_bytes = rows * row_bytes;
    static constexpr int shared_bytes = query_bytes + 2 * stage_bytes + (widened ? 2 * tile_bytes : 0);
};

// Where byte `column` (a multiple of 16) of a row of shared memory lies.
template <typename Shape>
__device__ inline int place(int row, int column) {
    return row * Shape::row_bytes + (Shape::exchanged ? column ^ (row % 8 * 16) : column);
}
// The same for a lane that reads row `row % 8` of its matrices at every 32nd byte: the column once, then by
// step.
template <typename Shape>
__device__ inline uint32_t lane_column(int row, int column) {
    return uint32_t(Shape::exchanged ? column ^ (row % 8 * 16) : column);
}
template <typename Shape>
__device__ inline uint32_t step_column(uint32_t lane_column, int step) {
    return Shape::exchanged ? lane_column ^ uint32_t(step * 32) : lane_column + uint32_t(step * 32);
}

// The tile's place among its sequence's rows and keys.
struct PrefillRange {
    int first_packed, packed_end;  // packed rows
    int first_key, keys_end;       // visible to any row of the tile
};

// Copies the K and V tile that begins at `token`. `octet_found`: this lane's entry of the 32 octets that
// begin at `found_from`, in units of 8 tokens of one head.
template <DType Kv, int Dim>
__device__ inline void copy_tile(const KvView& kv, uint32_t k_shared, uint32_t v_shared, int token,
                                 int octet_found, int found_from, const PrefillRange& range) {
    using Shape = PrefillShape<Kv, Dim>;
    constexpr int chunks = Shape::source_row_bytes / 16;  // of a row
    constexpr int all = Shape::tokens * chunks;
    static_assert(all % 32 == 0);  // whole warps, for the shuffle
#pragma unroll
    for (int i = 0; i < (all + prefill_threads - 1) / prefill_threads; ++i) {
        const int at = int(threadIdx.x) + i * prefill_threads;
        if (all % prefill_threads != 0 && at >= all) break;
        const int row = at / chunks, chunk = at % chunks;
        const int octet = __shfl_sync(0xFFFFFFFFU, octet_found, (token + row - found_from) / 8);
        const long long from =
            (long long)octet * (8 * Shape::source_row_bytes) + row % 8 * Shape::source_row_bytes + chunk * 16;
        // Slots past the sequence's end, or of a block that the window has given back, may hold anything.
        const bool wanted = token + row >= range.first_key && token + row < range.keys_end;
        const auto to = uint32_t(Shape::widened ? row * Shape::source_row_bytes + chunk * 16
                                                : place<Shape>(row, chunk * 16));
        copy_async(k_shared + to, static_cast<const char*>(kv.k) + from, wanted);
        copy_async(v_shared + to, static_cast<const char*>(kv.v) + from, wanted);
    }
}

// Widens what this thread itself copied.
template <DType Kv, int Dim>
__device__ inline void widen_tile(const char* from, char* to) {
    using Shape = PrefillShape<Kv, Dim>;
    constexpr int chunks = Shape::source_row_bytes / 16, all = Shape::tokens * chunks;
#pragma unroll
    for (int i = 0; i < (all + prefill_threads - 1) / prefill_threads; ++i) {
        const int at = int(threadIdx.x) + i * prefill_threads;
        if (all % prefill_threads != 0 && at >= all) break;
        const int row = at / chunks, chunk = at % chunks;
        const uint4 packed =
            *reinterpret_cast<const uint4*>(from + row * Shape::source_row_bytes + chunk * 16);
        *reinterpret_cast<uint4*>(to + place<Shape>(row, chunk * 32)) = {
            widen_e4m3(packed.x), widen_e4m3(packed.x >> 16), widen_e4m3(packed.y),
            widen_e4m3(packed.y >> 16)};
        *reinterpret_cast<uint4*>(to + place<Shape>(row, chunk * 32 + 16)) = {
            widen_e4m3(packed.z), widen_e4m3(packed.z >> 16), widen_e4m3(packed.w),
            widen_e4m3(packed.w >> 16)};
    }
}

// The tile's query rows, rounded to what the products compute in; zeros past the chunk's end.
template <DType Kv, int Dim>
__device__ inline void fill_queries(const PrefillParameters& p, const PrefillTile& tile, int first_head,
                                    const PrefillRange& range, char* shared) {
    using Shape = PrefillShape<Kv, Dim>;
    constexpr int chunks = Dim / 8;
    for (int at = int(threadIdx.x); at < Shape::rows * chunks; at += prefill_threads) {
        const int row = at / chunks, chunk = at % chunks;
        const int packed = range.first_packed + row;
        uint4 words{0, 0, 0, 0};
        if (packed < range.packed_end) {
            const int query = packed / p.heads.group;
            const int head = first_head + packed - query * p.heads.group;
            words = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(p.q) +
                                                    (tile.first_row + query) * p.q_stride +
                                                    (long long)head * Dim + chunk * 8);
            words = {convert_pair(p.activation, Shape::math, words.x),
                     convert_pair(p.activation, Shape::math, words.y),
                     convert_pair(p.activation, Shape::math, words.z),
                     convert_pair(p.activation, Shape::math, words.w)};
        }
        *reinterpret_cast<uint4*>(shared + place<Shape>(row, chunk * 16)) = words;
    }
}

// A warp's state over its rows: lane 4g + c has rows g (half 0) and g + 8 (half 1) of each row tile.
template <DType Kv, int Dim>
struct PrefillState {
    using Shape = PrefillShape<Kv, Dim>;
    float out[Shape::row_tiles][Shape::out_tiles][4] = {};  // columns 2c, 2c + 1 of each 8; row g, then g + 8
    float top[Shape::row_tiles][2];
    float sum[Shape::row_tiles][2] = {};  // of this lane's columns
};

template <DType Kv, int Dim>
__device__ inline void multiply_keys(
    uint32_t q_shared, uint32_t k_shared,
    float (&scores)[PrefillShape<Kv, Dim>::row_tiles][PrefillShape<Kv, Dim>::score_tiles][4]) {
    using Shape = PrefillShape<Kv, Dim>;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const int k_row = lane / 16 * 8 + lane % 8;
    const uint32_t q_lane =
        q_shared + uint32_t((warp * 16 * Shape::row_tiles + lane % 16) * Shape::row_bytes);
    const uint32_t k_lane = k_shared + uint32_t(k_row * Shape::row_bytes);
    const uint32_t q_column = lane_column<Shape>(lane, lane / 16 * 16);
    const uint32_t k_column = lane_column<Shape>(k_row, lane / 8 % 2 * 16);
#pragma unroll 2
    for (int step = 0; step < Dim / 16; ++step) {
        uint32_t a[Shape::row_tiles][4];
#pragma unroll
        for (int m = 0; m < Shape::row_tiles; ++m)
            load_matrices(a[m],
                          q_lane + step_column<Shape>(q_column, step) + uint32_t(m * 16 * Shape::row_bytes));
#pragma unroll
        for (int pair = 0; pair < Shape::score_tiles / 2; ++pair) {
            uint32_t b[4];
            load_matrices(
                b, k_lane + step_column<Shape>(k_column, step) + uint32_t(pair * 16 * Shape::row_bytes));
#pragma unroll
            for (int m = 0; m < Shape::row_tiles; ++m) {
                multiply_add<Shape::math>(scores[m][2 * pair], a[m], b[0], b[1]);
                multiply_add<Shape::math>(scores[m][2 * pair + 1], a[m], b[2], b[3]);
            }
        }
    }
}

template <DType Kv, int Dim>
__device__ inline void multiply_values(
    uint32_t v_shared,
    const float (&p)[PrefillShape<Kv, Dim>::row_tiles][PrefillShape<Kv, Dim>::score_tiles][4],
    PrefillState<Kv, Dim>& state) {
    using Shape = PrefillShape<Kv, Dim>;
    const int lane = int(threadIdx.x) % 32;
    const int v_row = lane / 8 % 2 * 8 + lane % 8;
    const uint32_t v_lane = v_shared + uint32_t(v_row * Shape::row_bytes);
    const uint32_t v_column = lane_column<Shape>(v_row, lane / 16 * 16);
#pragma unroll
    for (int step = 0; step < Shape::tokens / 16; ++step) {
        uint32_t a[Shape::row_tiles][4];
#pragma unroll
        for (int m = 0; m < Shape::row_tiles; ++m) {
            const auto& even = p[m][2 * step];
            const auto& odd = p[m][2 * step + 1];
            a[m][0] = pack_pair(Shape::math, even[0], even[1]);
            a[m][1] = pack_pair(Shape::math, even[2], even[3]);
            a[m][2] = pack_pair(Shape::math, odd[0], odd[1]);
            a[m][3] = pack_pair(Shape::math, odd[2], odd[3]);
        }
#pragma unroll
        for (int pair = 0; pair < Shape::out_tiles / 2; ++pair) {
            uint32_t b[4];
            load_matrices_transposed(
                b, v_lane + step_column<Shape>(v_column, pair) + uint32_t(step * 16 * Shape::row_bytes));
#pragma unroll
            for (int m = 0; m < Shape::row_tiles; ++m) {
                multiply_add<Shape::math>(state.out[m][2 * pair], a[m], b[0], b[1]);
                multiply_add<Shape::math>(state.out[m][2 * pair + 1], a[m], b[2], b[3]);
            }
        }
    }
}

// What a score is multiplied by to be a power of two.
struct ScoreScale {
    float factor;   // after the cap
    float softcap;  // 0: none
    float inverse_softcap;
};

// Scores of tokens `token` … to probabilities under the running top; what the state holds is brought under it
// too. position(m, half) is asked where something is masked.
template <DType Kv, int Dim, typename Position>
__device__ inline void take_tile(
    float (&scores)[PrefillShape<Kv, Dim>::row_tiles][PrefillShape<Kv, Dim>::score_tiles][4], int token,
    bool masked, Position&& position, int window, const ScoreScale& scale, PrefillState<Kv, Dim>& state) {
    using Shape = PrefillShape<Kv, Dim>;
    const int c = int(threadIdx.x) % 4;
    if (scale.softcap > 0.0F) {
#pragma unroll
        for (int m = 0; m < Shape::row_tiles; ++m)
#pragma unroll
            for (int t = 0; t < Shape::score_tiles; ++t)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    scores[m][t][i] = scale.softcap * tanh_fast(scores[m][t][i] * scale.inverse_softcap);
    }
    if (masked) {
#pragma unroll
        for (int m = 0; m < Shape::row_tiles; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int last = position(m, half), before = window > 0 ? last - window : -1;
#pragma unroll
                for (int t = 0; t < Shape::score_tiles; ++t)
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        const int at = token + 8 * t + 2 * c + i;
                        if (at > last || at <= before) scores[m][t][2 * half + i] = -INFINITY;
                    }
            }
    }
    bool raised = false;
    float keep[Shape::row_tiles][2];
#pragma unroll
    for (int m = 0; m < Shape::row_tiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float top = scores[m][0][2 * half];
#pragma unroll
            for (int t = 0; t < Shape::score_tiles; ++t)
                top = fmaxf(top, fmaxf(scores[m][t][2 * half], scores[m][t][2 * half + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 2));
            top = fmaxf(top, state.top[m][half]);
            raised = raised || top > state.top[m][half];
            const float zero = top == -INFINITY ? 0.0F : top * scale.factor;
            keep[m][half] = exp2_fast(state.top[m][half] * scale.factor - zero);
            state.top[m][half] = top;
            float sum = 0.0F;
#pragma unroll
            for (int t = 0; t < Shape::score_tiles; ++t)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; ++i) {
                    scores[m][t][i] = exp2_fast(fmaf(scores[m][t][i], scale.factor, -zero));
                    sum += scores[m][t][i];
                }
            state.sum[m][half] = state.sum[m][half] * keep[m][half] + sum;
        }
    if (!__any_sync(0xFFFFFFFFU, raised)) return;  // every factor is 1
#pragma unroll
    for (int m = 0; m < Shape::row_tiles; ++m)
#pragma unroll
        for (int t = 0; t < Shape::out_tiles; ++t)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                state.out[m][t][i] *= keep[m][i / 2];
}

// Divides, and writes the warp's rows through its own part of the queries' memory, 16 bytes a lane.
template <DType Kv, int Dim>
__device__ inline void write_rows(const PrefillParameters& p, const PrefillTile& tile, int first_head,
                                  const PrefillRange& range, char* shared, PrefillState<Kv, Dim>& state) {
    using Shape = PrefillShape<Kv, Dim>;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, c = lane % 4;
    const int warp_row = warp * 16 * Shape::row_tiles;
    __syncwarp();  // all of the warp's reads of its queries are done
#pragma unroll
    for (int m = 0; m < Shape::row_tiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float sum = state.sum[m][half];
            sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
            const float inverse = 1.0F / sum;
            const int row = warp_row + m * 16 + half * 8 + g;
#pragma unroll
            for (int t = 0; t < Shape::out_tiles; ++t)
                *reinterpret_cast<uint32_t*>(shared + place<Shape>(row, t * 16) + c * 4) =
                    pack_pair(p.activation, state.out[m][t][2 * half] * inverse,
                              state.out[m][t][2 * half + 1] * inverse);
        }
    __syncwarp();
    constexpr int chunks = Dim / 8;
    for (int at = lane; at < 16 * Shape::row_tiles * chunks; at += 32) {
        const int row = warp_row + at / chunks, chunk = at % chunks;
        const int packed = range.first_packed + row;
        if (packed >= range.packed_end) continue;
        const int query = packed / p.heads.group;
        const int head = first_head + packed - query * p.heads.group;
        *reinterpret_cast<uint4*>(static_cast<uint16_t*>(p.out) + (tile.first_row + query) * p.out_stride +
                                  (long long)head * Dim + chunk * 8) =
            *reinterpret_cast<const uint4*>(shared + place<Shape>(row, chunk * 16));
    }
}

template <DType Kv, int Dim>
__global__ void __launch_bounds__(prefill_threads, 2)
    prefill_kernel(const __grid_constant__ PrefillParameters p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    using Shape = PrefillShape<Kv, Dim>;
    extern __shared__ __align__(16) char memory[];
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    char* queries = memory;
    char* stages = memory + Shape::query_bytes;
    char* wide = stages + 2 * Shape::stage_bytes;
    const int kv_head = int(blockIdx.x) % p.heads.kv_heads;
    const PrefillTile tile = p.batch.work.prefill[int(blockIdx.x) / p.heads.kv_heads];
    const int group = p.heads.group, first_head = kv_head * group;
    const int* positions = p.batch.positions + tile.first_row;
    PrefillRange range;
    range.first_packed = tile.first_packed;
    range.packed_end = min(tile.queries * group, tile.first_packed + Shape::rows);
    const int first_position = positions[range.first_packed / group];
    range.first_key = p.heads.window > 0 ? max(0, first_position - p.heads.window + 1) : 0;
    range.keys_end = positions[(range.packed_end - 1) / group] + 1;
    const int begin = range.first_key / Shape::tokens * Shape::tokens;
    const int tiles = (range.keys_end - begin + Shape::tokens - 1) / Shape::tokens;

    PrefillState<Kv, Dim> state;
    const auto position_of = [&](int row) {  // of the tile; rows past the end are computed like the last
        return positions[min(range.first_packed + row, range.packed_end - 1) / group];
    };
    const int warp_row = warp * 16 * Shape::row_tiles;
#pragma unroll
    for (int m = 0; m < Shape::row_tiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            state.top[m][half] = -INFINITY;
        }
    const int warp_first = position_of(warp_row),
              warp_last = position_of(warp_row + 16 * Shape::row_tiles - 1);

    const bool idle = range.first_packed + warp_row >= range.packed_end;

    const int* blocks = p.batch.block_tables + (long long)tile.sequence * p.batch.table_stride;
    const int octets_per_block = p.kv.block_size / 8;
    const int block_stride_octets = int(p.kv.block_stride / (8 * Dim));
    const auto find_octet = [&](int octet) {
        octet = min(max(octet, range.first_key / 8), (range.keys_end - 1) / 8);
        const int logical = octet / octets_per_block;
        return blocks[logical] * block_stride_octets + kv_head * octets_per_block + octet -
               logical * octets_per_block;
    };
    constexpr int tiles_a_find = 32 * 8 / Shape::tokens;
    int octet_found = find_octet(begin / 8 + lane), found_from = begin;

    let_next_start();
    wait_for_previous();
    const auto copy = [&](int t) {
        const int token = begin + t * Shape::tokens;
        if (t > 0 && t % tiles_a_find == 0) {
            found_from = token;
            octet_found = find_octet(token / 8 + lane);
        }
        const uint32_t k = shared_address(stages + t % 2 * Shape::stage_bytes);
        copy_tile<Kv, Dim>(p.kv, k, k + Shape::stage_bytes / 2, token, octet_found, found_from, range);
        commit_copies();
    };
    copy(0);
    fill_queries<Kv, Dim>(p, tile, first_head, range, queries);

    const bool capped = p.heads.softcap > 0.0F;
    const ScoreScale scale{capped ? log2_e : p.heads.scale * log2_e, p.heads.softcap,
                           capped ? p.heads.scale / p.heads.softcap : 0.0F};
    for (int t = 0; t < tiles; ++t) {
        const int token = begin + t * Shape::tokens;
        const char* stage = stages + t % 2 * Shape::stage_bytes;
        wait_for_copies<0>();
        __syncthreads();  // tile t is there, and tile t − 1 is read to its end
        if (t + 1 < tiles) copy(t + 1);
        uint32_t k = shared_address(stage), v = k + Shape::stage_bytes / 2;
        if constexpr (Shape::widened) {
            widen_tile<Kv, Dim>(stage, wide);
            widen_tile<Kv, Dim>(stage + Shape::stage_bytes / 2, wide + Shape::tile_bytes);
            __syncthreads();
            k = shared_address(wide);
            v = k + Shape::tile_bytes;
        }
        const int token_last = token + Shape::tokens - 1;
        const int window = p.heads.window;
        if (idle || token > warp_last || (window > 0 && token_last <= warp_first - window)) continue;
        float scores[Shape::row_tiles][Shape::score_tiles][4] = {};
        multiply_keys<Kv, Dim>(shared_address(queries), k, scores);
        const bool masked = token_last > warp_first || (window > 0 && token <= warp_last - window);
        take_tile<Kv, Dim>(
            scores, token, masked,
            [&](int m, int half) { return position_of(warp_row + m * 16 + half * 8 + lane / 4); }, window,
            scale, state);
        multiply_values<Kv, Dim>(v, scores, state);
    }
    write_rows<Kv, Dim>(p, tile, first_head, range, queries, state);
#endif
}

template <DType Kv, int Dim>
void launch_prefill(cudaStream_t stream, const PrefillParameters& p, int tiles) {
    launch("prefill attention", prefill_kernel<Kv, Dim>, dim3(unsigned(tiles * p.heads.kv_heads)),
           dim3(prefill_threads), PrefillShape<Kv, Dim>::shared_bytes, stream, p);
}

template <DType Kv>
void launch_prefill(cudaStream_t stream, const PrefillParameters& p, int tiles) {
    switch (p.kv.head_dim) {
        case 64:
            return launch_prefill<Kv, 64>(stream, p, tiles);
        case 80:
            return launch_prefill<Kv, 80>(stream, p, tiles);
        case 96:
            return launch_prefill<Kv, 96>(stream, p, tiles);
        case 128:
            return launch_prefill<Kv, 128>(stream, p, tiles);
        default:
            return launch_prefill<Kv, 256>(stream, p, tiles);
    }
}

}  // namespace recto::cuda
