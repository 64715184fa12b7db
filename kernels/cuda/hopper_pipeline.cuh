// The ring of stages of the Hopper product: its arguments, the run of work that a block takes, and the
// producers that fill the ring by the bulk copy engine (PTX ISA: mbarrier, cp.async.bulk,
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
constexpr std::size_t ring_limit = (227 - 21) * 1024;  // 21 KiB are the epilogue's and the barriers'

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
};

// Bytes of one stage: a tile's weights, their scales, and the tokens.
struct StageLayout {
    std::uint32_t weights, scale, second, x;  // offsets
    std::uint32_t asked;                      // bytes of a quantized weight
    std::uint32_t bytes;                      // the whole, a multiple of 1,024
};

// Inputs of a stage: a chunk, or half of one so that there are enough stages.
__host__ __device__ constexpr int stage_k(TileKind kind, int tokens) {
    return tokens >= (kind == TileKind::dense ? 128 : 160) ? 64 : 128;
}

template <TileKind Kind>
__host__ __device__ StageLayout stage_layout(int tokens, int groups_a_chunk, SecondPlane mode) {
    const int k = stage_k(Kind, tokens);
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
    s.asked = at - s.weights;
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
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap* map, int x, int y, std::uint32_t bar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(bar)
        : "memory");
}
__device__ inline void copy_blocks(std::uint32_t to, const CUtensorMap* map, int row, int block,
                                   std::uint32_t bar) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
        "%4}], [%5];" ::"r"(to),
        "l"(map), "r"(0), "r"(row), "r"(block), "r"(bar)
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

// What the copy engine reads from: dense weights as rows; quantized ones as planes of blocks.
struct HopperMaps {
    CUtensorMap x, weights, scales, second;
};
constexpr int x_box_rows = 32;  // of quantized products' tokens

// One thread of each producer warp asks. Asking the copy engine for one part of a stage costs a thread about
// a hundred clocks, and a dense stage has up to ten parts: one thread alone would be slower than the memory.
// Each warp arrives at the stage's barrier with the bytes that it asked for.
template <TileKind Kind, int Tokens>
struct Producer {
    static constexpr bool dense = Kind == TileKind::dense;
    static constexpr int warps = dense ? 4 : 2;  // the last asks for tokens, the others for weights
    static constexpr int stage_inputs = stage_k(Kind, Tokens);
    static constexpr int per = stage_inputs / tile_k;  // k tiles a stage
    static constexpr int row_boxes = tile_rows / dense_box_rows;
    static constexpr std::uint32_t tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);
    static constexpr int map_rows = int(per * tile_bytes / 2048);  // of the weights' map, a stage

    const HopperArgs& a;
    const HopperMaps& maps;
    std::uint32_t ring, full;
    StageLayout layout;
    int warp;

    __device__ bool tokens() const { return warp == warps - 1; }

    __device__ void ask_tokens(const Piece& p, int k, std::uint32_t at, std::uint32_t bar) const {
        constexpr int rows = dense ? Tokens : x_box_rows;
        const int first = p.token_tile * Tokens;
        // What is past the last token stays as it was: no sum that counts reads it.
        const int boxes = dense ? 1 : min(Tokens, a.tokens - first + rows - 1) / rows;
        barrier_expect(bar, std::uint32_t(boxes * rows * stage_inputs * 2));
#pragma unroll
        for (int t = 0; t < per; ++t)
            for (int box = 0; box < boxes; ++box)
                copy_box(at + layout.x + std::uint32_t(t * Tokens + box * rows) * 128, &maps.x,
                         (k * per + t) * tile_k, first + box * rows, bar);
    }

    __device__ void ask_rows(const Piece& p, int k, std::uint32_t at, std::uint32_t bar) const {
        constexpr int boxes = per * row_boxes;
        const int begin = warp * boxes / 3, end = (warp + 1) * boxes / 3;
        barrier_expect(bar, std::uint32_t(end - begin) * dense_box_rows * 128);
        for (int i = begin; i < end; ++i) {
            const int t = i / row_boxes, box = i % row_boxes;
            // Of a gated weight boxes alternate: 32 gate rows, the 32 up rows that belong to them.
            const int row =
                a.w.gated ? p.row_tile * tile_rows / 2 + box / 2 * dense_box_rows + (box % 2) * (a.w.rows / 2)
                          : p.row_tile * tile_rows + box * dense_box_rows;
            copy_box(at + layout.weights + std::uint32_t(t * tile_rows + box * dense_box_rows) * 128,
                     &maps.weights, (k * per + t) * tile_k, row, bar);
        }
    }

    __device__ void ask_planes(const Piece& p, int k, std::uint32_t at, std::uint32_t bar) const {
        const int chunk = k * stage_inputs / chunk_k, block = p.row_tile * tile_blocks;
        const int group = a.chunks_a_group > 1 ? chunk / a.chunks_a_group : chunk * a.groups_a_chunk;
        barrier_expect(bar, layout.asked);
        copy_blocks(at + layout.weights, &maps.weights, k * map_rows, block, bar);
        copy_blocks(at + layout.scale, &maps.scales, group, block, bar);
        if (a.w.mode != SecondPlane::none) copy_blocks(at + layout.second, &maps.second, group, block, bar);
    }

    __device__ void run(std::uint32_t empty) const {
        constexpr int per_chunk = chunk_k / stage_inputs;
        if (tokens()) wait_for_previous();  // weights are asked for before the inputs are known to be there
        Pieces pieces = a.pieces();
        std::uint32_t stage = 0, lap = 0;
        for (Piece p{}; pieces.next(p);) {
            for (int k = p.first * per_chunk; k < p.last * per_chunk; ++k) {
                const std::uint32_t at = ring + stage * layout.bytes, bar = full + stage * 8;
                if (lap > 0) barrier_wait(empty + stage * 8, (lap - 1) & 1);
                if (tokens())
                    ask_tokens(p, k, at, bar);
                else if constexpr (dense)
                    ask_rows(p, k, at, bar);
                else
                    ask_planes(p, k, at, bar);
                if (++stage == std::uint32_t(a.stages)) {
                    stage = 0;
                    ++lap;
                }
            }
        }
        if (!tokens()) wait_for_previous();
    }
};

}  // namespace recto::cuda
