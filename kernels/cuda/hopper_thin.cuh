// Consumers of the Hopper product for quantized weights and few tokens. There memory is the bound, and
// unpacking takes most of the instructions: wgmma's waits would leave the schedulers idle between them, so
// these warps use the synchronous product (mma.sync), twice as many of them. Two teams of 128 weight rows
// take the chunks in turns; their sums meet in shared memory, the first team's first.
#pragma once
#include <type_traits>

#include "kernels/cuda/hopper_epilogue.cuh"
#include "kernels/cuda/hopper_groups.cuh"
#include "kernels/cuda/tensor_core.cuh"

namespace recto::cuda {

template <TileKind Kind, class T, int Tokens>
struct ThinConsumer {
    static constexpr int values = Tokens / 2;
    const HopperArgs& a;
    std::uint32_t ring, full, empty;
    const std::uint8_t* ring_data;
    StageLayout layout;
    TileEpilogue<Tokens> epilogue;
    int group;   // 0 or 1: which 64 rows
    int team;    // 0 or 1: even or odd chunks of a piece
    int thread;  // 0 … 127
    std::uint32_t stage = 0, lap = 0;

    __device__ void advance() {
        if (++stage == std::uint32_t(a.stages)) {
            stage = 0;
            ++lap;
        }
    }

    // 64 inputs: tile t of the stage.
    __device__ void tile(float (&d)[values], RowGroup<T> (&r)[2], int t) const {
        const int lane = thread % 32;
        const std::uint32_t x = ring + stage * layout.bytes + layout.x + std::uint32_t(t * Tokens) * 128;
        const std::uint8_t* data = ring_data + stage * layout.bytes;
        constexpr int tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);
        const auto* packed =
            reinterpret_cast<const uint4*>(data + layout.weights + (group * 2 + t) * tile_bytes);
        const int mask = (1 << a.group_shift) - 1;
        uint4 q[Kind == TileKind::u8 ? 2 : 1];
        if constexpr (Kind == TileKind::u4) {
            q[0] = packed[thread];
        } else {
            q[0] = packed[thread / 32 * 64 + lane];
            q[1] = packed[thread / 32 * 64 + 32 + lane];
        }
        const auto* words = reinterpret_cast<const std::uint32_t*>(q);
        // Row lane % 8 of the token's eight, 16 bytes at unit (lane / 8) of the half's four, swizzled by the
        // row.
        const std::uint32_t row = x + std::uint32_t(lane % 8) * 128;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            std::uint32_t b[Tokens / 8][4];
#pragma unroll
            for (int j = 0; j < Tokens / 8; ++j)
                load_matrices(b[j], row + std::uint32_t(j) * 1024 +
                                        std::uint32_t(((h * 4 + lane / 8) ^ (lane % 8)) * 16));
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int i = 2 * h + e, k16 = t * 4 + i;
                if ((k16 & mask) == 0) load_groups(r, a, layout, data, group, thread, k16 >> a.group_shift);
                std::uint32_t w[4];
                if constexpr (Kind == TileKind::u4)
                    unpack_u4(w, words[i], r);
                else
                    unpack_u8(w, words[2 * i], words[2 * i + 1], r);
#pragma unroll
                for (int j = 0; j < Tokens / 8; ++j)
                    multiply_16(d + 4 * j, w, b[j][2 * e], b[j][2 * e + 1], T{});
            }
        }
    }

    // A whole chunk of 4-bit weights under one scale a row, FP16: the products are of q − z, exact integers,
    // and the chunk's sums are scaled in FP32. Four instructions fewer a fragment, and nothing of the weight
    // is rounded.
    __device__ void chunk_u4(float (&d)[values]) const {
        const int lane = thread % 32, row = thread / 32 * 16 + lane / 4;
        const std::uint32_t at = ring + stage * layout.bytes;
        const std::uint8_t* data = ring_data + stage * layout.bytes;
        const auto* packed =
            reinterpret_cast<const uint4*>(data + layout.weights + group * 2 * block_rows * tile_k / 2);
        const uint4 q[2] = {packed[thread], packed[thread + 128]};
        const auto* words = reinterpret_cast<const std::uint32_t*>(q);
        float scale[2];
        __half2 low[2], high[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int n = group * block_rows + row + 8 * i;
            scale[i] = __half2float(reinterpret_cast<const __half*>(data + layout.scale)[n]);
            const std::uint32_t z =
                a.w.mode == SecondPlane::none ? std::uint32_t(a.w.zero) : (data + layout.second)[n];
            low[i] = RowGroup<__half>::twice(0xE400U | z);
            high[i] = RowGroup<__half>::twice(0xD400U | z << 4);
        }
        float sum[values];
#pragma unroll
        for (int i = 0; i < values; ++i)
            sum[i] = 0.0F;
        const std::uint32_t x = at + layout.x + std::uint32_t(lane % 8) * 128;
        const __half2 sixteenth = __float2half2_rn(1.0F / 16);
#pragma unroll
        for (int h = 0; h < 4; ++h) {  // 32 inputs
            std::uint32_t b[Tokens / 8][4];
#pragma unroll
            for (int j = 0; j < Tokens / 8; ++j)
                load_matrices(b[j], x + std::uint32_t((h / 2 * Tokens + 8 * j) * 128) +
                                        std::uint32_t(((h % 2 * 4 + lane / 8) ^ (lane % 8)) * 16));
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const std::uint32_t word = words[2 * h + e], word8 = word >> 8;
                const std::uint32_t w[4] = {
                    as_bits(__hadd2(as_half2(mask_or(word, 0x000F000F, 0x64006400)), low[0])),
                    as_bits(__hfma2(as_half2(mask_or(word, 0x00F000F0, 0x64006400)), sixteenth, high[1])),
                    as_bits(__hadd2(as_half2(mask_or(word8, 0x000F000F, 0x64006400)), low[0])),
                    as_bits(__hfma2(as_half2(mask_or(word8, 0x00F000F0, 0x64006400)), sixteenth, high[1]))};
#pragma unroll
                for (int j = 0; j < Tokens / 8; ++j)
                    multiply_16(sum + 4 * j, w, b[j][2 * e], b[j][2 * e + 1], __half{});
            }
        }
#pragma unroll
        for (int i = 0; i < values; ++i)
            d[i] = fmaf(scale[i % 4 / 2], sum[i], d[i]);
    }

    template <class Work>
    __device__ void each_chunk(const Piece& p, Work&& work) {
        for (int c = p.first; c < p.last; ++c) {
            if (((c - p.first) & 1) == team) {
                barrier_wait(full + stage * 8, lap & 1);
                work();
                __syncwarp();
                if (thread % 32 == 0) barrier_arrive(empty + stage * 8);
            }
            advance();
        }
    }

    __device__ void multiply(float (&d)[values], const Piece& p) {
        if constexpr (Kind == TileKind::u4 && std::is_same_v<T, __half>) {
            if (a.group_shift == 3 && a.w.mode != SecondPlane::offset_16) {
                each_chunk(p, [&] { chunk_u4(d); });
                return;
            }
        }
        RowGroup<T> r[2];
        start_groups(r, a.w);
        each_chunk(p, [&] {
            tile(d, r, 0);
            tile(d, r, 1);
        });
    }

    __device__ void pair_sync() const {
        asm volatile("bar.sync %0, 256;" ::"r"(group + 3) : "memory");
    }

    __device__ void run() {
        Pieces pieces = a.pieces();
        for (Piece p{}; pieces.next(p);) {
            float d[values];
#pragma unroll
            for (int i = 0; i < values; ++i)
                d[i] = 0.0F;
            multiply(d, p);
            // The slice is free: the first team has written what it held.
            pair_sync();
            if (team == 1)
#pragma unroll
                for (int i = 0; i < values; ++i)
                    epilogue.slice[i * 128 + thread] = d[i];
            pair_sync();
            if (team == 1) continue;
#pragma unroll
            for (int i = 0; i < values; ++i)
                d[i] += epilogue.slice[i * 128 + thread];
            epilogue.finish(d, p);
        }
    }
};

}  // namespace recto::cuda
