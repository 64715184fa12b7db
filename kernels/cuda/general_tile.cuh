// The loop of the matrix products of cards without wgmma, and of every card's mixtures: D[64 weight rows,
// tokens] = W · xᵀ by mma.sync.
//
// A block of four warps owns 64 rows of the weight, 16 a warp. Weights, their scales and the tokens come
// through a ring of stages in shared memory by asynchronous copies, so that the memory is asked for three
// stages ahead whatever the registers hold (the scheme of Frantar et al., "MARLIN" (2024)). Rows of 128 bytes
// have their 16-byte units exchanged by the row's number: eight rows that are read at once touch all banks
// once.
#pragma once
#include <algorithm>

#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/general_linear.h"
#include "kernels/cuda/tensor_core.cuh"

namespace recto::cuda {

constexpr int general_threads = 128;
constexpr int general_stages = 4;
// A multiprocessor holds at least so many blocks: what bounds their registers.
template <int Tokens>
constexpr int general_blocks = Tokens == 64 ? 3 : 4;

// One stage: x [tiles][tokens][128 bytes], weights, scales of a chunk, their second plane.
template <TileKind Kind, int Tokens>
struct GeneralStage {
    // Of 64 inputs. Cards with 100 KiB of shared memory a multiprocessor still hold two blocks or more.
    static constexpr int tiles = Kind == TileKind::dense || Tokens >= 32 ? 1 : 2;
    static constexpr int tile_bytes = block_rows * tile_k *
                                      (Kind == TileKind::dense ? 4
                                       : Kind == TileKind::u8  ? 2
                                                               : 1) /
                                      2;
    static constexpr int steps_a_chunk = chunk_k / tile_k / tiles;
    static constexpr std::uint32_t weights = tiles * Tokens * 128;
    static constexpr std::uint32_t scale = weights + tiles * tile_bytes;
    __host__ __device__ static constexpr std::uint32_t second(int groups_a_chunk) {
        return scale + std::uint32_t(groups_a_chunk) * block_rows * 2;
    }
    __host__ __device__ static constexpr std::uint32_t bytes(int groups_a_chunk, SecondPlane mode) {
        if (Kind == TileKind::dense) return scale;
        return second(groups_a_chunk) +
               (mode == SecondPlane::none ? 0 : std::uint32_t(groups_a_chunk) * block_rows * 2);
    }
};

inline GeneralCut cut_of(const TileWeight& w, std::uint32_t stage_bytes) {
    GeneralCut cut;
    cut.groups_a_chunk = w.groups_a_chunk();
    cut.chunks_a_group = w.chunks_a_group();
    cut.group_shift = w.group_shift();
    cut.stage_bytes = stage_bytes;
    return cut;
}

// Which rows of x a tile's tokens are, and which rows of the output they give.
struct TokenRows {
    int first, count;
    const int* slots;  // of a mixture: the tokens' slots, sorted by expert; null: rows as they lie
    int per_row;       // slots that share a row of x; 0: x has a row a slot, sorted as `slots` is

    __device__ long long slot(int token) const { return slots ? slots[first + token] : first + token; }
    __device__ long long input(int token) const {
        return slots && per_row > 0 ? slots[first + token] / per_row : first + token;
    }
};

template <TileKind Kind, class T, int Tokens>
struct GeneralTile {
    using Stage = GeneralStage<Kind, Tokens>;
    static constexpr int values = Tokens / 2;
    static constexpr int units = Stage::tiles * 8;  // 16 bytes each, of a token's inputs in a stage
    static constexpr int tokens_a_pass = general_threads / units;
    static constexpr int passes = (Tokens + tokens_a_pass - 1) / tokens_a_pass;
    static constexpr int weight_passes = Kind == TileKind::dense ? 4 : 1;

    const TileWeight& w;
    const GeneralCut& cut;
    std::uint8_t* ring;
    std::uint32_t ring_at;  // its shared address
    int block;              // of 64 rows of the weight
    int thread;
    const std::uint16_t* x_rows[passes];              // this thread's, or null
    const std::uint16_t* weight_rows[weight_passes];  // dense: the same of the weight

    __device__ GeneralTile(const TileWeight& weight, const GeneralCut& how, std::uint8_t* shared,
                           int weight_block)
        : w(weight),
          cut(how),
          ring(shared),
          ring_at(shared_address(shared)),
          block(weight_block),
          thread(int(threadIdx.x)) {
        if constexpr (Kind == TileKind::dense) {
#pragma unroll
            for (int i = 0; i < weight_passes; ++i) {
                const int r = thread / 8 + 16 * i, h = block_rows / 2;
                const int output = w.gated ? block * h + r % h : block * block_rows + r;
                const long long row = w.gated && r >= h ? output + w.rows / 2 : output;
                weight_rows[i] =
                    output < w.outputs ? static_cast<const std::uint16_t*>(w.data) + row * w.cols : nullptr;
            }
        }
    }

    __device__ void choose_tokens(const Tensor& x, const TokenRows& rows) {
#pragma unroll
        for (int i = 0; i < passes; ++i) {
            const int token = thread / units + i * tokens_a_pass;
            x_rows[i] = token < rows.count
                            ? static_cast<const std::uint16_t*>(x.data) + rows.input(token) * x.row_stride
                            : nullptr;
        }
    }

    // Of 64 or 128 inputs from step · that many on.
    __device__ void copy_tokens(int step, int stage) const {
        const std::uint32_t to = ring_at + std::uint32_t(stage) * cut.stage_bytes;
        const int unit = thread % units, k = (step * units + unit) * 8;
#pragma unroll
        for (int i = 0; i < passes; ++i) {
            const int token = thread / units + i * tokens_a_pass;
            if (Tokens < tokens_a_pass && token >= Tokens) continue;
            const bool wanted = x_rows[i] != nullptr && k < w.cols;
            copy_async(
                to + std::uint32_t((unit / 8 * Tokens + token) * 128 + ((unit % 8) ^ (token % 8)) * 16),
                wanted ? x_rows[i] + k : w.data, wanted);
        }
    }

    __device__ void copy_weights(int step, int stage) const {
        const std::uint32_t to = ring_at + std::uint32_t(stage) * cut.stage_bytes;
        if constexpr (Kind == TileKind::dense) {
            const int unit = thread % 8, k = step * tile_k + unit * 8;
#pragma unroll
            for (int i = 0; i < weight_passes; ++i) {
                const int r = thread / 8 + 16 * i;
                const bool wanted = weight_rows[i] != nullptr && k < w.cols;
                copy_async(to + Stage::weights + std::uint32_t(r * 128 + (unit ^ (r % 8)) * 16),
                           wanted ? weight_rows[i] + k : w.data, wanted);
            }
        } else {
            constexpr int bytes = Stage::tiles * Stage::tile_bytes;
            const auto* from =
                static_cast<const std::uint8_t*>(w.data) +
                (std::size_t(block) * w.chunks * 2 + std::size_t(step * Stage::tiles)) * Stage::tile_bytes;
#pragma unroll
            for (int i = 0; i < bytes; i += general_threads * 16)
                copy_async(to + Stage::weights + std::uint32_t(i + thread * 16), from + i + thread * 16,
                           true);
            copy_planes(step, to);
        }
    }

    // Scales by the first 64 threads, the second plane by the others.
    __device__ void copy_planes(int step, std::uint32_t to) const {
        const int chunk = step / Stage::steps_a_chunk;
        const int group = cut.chunks_a_group > 1 ? chunk / cut.chunks_a_group : chunk * cut.groups_a_chunk;
        const std::size_t at = (std::size_t(block) * w.groups + std::size_t(group)) * block_rows;
        const int value_bytes = thread >= 64 && w.mode == SecondPlane::zero_u8 ? 1 : 2;
        const int unit = thread % 64;
        if (unit * 16 >= cut.groups_a_chunk * block_rows * value_bytes) return;
        if (thread < 64)
            copy_async(to + Stage::scale + unit * 16,
                       reinterpret_cast<const std::uint8_t*>(w.scale + at) + unit * 16, true);
        else if (w.mode != SecondPlane::none)
            copy_async(to + Stage::second(cut.groups_a_chunk) + unit * 16,
                       static_cast<const std::uint8_t*>(w.second) + at * value_bytes + unit * 16, true);
    }

    __device__ void load_groups(RowGroup<T> (&r)[2], const std::uint8_t* stage, int index) const {
        const std::uint8_t *scale = stage + Stage::scale, *second = stage + Stage::second(cut.groups_a_chunk);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int n = index * block_rows + thread / 32 * 16 + thread % 32 / 4 + 8 * i;
            r[i].set_scale(reinterpret_cast<const std::uint16_t*>(scale)[n], w.planes_bf16);
            if (w.mode == SecondPlane::zero_u8)
                r[i].set_zero(second[n]);
            else if (w.mode == SecondPlane::offset_16)
                r[i].set_offset(reinterpret_cast<const std::uint16_t*>(second)[n], w.planes_bf16);
            r[i].settle();
        }
    }

    // The A fragments of tile t: 16 rows of this warp, 64 inputs.
    __device__ void multiply(float (&d)[values], RowGroup<T> (&r)[2], int step, int stage) const {
        const int lane = thread % 32, warp_of = thread / 32;
        const std::uint32_t at = ring_at + std::uint32_t(stage) * cut.stage_bytes;
        const std::uint8_t* data = ring + std::uint32_t(stage) * cut.stage_bytes;
        const int mask = (1 << cut.group_shift) - 1;
#pragma unroll
        for (int t = 0; t < Stage::tiles; ++t) {
            uint4 q[Kind == TileKind::u8 ? 2 : 1];
            if constexpr (Kind != TileKind::dense) {
                const auto* packed =
                    reinterpret_cast<const uint4*>(data + Stage::weights + t * Stage::tile_bytes);
                if constexpr (Kind == TileKind::u4) {
                    q[0] = packed[thread];
                } else {
                    q[0] = packed[warp_of * 64 + lane];
                    q[1] = packed[warp_of * 64 + 32 + lane];
                }
            }
            const auto* words = reinterpret_cast<const std::uint32_t*>(q);
            const std::uint32_t x = at + std::uint32_t((t * Tokens + lane % 8) * 128);
            const std::uint32_t a_row =
                at + Stage::weights +
                std::uint32_t((t * block_rows + warp_of * 16 + lane / 8 % 2 * 8 + lane % 8) * 128);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                std::uint32_t b[Tokens / 8][4];
#pragma unroll
                for (int j = 0; j < Tokens / 8; ++j)
                    load_matrices(b[j], x + std::uint32_t(j * 1024 + ((h * 4 + lane / 8) ^ (lane % 8)) * 16));
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int i = 2 * h + e;  // fragment of 16 inputs
                    std::uint32_t a[4];
                    if constexpr (Kind == TileKind::dense) {
                        load_matrices(a, a_row + std::uint32_t(((2 * i + lane / 16) ^ (lane % 8)) * 16));
                    } else {
                        const int k16 = (step % Stage::steps_a_chunk * Stage::tiles + t) * 4 + i;
                        if ((k16 & mask) == 0) load_groups(r, data, k16 >> cut.group_shift);
                        if constexpr (Kind == TileKind::u4)
                            unpack_u4(a, words[i], r);
                        else
                            unpack_u8(a, words[2 * i], words[2 * i + 1], r);
                    }
#pragma unroll
                    for (int j = 0; j < Tokens / 8; ++j)
                        multiply_16(d + 4 * j, a, b[j][2 * e], b[j][2 * e + 1], T{});
                }
            }
        }
    }

    // d += W · xᵀ over chunks [first, last). `arrive` is called once, after the first weights were asked for:
    // tokens are not read before it returns.
    template <class Arrive>
    __device__ void run(float (&d)[values], const Tensor& x, const TokenRows& rows, int first, int last,
                        Arrive arrive) {
        RowGroup<T> r[2];
        for (RowGroup<T>& one : r) {
            one.set_zero(std::uint32_t(w.zero));
            one.set_offset(0, false);
        }
        const int begin = first * Stage::steps_a_chunk, steps = (last - first) * Stage::steps_a_chunk;
#pragma unroll
        for (int s = 0; s < general_stages - 1; ++s)
            if (s < steps) copy_weights(begin + s, s);
        arrive();
        choose_tokens(x, rows);
#pragma unroll
        for (int s = 0; s < general_stages - 1; ++s) {
            if (s < steps) copy_tokens(begin + s, s);
            commit_copies();
        }
        for (int s = 0; s < steps; ++s) {
            wait_for_copies<general_stages - 2>();
            __syncthreads();  // stage s is whole, and no warp reads the one before any more
            const int next = s + general_stages - 1;
            if (next < steps) {
                copy_weights(begin + next, next % general_stages);
                copy_tokens(begin + next, next % general_stages);
            }
            commit_copies();
            multiply(d, r, begin + s, s % general_stages);
        }
        wait_for_copies<0>();
        __syncthreads();
    }
};

}  // namespace recto::cuda
