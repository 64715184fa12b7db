// What the few-token kernel (hopper_thin.cuh) does with a chunk of 128 inputs of one slab of 16 weight rows.
#pragma once
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/tensor_core.cuh"

namespace recto::cuda {

struct ThinArgs {
    TileWeight w;
    Tensor out;
    Epilogue epilogue;
    const float* bias;
    int tokens;
    SlabCut cut;
    int groups_a_chunk, chunks_a_group, group_shift;  // as in HopperArgs
    int span;                                         // chunks that a warp takes at a time
    int spans;                                        // of the weight
    int scales_at, second_at;                         // bytes in a slab's part of a slot, after its integers
    int slab_bytes;                                   // of that part
    int asked_bytes;                                  // of it, without what aligns it
    int depth;                                        // slots of a warp's ring
    int ring_bytes;                                   // of a warp
};

template <TileKind Kind, class T, int Tokens>
struct ThinProducts {
    static constexpr int values = Tokens / 2;  // FP32 sums of a slab, a lane
    static constexpr int tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);
    static constexpr int slab_tile = tile_bytes / 4;  // of a slab
    static constexpr int integers = 2 * slab_tile;    // of a slab and chunk

    const ThinArgs& a;
    int lane;

    // The operands of one half of a tile of 64 inputs, 8 tokens: row lane % 8, 16 bytes at unit lane / 8 of
    // the half's four, swizzled by the row.
    __device__ static void load_x(std::uint32_t (&b)[4], std::uint32_t x, int half, int eight, int lane) {
        load_matrices(b, x + std::uint32_t((half / 2 * Tokens + 8 * eight + lane % 8) * 128) +
                             std::uint32_t(((half % 2 * 4 + lane / 8) ^ (lane % 8)) * 16));
    }

    struct ChunkTokens {  // operands of the products of a chunk: [32 inputs][8 tokens]
        std::uint32_t b[4][Tokens / 8][4];
    };
    __device__ void load_chunk(ChunkTokens& x, std::uint32_t at) const {
#pragma unroll
        for (int half = 0; half < 4; ++half)
#pragma unroll
            for (int j = 0; j < Tokens / 8; ++j)
                load_x(x.b[half][j], at, half, j, lane);
    }

    // A chunk of weights under one scale a row, FP16. An integer below 1,024 in the low bits of a half is the
    // subnormal q · 2^-24, which the tensor cores take as it is: masking a word gives the pairs of two rows
    // (the nibbles at bit 4 as 16 q), and no weight is rounded. What zero points take away, z Σ x, follows
    // from the tokens' sums, and the chunk's sums are scaled in FP32.
    template <bool Zeros>
    __device__ void whole(float (&d)[values], std::uint32_t at, std::uint32_t scale_row,
                          std::uint32_t zero_row, const ChunkTokens& x,
                          const float (&x_sum)[values / 2]) const {
        constexpr float step_of_half = 1.0F / 16777216;
        const uint4 q0 = load_shared_four(at), q1 = load_shared_four(at + 512);
        const std::uint32_t scales[2] = {load_shared_u16(scale_row), load_shared_u16(scale_row + 16)};
        std::uint32_t zeros[2] = {std::uint32_t(a.w.zero), std::uint32_t(a.w.zero)};
        if constexpr (Zeros) {
            zeros[0] = load_shared_u8(zero_row);
            zeros[1] = load_shared_u8(zero_row + 8);
        }
        const std::uint32_t words[8] = {q0.x, q0.y, q0.z, q0.w, q1.x, q1.y, q1.z, q1.w};
        float sum[2][values];
#pragma unroll
        for (int i = 0; i < values; ++i)
            sum[0][i] = sum[1][i] = 0.0F;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const std::uint32_t word = words[k], word8 = word >> 8;
            const std::uint32_t w[4] = {word & 0x000F000F, word & 0x00F000F0, word8 & 0x000F000F,
                                        word8 & 0x00F000F0};
#pragma unroll
            for (int j = 0; j < Tokens / 8; ++j) {
                const auto& b = x.b[k / 2][j];
                multiply_16(sum[k % 2] + 4 * j, w, b[2 * (k % 2)], b[2 * (k % 2) + 1], __half{});
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float scale = __half2float(__ushort_as_half(std::uint16_t(scales[i])));
            const float times = scale * (i == 0 ? 1 / step_of_half : 1 / (16 * step_of_half));
            const float zero = float(zeros[i]) * (i == 0 ? -step_of_half : -16 * step_of_half);
#pragma unroll
            for (int j = 0; j < Tokens / 8; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int n = 4 * j + 2 * i + e;
                    d[n] = fmaf(times, fmaf(zero, x_sum[2 * j + e], sum[0][n] + sum[1][n]), d[n]);
                }
        }
    }

    // Σ x over a chunk for this lane's tokens, by a product with ones.
    __device__ static void sum_x(float (&x_sum)[values / 2], const ChunkTokens& x) {
        const std::uint32_t ones[4] = {0x3C003C00, 0x3C003C00, 0x3C003C00, 0x3C003C00};
#pragma unroll
        for (int j = 0; j < Tokens / 8; ++j) {
            float sum[2][4] = {};
#pragma unroll
            for (int k = 0; k < 8; ++k)
                multiply_16(sum[k % 2], ones, x.b[k / 2][j][2 * (k % 2)], x.b[k / 2][j][2 * (k % 2) + 1],
                            __half{});
            x_sum[2 * j] = sum[0][0] + sum[1][0];
            x_sum[2 * j + 1] = sum[0][1] + sum[1][1];
        }
    }

    // Of group `index` of a span.
    __device__ void load_scales(RowGroup<T> (&r)[2], std::uint32_t at, int index) const {
        const TileWeight& w = a.w;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const std::uint32_t n = std::uint32_t(index * 16 + lane / 4 + 8 * i);
            r[i].set_scale(load_shared_u16(at + std::uint32_t(a.scales_at) + 2 * n), w.planes_bf16);
            const std::uint32_t second = at + std::uint32_t(a.second_at);
            if (w.mode == SecondPlane::zero_u8)
                r[i].set_zero(load_shared_u8(second + n));
            else if (w.mode == SecondPlane::offset_16)
                r[i].set_offset(load_shared_u16(second + 2 * n), w.planes_bf16);
            r[i].settle();
        }
    }

    // Any groups.
    __device__ void any(float (&d)[values], std::uint32_t at, int chunk, const ChunkTokens& x) const {
        const int mask = (1 << a.group_shift) - 1;
        const std::uint32_t packed = at + std::uint32_t(chunk * integers + lane * 16);
        RowGroup<T> r[2];
        for (RowGroup<T>& one : r) {
            one.set_zero(std::uint32_t(a.w.zero));
            one.set_offset(0, false);
        }
#pragma unroll
        for (int t = 0; t < 2; ++t) {
            uint4 q[Kind == TileKind::u8 ? 2 : 1];
            q[0] = load_shared_four(packed + t * slab_tile);
            if constexpr (Kind == TileKind::u8) q[1] = load_shared_four(packed + t * slab_tile + 512);
            const auto* words = reinterpret_cast<const std::uint32_t*>(q);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int k16 = t * 4 + i;
                if ((k16 & mask) == 0) load_scales(r, at, chunk * a.groups_a_chunk + (k16 >> a.group_shift));
                std::uint32_t w[4];
                if constexpr (Kind == TileKind::u4)
                    unpack_u4(w, words[i], r);
                else
                    unpack_u8(w, words[2 * i], words[2 * i + 1], r);
#pragma unroll
                for (int j = 0; j < Tokens / 8; ++j) {
                    const auto& b = x.b[k16 / 2][j];
                    multiply_16(d + 4 * j, w, b[2 * (i % 2)], b[2 * (i % 2) + 1], T{});
                }
            }
        }
    }
};

}  // namespace recto::cuda
