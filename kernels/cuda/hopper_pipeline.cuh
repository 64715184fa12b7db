// The ring of stages of the Hopper product: its arguments, the run of work that a block takes, and the producer that
// fills the ring by the bulk copy engine (PTX ISA: mbarrier, cp.async.bulk, cp.async.bulk.tensor).
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>

#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

constexpr int tile_rows = 2 * block_rows;  // of one block of threads
constexpr int dense_box_rows = 32;
constexpr int most_stages = 16;
constexpr std::size_t ring_limit = (227 - 20) * 1024;  // 20 KiB are the epilogue's

struct HopperArgs {
    TileWeight w;
    Tensor out;
    Epilogue epilogue;
    const float* bias;
    LinearScratch scratch;
    int tokens;       // rows of x
    int row_tiles;    // of the weight
    int token_tiles;
    int run;          // chunks a block takes; 0: whole tiles, one after another
    int splits;       // blocks of a tile when every tile is cut alike; 0: runs go on into the next tile
    int stages;
    // Of the scales, worked out by the host: a division costs a thread more than its products.
    int groups_a_chunk;   // stored for 128 inputs
    int chunks_a_group;   // 1, or more where groups are longer than 128
    int group_shift;      // log2 of a group's fragments of 16 inputs, at most 3
    std::uint32_t stage_bytes;  // that arrive
};

// Bytes of one stage: the weights of 128 rows, their scales, and the tokens.
struct StageLayout {
    std::uint32_t weights, scale, second, x, bytes;  // offsets, then the whole, a multiple of 1,024
};

__host__ __device__ constexpr int stage_k(int tokens) { return tokens >= 128 ? 64 : 128; }

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
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap* map, int x, int y, std::uint32_t bar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
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

// A run of chunks of one tile. Every thread of a block walks the same pieces.
struct Piece {
    int row_tile, token_tile, first, last;  // chunks [first, last)
};
struct Pieces {
    const HopperArgs& a;
    int at, end;  // runs that go on: chunk numbers; else tile numbers

    __device__ explicit Pieces(const HopperArgs& args) : a(args) {
        const int tiles = a.row_tiles * a.token_tiles;
        if (a.run > 0 && a.splits == 0) {
            at = int(blockIdx.x) * a.run;
            end = min(at + a.run, tiles * a.w.chunks);
        } else if (a.splits > 0) {
            at = int(blockIdx.x) / a.splits;
            end = at + 1;
        } else {
            at = int(blockIdx.x);
            end = tiles;
        }
    }
    __device__ bool next(Piece& p) {
        if (at >= end) return false;
        const bool goes_on = a.run > 0 && a.splits == 0;
        const int tile = goes_on ? at / a.w.chunks : at;
        p.row_tile = tile % a.row_tiles;
        p.token_tile = tile / a.row_tiles;
        p.first = 0;
        p.last = a.w.chunks;
        if (goes_on) {
            p.first = at - tile * a.w.chunks;
            p.last = min(a.w.chunks, p.first + end - at);
            at += p.last - p.first;
        } else if (a.splits > 0) {
            p.first = int(blockIdx.x) % a.splits * a.run;
            p.last = min(a.w.chunks, p.first + a.run);
            at = end;
        } else {
            at += int(gridDim.x);
        }
        return true;
    }
};

// One warp. Each lane asks for one part of every stage, so that asking costs one instruction a stage and not one a part:
// a single thread would take longer than the memory.
template <TileKind Kind, int Tokens>
struct Producer {
    static constexpr int stage_inputs = stage_k(Tokens);
    static constexpr int per = stage_inputs / tile_k;  // k tiles a stage
    static constexpr int boxes = Kind == TileKind::dense ? per * tile_rows / dense_box_rows : 0;  // of dense weights
    static constexpr int first_x = 8;  // lanes before: weights; from here on: tokens

    const HopperArgs& a;
    const CUtensorMap* x_map;
    const CUtensorMap* w_map;
    std::uint32_t ring, full;
    StageLayout layout;
    int lane;

    // What this lane asks for.
    std::uint32_t to = 0;     // inside a stage
    std::uint32_t bytes = 0;  // of a bulk copy; 0: none
    const std::uint8_t* from = nullptr;
    int box_k = 0, box_row = 0;

    __device__ int group_of(int k) const {
        const int chunk = k * stage_inputs / chunk_k;
        return a.chunks_a_group > 1 ? chunk / a.chunks_a_group : chunk * a.groups_a_chunk;
    }

    __device__ void begin(const Piece& p) {
        if (lane >= first_x) {
            const int t = lane - first_x;
            to = layout.x + std::uint32_t(t * Tokens) * 128;
            box_k = t * tile_k;
            box_row = p.token_tile * Tokens;
        } else if constexpr (Kind == TileKind::dense) {
            const int t = lane / (tile_rows / dense_box_rows), box = lane % (tile_rows / dense_box_rows);
            to = layout.weights + std::uint32_t(t * tile_rows + box * dense_box_rows) * 128;
            box_k = t * tile_k;
            box_row = p.row_tile * tile_rows + box * dense_box_rows;
            if (a.w.gated)  // boxes alternate: 32 gate rows, the 32 up rows that belong to them
                box_row = p.row_tile * block_rows + box / 2 * dense_box_rows + (box % 2) * (a.w.rows / 2);
        } else {
            constexpr std::uint32_t tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);
            const int b = lane % 2;
            // The last tile may have one block: the other warpgroup gets it twice and writes nothing.
            const long long block = min(p.row_tile * 2 + b, a.w.blocks - 1);
            const std::uint32_t values = std::uint32_t(block_rows * a.groups_a_chunk);
            if (lane < 2) {
                from = static_cast<const std::uint8_t*>(a.w.data) + block * a.w.chunks * 2 * tile_bytes;
                bytes = per * tile_bytes;
                to = layout.weights + std::uint32_t(b) * bytes;
            } else if (lane < 4) {
                from = reinterpret_cast<const std::uint8_t*>(a.w.scale + block * a.w.groups * block_rows);
                bytes = values * 2;
                to = layout.scale + std::uint32_t(b) * bytes;
            } else if (lane < 6 && a.w.mode != SecondPlane::none) {
                const int width = a.w.mode == SecondPlane::zero_u8 ? 1 : 2;
                from = static_cast<const std::uint8_t*>(a.w.second) + block * a.w.groups * block_rows * width;
                bytes = values * std::uint32_t(width);
                to = layout.second + std::uint32_t(b) * bytes;
            }
        }
    }

    // `k` counts stages inside the tile.
    __device__ void ask_weights(int k, std::uint32_t stage) const {
        const std::uint32_t at = ring + stage * layout.bytes + to, bar = full + stage * 8;
        if (lane == 0) barrier_expect(bar, a.stage_bytes);
        __syncwarp();
        if constexpr (Kind == TileKind::dense) {
            if (lane < boxes) copy_box(at, w_map, k * stage_inputs + box_k, box_row, bar);
        } else if (lane < 6 && bytes > 0) {
            const std::size_t offset =
                lane < 2 ? std::size_t(k) * bytes
                         : std::size_t(group_of(k)) * block_rows * (lane < 4 || a.w.mode == SecondPlane::offset_16 ? 2 : 1);
            copy_bulk(at, from + offset, bytes, bar);
        }
    }
    __device__ void ask_tokens(int k, std::uint32_t stage) const {
        if (lane >= first_x && lane < first_x + per)
            copy_box(ring + stage * layout.bytes + to, x_map, k * stage_inputs + box_k, box_row, full + stage * 8);
    }

    __device__ void run(std::uint32_t empty) {
        constexpr int per_chunk = chunk_k / stage_inputs;
        Pieces pieces(a);
        Piece p{};
        bool more = pieces.next(p);
        int k = p.first * per_chunk;
        // Weights of the first stages, before the inputs are known to be there.
        int early = 0;
        if (more) {
            begin(p);
            for (; early < a.stages && k + early < p.last * per_chunk; ++early)
                ask_weights(k + early, std::uint32_t(early));
        }
        wait_for_previous();
        for (int i = 0; i < early; ++i)
            ask_tokens(k + i, std::uint32_t(i));
        k += early;
        std::uint32_t stage = std::uint32_t(early == a.stages ? 0 : early), lap = early == a.stages ? 1 : 0;
        while (more) {
            for (; k < p.last * per_chunk; ++k) {
                if (lap > 0) barrier_wait(empty + stage * 8, (lap - 1) & 1);
                ask_weights(k, stage);
                ask_tokens(k, stage);
                if (++stage == std::uint32_t(a.stages)) {
                    stage = 0;
                    ++lap;
                }
            }
            more = pieces.next(p);
            if (!more) break;
            begin(p);
            k = p.first * per_chunk;
        }
    }
};

}  // namespace recto::cuda
