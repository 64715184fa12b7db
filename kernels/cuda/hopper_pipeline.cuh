// The ring of stages of the Hopper product: its arguments, the run of work that a block takes, and the
// producer that fills the ring by the bulk copy engine (PTX ISA: mbarrier, cp.async.bulk,
// cp.async.bulk.tensor).
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>

#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

constexpr int dense_box_rows = 32;
constexpr int most_stages = 16;
constexpr std::size_t ring_limit = (227 - 20) * 1024;  // 20 KiB are the epilogue's

struct HopperArgs {
    TileWeight w;
    Tensor out;
    Epilogue epilogue;
    const float* bias;
    LinearScratch scratch;
    int tokens;     // rows of x
    int row_tiles;  // of the weight
    int token_tiles;
    TileShape shape;
    int stages;

    __device__ Pieces pieces() const { return {row_tiles, token_tiles, w.chunks, shape, int(blockIdx.x)}; }

    // Of the scales, worked out by the host: a division costs a thread more than its products.
    int groups_a_chunk;  // stored for 128 inputs
    int chunks_a_group;  // 1, or more where groups are longer than 128
    int group_shift;     // log2 of a group's fragments of 16 inputs, at most 3
    int producers;       // warps that fill a stage
};

// Bytes of one stage: the weights of 128 rows, their scales, and the tokens.
struct StageLayout {
    std::uint32_t weights, scale, second, x, bytes;  // offsets, then the whole, a multiple of 1,024
};

__host__ __device__ constexpr int stage_k(int tokens) {
    return tokens >= 128 ? 64 : 128;
}

template <TileKind Kind>
__host__ __device__ StageLayout stage_layout(int tokens, int groups_a_chunk, SecondPlane mode) {
    const int k = stage_k(tokens);
    const auto up = [](std::uint32_t n) { return (n + 1023) / 1024 * 1024; };
    StageLayout s{};
    std::uint32_t at = std::uint32_t(tokens) * k * 2;  // x first: its swizzle needs 1,024-byte alignment
    s.x = 0;
    s.weights = at;
    at += std::uint32_t(tile_rows) * k * (Kind == TileKind::dense ? 4 : Kind == TileKind::u8 ? 2 : 1) / 2;
    s.scale = at;
    if (Kind != TileKind::dense) {
        const std::uint32_t values = std::uint32_t(tile_rows * groups_a_chunk);
        at += values * 2;
        s.second = at;
        if (mode != SecondPlane::none) at += values * (mode == SecondPlane::zero_u8 ? 1 : 2);
    }
    s.bytes = up(at);
    return s;
}

__device__ inline void barrier_init(std::uint32_t bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count));
}
__device__ inline void barrier_arrive(std::uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ inline void barrier_expect(std::uint32_t bar, std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ inline void barrier_wait(std::uint32_t bar, std::uint32_t parity) {
    asm volatile(
        "{ .reg .pred p;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@p bra done;\n"
        "bra again;\n"
        "done: }" ::"r"(bar),
        "r"(parity)
        : "memory");
}
__device__ inline void copy_bulk(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t bar) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(bar)
        : "memory");
}
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap* map, int x, int y, std::uint32_t bar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(bar)
        : "memory");
}
template <int Registers>
__device__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Four warps, one thread of each. Asking the copy engine for one part of a stage costs a thread about a
// hundred clocks, and a stage has up to ten parts: one thread alone would be slower than the memory. So the
// warps share the parts, and every one arrives at the stage's barrier with the bytes that it asked for.
constexpr int producer_warps = 4;

template <TileKind Kind, int Tokens>
struct Producer {
    static constexpr int stage_inputs = stage_k(Tokens);
    static constexpr int per = stage_inputs / tile_k;  // k tiles a stage
    static constexpr int row_boxes = tile_rows / dense_box_rows;
    static constexpr std::uint32_t tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);

    const HopperArgs& a;
    const CUtensorMap* x_map;
    const CUtensorMap* w_map;
    std::uint32_t ring, full;
    StageLayout layout;
    int warp;  // 0 … 3: 0 … 2 ask for weights, 3 for tokens

    // Of this warp: two bulk copies a stage, or boxes of the piece at hand.
    const std::uint8_t* from[2] = {};
    std::uint32_t bytes = 0;  // of one bulk copy
    std::uint32_t unit = 0;   // bytes of a group's values, or of a stage's tiles
    int box_row = 0, half = 0;

    __device__ int group_of(int k) const {
        const int chunk = k * stage_inputs / chunk_k;
        return a.chunks_a_group > 1 ? chunk / a.chunks_a_group : chunk * a.groups_a_chunk;
    }

    __device__ void begin(const Piece& p) {
        if (warp == 3) {
            box_row = p.token_tile * Tokens;
        } else if constexpr (Kind == TileKind::dense) {
            box_row = a.w.gated ? p.row_tile * block_rows : p.row_tile * tile_rows;
            half = a.w.rows / 2;
        } else {
            const int width = warp == 2 && a.w.mode == SecondPlane::zero_u8 ? 1 : 2;
            unit = warp == 0 ? per * tile_bytes : std::uint32_t(block_rows * width);
            bytes = warp == 0 ? unit : unit * std::uint32_t(a.groups_a_chunk);
            const void* plane = warp == 0 ? a.w.data : warp == 1 ? a.w.scale : a.w.second;
            const std::size_t block_bytes =
                warp == 0 ? std::size_t(a.w.chunks) * 2 * tile_bytes : std::size_t(a.w.groups) * unit;
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                // The last tile may have one block: the other warpgroup gets it twice and writes nothing.
                const int block = min(p.row_tile * 2 + b, a.w.blocks - 1);
                from[b] = static_cast<const std::uint8_t*>(plane) + std::size_t(block) * block_bytes;
            }
        }
    }

    // `k` counts stages inside the tile.
    __device__ void ask(int k, std::uint32_t stage) const {
        const std::uint32_t at = ring + stage * layout.bytes, bar = full + stage * 8;
        if (warp == 3) {
            barrier_expect(bar, std::uint32_t(Tokens) * stage_inputs * 2);
#pragma unroll
            for (int t = 0; t < per; ++t)
                copy_box(at + layout.x + std::uint32_t(t * Tokens) * 128, x_map, (k * per + t) * tile_k,
                         box_row, bar);
        } else if constexpr (Kind == TileKind::dense) {
            constexpr int boxes = per * row_boxes;
            const int first = warp * boxes / 3, last = (warp + 1) * boxes / 3;
            barrier_expect(bar, std::uint32_t(last - first) * dense_box_rows * 128);
            for (int i = first; i < last; ++i) {
                const int t = i / row_boxes, box = i % row_boxes;
                // Of a gated weight boxes alternate: 32 gate rows, the 32 up rows that belong to them.
                const int row = a.w.gated ? box_row + box / 2 * dense_box_rows + (box % 2) * half
                                          : box_row + box * dense_box_rows;
                copy_box(at + layout.weights + std::uint32_t(t * tile_rows + box * dense_box_rows) * 128,
                         w_map, (k * per + t) * tile_k, row, bar);
            }
        } else {
            const std::size_t offset = std::size_t(warp == 0 ? k : group_of(k)) * unit;
            const std::uint32_t to = at + (warp == 0   ? layout.weights
                                           : warp == 1 ? layout.scale
                                                       : layout.second);
            barrier_expect(bar, 2 * bytes);
            copy_bulk(to, from[0] + offset, bytes, bar);
            copy_bulk(to + bytes, from[1] + offset, bytes, bar);
        }
    }

    __device__ bool idle() const {
        return Kind != TileKind::dense && warp == 2 && a.w.mode == SecondPlane::none;
    }

    __device__ void run(std::uint32_t empty) {
        if (idle()) return;
        constexpr int per_chunk = chunk_k / stage_inputs;
        if (warp == 3) wait_for_previous();  // weights are asked for before the inputs are known to be there
        Pieces pieces = a.pieces();
        std::uint32_t stage = 0, lap = 0;
        for (Piece p{}; pieces.next(p);) {
            begin(p);
            for (int k = p.first * per_chunk; k < p.last * per_chunk; ++k) {
                if (lap > 0) barrier_wait(empty + stage * 8, (lap - 1) & 1);
                ask(k, stage);
                if (++stage == std::uint32_t(a.stages)) {
                    stage = 0;
                    ++lap;
                }
            }
        }
        if (warp != 3) wait_for_previous();
    }
};

}  // namespace recto::cuda
