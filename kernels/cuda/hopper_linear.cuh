// The matrix product of Hopper cards: D[outputs, tokens] = W · xᵀ, so that the weights are the operand that may come
// from registers and few tokens still fill the tensor cores' rows.
//
// One block of threads an SM: a producer thread keeps a ring of stages filled by the bulk copy engine; two
// warpgroups, 64 weight rows each, unpack (quantized weights), multiply and write. Weights do not depend on the kernel
// before this one, so their first stages are asked for before waiting for it (programmatic dependent launch): the
// memory stays busy through the small kernels between two products.
//
// Work is cut in one of two ways (choose_tile): whole tiles, or equal runs of chunks of 128 inputs whatever tile they
// belong to ("stream-K", Osama et al. 2023). Sums of a tile shared by several blocks meet in `partials`; the last
// block to arrive adds them in the order of the inputs, so that the same launch gives the same bits.
#pragma once
#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/tile_linear.h"
#include "kernels/cuda/weight_math.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace recto::cuda {

constexpr int tile_rows = 2 * block_rows;  // of one block of threads
constexpr int consumer_threads = 256;
constexpr int hopper_threads = 128 + consumer_threads;
constexpr int slice_tokens = 32;   // of the epilogue
constexpr int slice_stride = 68;   // floats between tokens of a slice: no two lanes of a warp write one bank
constexpr int dense_box_rows = 32;
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
    int run;          // chunks a block takes in stream order; 0: whole tiles
    int stages;
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
    int at, end;  // stream order: chunk numbers; else tile numbers

    __device__ explicit Pieces(const HopperArgs& args) : a(args) {
        const int tiles = a.row_tiles * a.token_tiles;
        if (a.run > 0) {
            at = int(blockIdx.x) * a.run;
            end = min(at + a.run, tiles * a.w.chunks);
        } else {
            at = int(blockIdx.x);
            end = tiles;
        }
    }
    __device__ bool next(Piece& p) {
        if (at >= end) return false;
        const int tile = a.run > 0 ? at / a.w.chunks : at;
        p.row_tile = tile % a.row_tiles;
        p.token_tile = tile / a.row_tiles;
        if (a.run > 0) {
            p.first = at - tile * a.w.chunks;
            p.last = min(a.w.chunks, p.first + end - at);
            at += p.last - p.first;
        } else {
            p.first = 0;
            p.last = a.w.chunks;
            at += int(gridDim.x);
        }
        return true;
    }
};

template <TileKind Kind, int Tokens>
struct Producer {
    const HopperArgs& a;
    const CUtensorMap* x_map;
    const CUtensorMap* w_map;
    std::uint32_t ring, full;
    StageLayout layout;

    __device__ std::uint32_t stage_bytes() const {
        constexpr int k = stage_k(Tokens);
        std::uint32_t n = std::uint32_t(Tokens) * k * 2;
        if (Kind == TileKind::dense) return n + tile_rows * k * 2;
        const std::uint32_t values = std::uint32_t(tile_rows * a.w.groups_a_chunk());
        n += tile_rows * k / (Kind == TileKind::u8 ? 1 : 2) + values * 2;
        if (a.w.mode != SecondPlane::none) n += values * (a.w.mode == SecondPlane::zero_u8 ? 1 : 2);
        return n;
    }

    // `k` counts stages inside the tile.
    __device__ void ask_weights(const Piece& p, int k, std::uint32_t stage) const {
        constexpr int per = stage_k(Tokens) / tile_k;  // k tiles a stage
        const std::uint32_t at = ring + stage * layout.bytes, bar = full + stage * 8;
        barrier_expect(bar, stage_bytes());
        if constexpr (Kind == TileKind::dense) {
            const int half = a.w.rows / 2;
#pragma unroll
            for (int t = 0; t < per; ++t) {
#pragma unroll
                for (int box = 0; box < tile_rows / dense_box_rows; ++box) {
                    int row = p.row_tile * tile_rows + box * dense_box_rows;
                    if (a.w.gated)  // boxes alternate: 32 gate rows, the 32 up rows that belong to them
                        row = p.row_tile * block_rows + box / 2 * dense_box_rows + (box % 2) * half;
                    copy_box(at + layout.weights + std::uint32_t(t * tile_rows + box * dense_box_rows) * 128, w_map,
                             (k * per + t) * tile_k, row, bar);
                }
            }
        } else {
            constexpr std::uint32_t tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);
            const int chunk = k * stage_k(Tokens) / chunk_k;
            const int per_chunk = a.w.groups_a_chunk();
            const int group = a.w.group_size >= chunk_k ? chunk * chunk_k / a.w.group_size : chunk * per_chunk;
            const std::uint32_t values = std::uint32_t(block_rows * per_chunk);
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                // The last tile may have one block: the other warpgroup gets it twice and writes nothing.
                const int block = min(p.row_tile * 2 + b, a.w.blocks - 1);
                const long long tile = (long long)block * a.w.chunks * 2 + k * per;
                copy_bulk(at + layout.weights + b * per * tile_bytes,
                          static_cast<const std::uint8_t*>(a.w.data) + tile * tile_bytes, per * tile_bytes, bar);
                const long long plane = ((long long)block * a.w.groups + group) * block_rows;
                copy_bulk(at + layout.scale + b * values * 2, a.w.scale + plane, values * 2, bar);
                if (a.w.mode == SecondPlane::zero_u8)
                    copy_bulk(at + layout.second + b * values, static_cast<const std::uint8_t*>(a.w.second) + plane,
                              values, bar);
                else if (a.w.mode == SecondPlane::offset_16)
                    copy_bulk(at + layout.second + b * values * 2,
                              static_cast<const std::uint16_t*>(a.w.second) + plane, values * 2, bar);
            }
        }
    }
    __device__ void ask_tokens(const Piece& p, int k, std::uint32_t stage) const {
        constexpr int per = stage_k(Tokens) / tile_k;
#pragma unroll
        for (int t = 0; t < per; ++t)
            copy_box(ring + stage * layout.bytes + layout.x + std::uint32_t(t * Tokens) * 128, x_map,
                     (k * per + t) * tile_k, p.token_tile * Tokens, full + stage * 8);
    }

    __device__ void run(std::uint32_t empty) const {
        constexpr int per_chunk = chunk_k / stage_k(Tokens);
        Pieces pieces(a);
        Piece p{};
        bool more = pieces.next(p);
        int k = p.first * per_chunk;
        // Weights of the first stages, before the inputs are known to be there.
        int early = 0;
        if (more)
            for (; early < a.stages && k + early < p.last * per_chunk; ++early)
                ask_weights(p, k + early, std::uint32_t(early));
        wait_for_previous();
        for (int i = 0; i < early; ++i)
            ask_tokens(p, k + i, std::uint32_t(i));
        k += early;
        std::uint32_t stage = std::uint32_t(early == a.stages ? 0 : early), lap = early == a.stages ? 1 : 0;
        for (; more; more = pieces.next(p), k = p.first * per_chunk) {
            for (; k < p.last * per_chunk; ++k) {
                if (lap > 0) barrier_wait(empty + stage * 8, (lap - 1) & 1);
                ask_weights(p, k, stage);
                ask_tokens(p, k, stage);
                if (++stage == std::uint32_t(a.stages)) {
                    stage = 0;
                    ++lap;
                }
            }
        }
    }
};

template <TileKind Kind, class T, int Tokens>
struct Consumer {
    static constexpr int values = Tokens / 2;  // FP32 sums a thread
    const HopperArgs& a;
    std::uint32_t ring, full, empty;
    const std::uint8_t* ring_data;  // the same memory as `ring`
    StageLayout layout;
    float* slice;        // [slice_tokens][slice_stride] of this warpgroup
    unsigned* arrived;   // shared, one of this warpgroup
    int group;           // warpgroup 0 or 1
    int thread;          // 0 … 127
    std::uint32_t stage = 0, lap = 0;
    int pending_stage = -1;  // read by products that may still run

    __device__ int warp_of() const { return thread / 32; }
    __device__ int lane() const { return thread % 32; }
    __device__ void sync() const { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

    __device__ void load_groups(RowGroup<T> (&r)[2], const std::uint8_t* at, int index) const {
        const int per_chunk = a.w.groups_a_chunk();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = warp_of() * 16 + lane() / 4 + 8 * i;
            const int n = (group * per_chunk + index) * block_rows + row;
            const float s = half_bits(reinterpret_cast<const std::uint16_t*>(at + layout.scale)[n], a.w.planes_bf16);
            float o = 0.0F, z = float(a.w.zero);
            if (a.w.mode == SecondPlane::zero_u8)
                z = float((at + layout.second)[n]);
            else if (a.w.mode == SecondPlane::offset_16)
                o = half_bits(reinterpret_cast<const std::uint16_t*>(at + layout.second)[n], a.w.planes_bf16);
            r[i].set(s, o, z);
        }
    }

    // The products of 64 inputs: tile `t` of the stage, which is tile `k_tile` of its chunk.
    __device__ void step(float (&d)[values], std::uint32_t (&regs)[4][4], RowGroup<T> (&r)[2], int t, int k_tile,
                         int& accumulate) {
        const std::uint32_t at = ring + stage * layout.bytes;
        const std::uint8_t* data = ring_data + stage * layout.bytes;
        const std::uint32_t x = at + layout.x + std::uint32_t(t * Tokens) * 128;
        if constexpr (Kind == TileKind::dense) {
            const std::uint32_t w = at + layout.weights + std::uint32_t(t * tile_rows + group * block_rows) * 128;
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                Wgmma<Tokens>::shared(d, wgmma_descriptor(w, i), wgmma_descriptor(x, i), accumulate, T{});
                accumulate = 1;
            }
        } else {
            constexpr int per = stage_k(Tokens) / tile_k;
            constexpr int tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);
            const std::uint8_t* tile = data + layout.weights + (group * per + t) * tile_bytes;
            const int mask = a.w.group_size >= chunk_k ? 7 : a.w.group_size / 16 - 1;
            uint4 q[Kind == TileKind::u8 ? 2 : 1];
            if constexpr (Kind == TileKind::u4) {
                q[0] = reinterpret_cast<const uint4*>(tile)[thread];
            } else {
                q[0] = reinterpret_cast<const uint4*>(tile)[warp_of() * 64 + lane()];
                q[1] = reinterpret_cast<const uint4*>(tile)[warp_of() * 64 + 32 + lane()];
            }
            const auto* words = reinterpret_cast<const std::uint32_t*>(q);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int k16 = k_tile * 4 + i;
                if ((k16 & mask) == 0 || (i == 0 && t == 0))
                    load_groups(r, data, a.w.group_size >= chunk_k ? 0 : k16 / (mask + 1));
                if constexpr (Kind == TileKind::u4)
                    unpack_u4(regs[i], words[i], r);
                else
                    unpack_u8(regs[i], words[2 * i], words[2 * i + 1], r);
            }
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                Wgmma<Tokens>::regs(d, regs[i], wgmma_descriptor(x, i), accumulate, T{});
                accumulate = 1;
            }
        }
        wgmma_commit();
    }

    __device__ void release(int s) const {
        if (s >= 0 && lane() == 0) barrier_arrive(empty + std::uint32_t(s) * 8);
    }

    __device__ void multiply(float (&d)[values], const Piece& p) {
        constexpr int per = stage_k(Tokens) / tile_k, per_chunk = chunk_k / stage_k(Tokens);
        std::uint32_t even[4][4], odd[4][4];
        RowGroup<T> r[2];
        int accumulate = 0;
        const int stages = (p.last - p.first) * per_chunk;
        if constexpr (per == 2) {
            for (int s = 0; s < stages; ++s) {
                barrier_wait(full + stage * 8, lap & 1);
                step(d, even, r, 0, 0, accumulate);
                wgmma_wait<1>();
                release(pending_stage);
                step(d, odd, r, 1, 1, accumulate);
                wgmma_wait<1>();
                pending_stage = int(stage);
                advance();
            }
        } else {  // two stages make a chunk
            for (int s = 0; s < stages; s += 2) {
                barrier_wait(full + stage * 8, lap & 1);
                step(d, even, r, 0, 0, accumulate);
                wgmma_wait<1>();
                release(pending_stage);
                pending_stage = int(stage);
                advance();
                barrier_wait(full + stage * 8, lap & 1);
                step(d, odd, r, 0, 1, accumulate);
                wgmma_wait<1>();
                release(pending_stage);
                pending_stage = int(stage);
                advance();
            }
        }
        wgmma_wait<0>();
        release(pending_stage);
        pending_stage = -1;
    }
    __device__ void advance() {
        if (++stage == std::uint32_t(a.stages)) {
            stage = 0;
            ++lap;
        }
    }

    // Sums of the tile's pieces in the order of the inputs. False: another block will write the tile.
    __device__ bool gather(float (&d)[values], const Piece& p) {
        if (p.first == 0 && p.last == a.w.chunks) return true;
        const int tile = p.token_tile * a.row_tiles + p.row_tile;
        const int begin = tile * a.w.chunks;
        const int first = begin / a.run, last = (begin + a.w.chunks - 1) / a.run;  // blocks that share the tile
        const int mine = int(blockIdx.x);
        // A block shares at most two tiles: the one its run begins in and the one it ends in.
        const auto place = [&](int block) {
            const int which = block == first && block * a.run < begin ? 1 : 0;
            return a.scratch.partials +
                   ((std::size_t(block) * 2 + std::size_t(which)) * 2 + std::size_t(group)) * values * 128;
        };
        float* to = place(mine);
#pragma unroll
        for (int i = 0; i < values; ++i)
            to[i * 128 + thread] = d[i];
        __threadfence();
        sync();
        unsigned* counter = a.scratch.counters + tile * 2 + group;
        if (thread == 0) *arrived = atomicAdd(counter, 1U);
        sync();
        if (*arrived != unsigned(last - first)) return false;
        __threadfence();
        if (thread == 0) *counter = 0;
#pragma unroll
        for (int i = 0; i < values; ++i)
            d[i] = 0.0F;
        for (int block = first; block <= last; ++block) {
            const float* from = place(block);
#pragma unroll
            for (int i = 0; i < values; ++i)
                d[i] += __ldcg(from + i * 128 + thread);
        }
        return true;
    }

    __device__ void write(const float (&d)[values], const Piece& p) {
        constexpr int width = Tokens < slice_tokens ? Tokens : slice_tokens;
        const int block = p.row_tile * 2 + group;
#pragma unroll
        for (int s = 0; s < Tokens / width; ++s) {
            sync();  // the slice before was read
            const int row = warp_of() * 16 + lane() / 4;
#pragma unroll
            for (int j = 0; j < width / 8; ++j) {
                const int token = 8 * j + 2 * (lane() % 4);
                const int i = 4 * (s * width / 8 + j);
                slice[token * slice_stride + row] = d[i];
                slice[(token + 1) * slice_stride + row] = d[i + 1];
                slice[token * slice_stride + row + 8] = d[i + 2];
                slice[(token + 1) * slice_stride + row + 8] = d[i + 3];
            }
            sync();
            const int first = p.token_tile * Tokens + s * width;
            if (a.w.gated)
                write_gated(block, first, width);
            else
                write_plain(block, first, width);
        }
    }

    __device__ void write_plain(int block, int first, int width) const {
        for (int i = thread; i < width * block_rows / 4; i += 128) {
            const int token = i / (block_rows / 4), row = i % (block_rows / 4) * 4;
            const int output = block * block_rows + row;
            if (first + token >= a.tokens || output >= a.w.outputs) continue;
            const float4 v = *reinterpret_cast<const float4*>(slice + token * slice_stride + row);
            store_outputs(first + token, output, v);
        }
    }
    __device__ void write_gated(int block, int first, int width) const {
        constexpr int half = block_rows / 2;
        for (int i = thread; i < width * half / 4; i += 128) {
            const int token = i / (half / 4), row = i % (half / 4) * 4;
            const int output = block * half + row;
            if (first + token >= a.tokens || output >= a.w.outputs) continue;
            float g[4], u[4];
            *reinterpret_cast<float4*>(g) = *reinterpret_cast<const float4*>(slice + token * slice_stride + row);
            *reinterpret_cast<float4*>(u) =
                *reinterpret_cast<const float4*>(slice + token * slice_stride + half + row);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                if (a.bias && output + e < a.w.outputs) {
                    g[e] += a.bias[output + e];
                    u[e] += a.bias[a.w.outputs + output + e];
                }
                g[e] = gate(g[e], a.epilogue) * u[e];
            }
            store_values(first + token, output, g);
        }
    }
    __device__ void store_outputs(int token, int output, float4 v) const {
        float e[4] = {v.x, v.y, v.z, v.w};
        if (a.bias)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (output + i < a.w.outputs) e[i] += a.bias[output + i];
        store_values(token, output, e);
    }
    __device__ void store_values(int token, int output, float (&e)[4]) const {
        const long long at = (long long)token * a.out.row_stride + output;
        const bool whole = output + 4 <= a.w.outputs && at % 4 == 0;
        if (a.out.dtype == DType::f32) {
            float* to = static_cast<float*>(a.out.data) + at;
            if (whole) {
                if (a.epilogue == Epilogue::add) {
                    const float4 before = *reinterpret_cast<const float4*>(to);
                    e[0] += before.x, e[1] += before.y, e[2] += before.z, e[3] += before.w;
                }
                *reinterpret_cast<float4*>(to) = make_float4(e[0], e[1], e[2], e[3]);
            } else {
                for (int i = 0; i < 4 && output + i < a.w.outputs; ++i)
                    to[i] = a.epilogue == Epilogue::add ? to[i] + e[i] : e[i];
            }
            return;
        }
        for (int i = 0; i < 4; ++i)
            if (a.epilogue == Epilogue::add && output + i < a.w.outputs) e[i] += load(a.out.data, at + i, a.out.dtype);
        if (whole) {
            std::uint32_t pair[2];
            for (int i = 0; i < 2; ++i)
                pair[i] = a.out.dtype == DType::f16 ? as_bits(__floats2half2_rn(e[2 * i], e[2 * i + 1]))
                                                    : bf16_pair(e[2 * i], e[2 * i + 1]);
            *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(a.out.data) + at) = make_uint2(pair[0], pair[1]);
        } else {
            for (int i = 0; i < 4 && output + i < a.w.outputs; ++i)
                store(a.out.data, at + i, a.out.dtype, e[i]);
        }
    }

    __device__ void run() {
        Pieces pieces(a);
        for (Piece p{}; pieces.next(p);) {
            float d[values];
#pragma unroll
            for (int i = 0; i < values; ++i)
                d[i] = 0.0F;
            multiply(d, p);
            if (gather(d, p) && p.row_tile * 2 + group < a.w.blocks) write(d, p);
        }
    }
};

template <TileKind Kind, class T, int Tokens>
__global__ void __launch_bounds__(hopper_threads, 1)
    hopper_kernel(const __grid_constant__ HopperArgs a, const __grid_constant__ CUtensorMap x_map,
                  const __grid_constant__ CUtensorMap w_map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // wgmma and setmaxnreg exist in sm_90a code alone
    extern __shared__ __align__(1024) std::uint8_t shared[];
    __shared__ __align__(8) std::uint64_t barriers[2 * 16];
    __shared__ __align__(16) float slices[2][(Tokens < slice_tokens ? Tokens : slice_tokens) * slice_stride];
    __shared__ unsigned arrived[2];
    const StageLayout layout = stage_layout<Kind>(Tokens, a.w.groups_a_chunk(), a.w.mode);
    const std::uint32_t ring = std::uint32_t(__cvta_generic_to_shared(shared));
    const std::uint32_t full = std::uint32_t(__cvta_generic_to_shared(barriers)), empty = full + 16 * 8;
    let_next_start();
    if (threadIdx.x == 0) {
        for (int i = 0; i < a.stages; ++i) {
            barrier_init(full + i * 8, 1);
            barrier_init(empty + i * 8, consumer_threads / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        give_registers<40>();
        if (threadIdx.x == 0) Producer<Kind, Tokens>{a, &x_map, &w_map, ring, full, layout}.run(empty);
    } else {
        take_registers<232>();
        const int thread = int(threadIdx.x) - 128, group = thread / 128;
        wait_for_previous();
        Consumer<Kind, T, Tokens>{a,           ring,  full,          empty, shared, layout,
                                  slices[group], &arrived[group], group, thread % 128}
            .run();
    }
#endif
}

template <TileKind Kind>
int stages_for(const TileWeight& w, int tokens) {
    return int(std::min<std::size_t>(ring_limit / stage_layout<Kind>(tokens, w.groups_a_chunk(), w.mode).bytes, 16));
}

template <TileKind Kind, class T, int Tokens>
void launch_hopper(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                   const LinearScratch& scratch, const TileShape& shape) {
    HopperArgs a{};
    a.w = w;
    a.out = output.out;
    a.epilogue = output.epilogue;
    a.bias = output.bias;
    a.scratch = scratch;
    a.tokens = int(x.rows);
    a.row_tiles = (w.blocks + 1) / 2;
    a.token_tiles = (a.tokens + Tokens - 1) / Tokens;
    a.run = shape.pieces;
    a.stages = stages_for<Kind>(w, Tokens);
    assert(a.run == 0 || (std::size_t(shape.grid) * 2 * 2 * Tokens / 2 * 128 <= scratch.partial_floats &&
                          std::size_t(a.row_tiles * a.token_tiles) * 2 <= scratch.counter_count));
    const CUtensorMap x_map = tile_map(x.data, w.dtype, x.rows, x.cols, x.row_stride, Tokens);
    const CUtensorMap w_map =
        Kind == TileKind::dense ? tile_map(w.data, w.dtype, w.rows, w.cols, w.cols, dense_box_rows) : x_map;
    const std::size_t bytes =
        std::size_t(a.stages) * stage_layout<Kind>(Tokens, w.groups_a_chunk(), w.mode).bytes;
    launch("linear", hopper_kernel<Kind, T, Tokens>, dim3(unsigned(shape.grid)), dim3(hopper_threads), bytes, stream,
           a, x_map, w_map);
}

}  // namespace recto::cuda
