// Consumers of the Hopper product for any number of tokens: warpgroups of 64 weight rows each multiply by
// wgmma. The weights come from shared memory when dense, else unpacked in registers while the products before
// still run.
#pragma once
#include "kernels/cuda/hopper_epilogue.cuh"
#include "kernels/cuda/hopper_groups.cuh"
#include "kernels/cuda/tensor_core.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace recto::cuda {

// How weights are scaled: one group a chunk with its own zero point, one group a chunk, or any way. The first
// two have no branch between the fragments, and their loads go first, together.
enum class Groups { whole_zeros, whole, any };

template <TileKind Kind, class T, int Tokens, Groups How>
struct WideConsumer {
    static constexpr int values = Tokens / 2;  // FP32 sums a thread
    const HopperArgs& a;
    std::uint32_t ring, full, empty;
    const std::uint8_t* ring_data;  // the same memory as `ring`
    StageLayout layout;
    float* slices;  // of the epilogue, one a warpgroup
    int group;
    int thread;  // 0 … 127
    std::uint32_t stage = 0, lap = 0;
    int pending_stage = -1;  // read by products that may still run

    __device__ int warp_of() const { return thread / 32; }
    __device__ int lane() const { return thread % 32; }

    __device__ void load_whole(RowGroup<T> (&r)[2], std::uint32_t at, bool zeros) const {
        const std::uint32_t row = std::uint32_t(group * block_rows + warp_of() * 16 + lane() / 4);
        const std::uint32_t scales[2] = {load_shared_u16(at + layout.scale + row * 2),
                                         load_shared_u16(at + layout.scale + row * 2 + 16)};
        std::uint32_t z[2] = {};
        if (zeros) {
            z[0] = load_shared_u8(at + layout.second + row);
            z[1] = load_shared_u8(at + layout.second + row + 8);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            r[i].set_scale(scales[i], a.w.planes_bf16);
            if (zeros) r[i].set_zero(z[i]);
            r[i].settle();
        }
    }

    static constexpr int per = stage_k(Kind, Tokens) / tile_k;  // k tiles a stage

    // The products of 64 inputs: tile `t` of the stage, which is tile `k_tile` of its chunk.
    __device__ void step(float (&d)[values], std::uint32_t (&regs)[4][4], RowGroup<T> (&r)[2], int t,
                         int k_tile, int& accumulate) {
        const std::uint32_t at = ring + stage * layout.bytes;
        const std::uint32_t x = at + layout.x + std::uint32_t(t * Tokens) * 128;
        if constexpr (Kind == TileKind::dense) {
            const std::uint32_t w =
                at + layout.weights + std::uint32_t((t * tile_blocks + group) * block_rows) * 128;
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                Wgmma<Tokens>::shared(d, wgmma_descriptor(w, i), wgmma_descriptor(x, i), accumulate, T{});
                accumulate = 1;
            }
        } else {
            const std::uint8_t* data = ring_data + stage * layout.bytes;
            constexpr int tile_bytes = block_rows * tile_k / (Kind == TileKind::u8 ? 1 : 2);
            const std::uint32_t tile = at + layout.weights + std::uint32_t((group * per + t) * tile_bytes);
            uint4 q[Kind == TileKind::u8 ? 2 : 1];
            if constexpr (Kind == TileKind::u4) {
                q[0] = load_shared_four(tile + std::uint32_t(thread) * 16);
            } else {
                q[0] = load_shared_four(tile + std::uint32_t(warp_of() * 64 + lane()) * 16);
                q[1] = load_shared_four(tile + std::uint32_t(warp_of() * 64 + 32 + lane()) * 16);
            }
            const auto* words = reinterpret_cast<const std::uint32_t*>(q);
            const auto unpack = [&](int i) {
                if constexpr (Kind == TileKind::u4)
                    unpack_u4(regs[i], words[i], r);
                else
                    unpack_u8(regs[i], words[2 * i], words[2 * i + 1], r);
            };
            if constexpr (How != Groups::any) {
                if (t == 0) load_whole(r, at, How == Groups::whole_zeros);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if constexpr (How == Groups::any) {
                    const int k16 = k_tile * 4 + i, mask = (1 << a.group_shift) - 1;
                    if ((k16 & mask) == 0 || (i == 0 && t == 0))
                        load_groups(r, a, layout, data, group, thread, k16 >> a.group_shift);
                }
                unpack(i);
            }
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                Wgmma<Tokens>::regs(d, regs[i], wgmma_descriptor(x, i), accumulate, T{});
                accumulate = 1;
            }
        }
        wgmma_commit();
        wgmma_wait<1>();
        if (t == 0) release(pending_stage);
    }

    __device__ void release(int s) const {
        if (s >= 0 && lane() == 0) barrier_arrive(empty + std::uint32_t(s) * 8);
    }

    __device__ void multiply(float (&d)[values], const Piece& p) {
        std::uint32_t regs[2][4][4];  // one set of weights is unpacked while the products of the other run
        RowGroup<T> r[2];
        start_groups(r, a.w);
        int accumulate = 0;
        for (int chunk = p.first; chunk < p.last; ++chunk) {
#pragma unroll
            for (int k_tile = 0; k_tile < 2; ++k_tile) {
                const int t = k_tile % per;
                if (t == 0) barrier_wait(full + stage * 8, lap & 1);
                step(d, regs[k_tile], r, t, k_tile, accumulate);
                if (t != per - 1) continue;
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

    static __device__ int hidden(int v) {
        asm volatile("" : "+r"(v));
        return v;
    }

    __device__ void run() {
        Pieces pieces = a.pieces();
        for (Piece p{}; pieces.next(p);) {
            float d[values];
#pragma unroll
            for (int i = 0; i < values; ++i)
                d[i] = 0.0F;
            multiply(d, p);
            // Hidden from the compiler, which else works out the epilogue's addresses before the products and
            // has no registers to keep them in.
            const int g = hidden(group);
            TileEpilogue<T, Tokens>{a, slices + g * slice_floats(Tokens), g, hidden(thread)}.finish(d, p);
        }
    }
};

}  // namespace recto::cuda
