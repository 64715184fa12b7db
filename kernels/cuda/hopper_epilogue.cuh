// What follows the sums of a tile: the parts that other blocks hold are added, then bias, gate or residual,
// and the results are written row by row of the output through shared memory.
#pragma once
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/hopper_pipeline.cuh"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {

constexpr int slice_tokens = 32;  // written at a time
constexpr int slice_stride = 68;  // floats between tokens of a slice: no two lanes of a warp write one bank
__host__ __device__ constexpr int slice_floats(int tokens) {
    return (tokens < slice_tokens ? tokens : slice_tokens) * slice_stride;
}

// Of one warpgroup, which holds 64 rows of the weight and all tokens of the tile:
// d[4 j + 0 … 3] as wgmma.cuh says.
template <int Tokens>
struct TileEpilogue {
    static constexpr int values = Tokens / 2;
    const HopperArgs& a;
    float* slice;  // shared, [slice_tokens][slice_stride]
    int group;     // 0 or 1: which 64 rows
    int thread;    // 0 … 127

    __device__ int warp_of() const { return thread / 32; }
    __device__ int lane() const { return thread % 32; }
    __device__ void sync() const { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

    __device__ void finish(float (&d)[values], const Piece& p) {
        if (gather(d, p) && p.row_tile * 2 + group < a.w.blocks) write(d, p);
    }

  private:
    // A tile that several blocks share belongs to the one that has its first inputs; the others leave their
    // sums in `partials`, and the owner adds them in the order of the inputs. It rarely waits: a block meets
    // the end of one tile at the beginning of its run and the beginning of another at its end. And it never
    // waits in vain: blocks are no more than multiprocessors, so all of them run. False: another block will
    // write the tile.
    __device__ bool gather(float (&d)[values], const Piece& p) {
        if (p.first == 0 && p.last == a.w.chunks) return true;
        const int tile = p.token_tile * a.row_tiles + p.row_tile;
        const Pieces pieces = a.pieces();
        const int owner = pieces.owner(tile), last = pieces.last_sharer(tile);
        unsigned* counter = a.scratch.counters + tile * 2 + group;
        const auto place = [&](int block) {
            return a.scratch.partials + (std::size_t(block) * 2 + std::size_t(group)) * values * 128;
        };
        if (p.first != 0) {
            float* to = place(int(blockIdx.x));
#pragma unroll
            for (int i = 0; i < values; ++i)
                __stcg(to + i * 128 + thread, d[i]);
            __threadfence();
            sync();
            if (thread == 0) atomicAdd(counter, 1U);
            return false;
        }
        if (thread == 0) {
            while (*static_cast<volatile unsigned*>(counter) != unsigned(last - owner)) {
            }
            *counter = 0;
            __threadfence();
        }
        sync();
        for (int block = owner + 1; block <= last; ++block) {
            const float* from = place(block);
#pragma unroll
            for (int i = 0; i < values; ++i)
                d[i] += __ldcg(from + i * 128 + thread);
        }
        return true;
    }

    static constexpr int width = Tokens < slice_tokens ? Tokens : slice_tokens;
    static constexpr int fours = width * block_rows / 4 / 128;  // of a slice, a thread

    __device__ void write(const float (&d)[values], const Piece& p) {
        const int block = p.row_tile * 2 + group;
        // The residual stream's values of the next slice are on their way while this one is written.
        const bool adds = a.epilogue == Epilogue::add && a.out.dtype == DType::f32 && a.w.outputs % 4 == 0 &&
                          a.out.row_stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(a.out.data) % 16 == 0;
        float4 before[fours];
        if (adds) read_residual(before, block, p.token_tile * Tokens);
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
            if (a.w.gated) {
                write_gated(block, first);
            } else if (adds) {
                float4 sum[fours];
#pragma unroll
                for (int i = 0; i < fours; ++i)
                    sum[i] = before[i];
                if (s + 1 < Tokens / width) read_residual(before, block, first + width);
                add_residual(sum, block, first);
            } else {
                write_plain(block, first);
            }
        }
    }

    // Place i of this thread in a slice: a token and four neighbouring rows.
    __device__ bool place_of(int i, int block, int first, int& token, int& row) const {
        const int n = i * 128 + thread;
        token = n / (block_rows / 4);
        row = n % (block_rows / 4) * 4;
        return first + token < a.tokens && block * block_rows + row < a.w.outputs;
    }
    __device__ float4* residual_at(int block, int first, int token, int row) const {
        return reinterpret_cast<float4*>(static_cast<float*>(a.out.data) +
                                         (long long)(first + token) * a.out.row_stride + block * block_rows +
                                         row);
    }
    __device__ void read_residual(float4 (&before)[fours], int block, int first) const {
#pragma unroll
        for (int i = 0; i < fours; ++i) {
            int token, row;
            if (place_of(i, block, first, token, row)) before[i] = *residual_at(block, first, token, row);
        }
    }
    __device__ void add_residual(float4 (&sum)[fours], int block, int first) const {
#pragma unroll
        for (int i = 0; i < fours; ++i) {
            int token, row;
            if (!place_of(i, block, first, token, row)) continue;
            const float4 v = *reinterpret_cast<const float4*>(slice + token * slice_stride + row);
            float4 b = make_float4(0, 0, 0, 0);
            if (a.bias) {
                const float* bias = a.bias + block * block_rows + row;
                b = make_float4(bias[0], bias[1], bias[2], bias[3]);
            }
            *residual_at(block, first, token, row) =
                make_float4(sum[i].x + (v.x + b.x), sum[i].y + (v.y + b.y), sum[i].z + (v.z + b.z),
                            sum[i].w + (v.w + b.w));
        }
    }
    __device__ void write_plain(int block, int first) const {
#pragma unroll
        for (int i = 0; i < fours; ++i) {
            int token, row;
            if (!place_of(i, block, first, token, row)) continue;
            const float4 v = *reinterpret_cast<const float4*>(slice + token * slice_stride + row);
            store_outputs(first + token, block * block_rows + row, v);
        }
    }
    __device__ void write_gated(int block, int first) const {
        constexpr int half = block_rows / 2;
        for (int i = thread; i < width * half / 4; i += 128) {
            const int token = i / (half / 4), row = i % (half / 4) * 4;
            const int output = block * half + row;
            if (first + token >= a.tokens || output >= a.w.outputs) continue;
            float g[4], u[4];
            *reinterpret_cast<float4*>(g) =
                *reinterpret_cast<const float4*>(slice + token * slice_stride + row);
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
        // A segment may begin at any column, so the address decides and not the index.
        const std::size_t width = a.out.dtype == DType::f32 ? 4 : 2;
        const bool whole =
            output + 4 <= a.w.outputs &&
            (reinterpret_cast<std::uintptr_t>(a.out.data) + std::size_t(at) * width) % (4 * width) == 0;
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
            if (a.epilogue == Epilogue::add && output + i < a.w.outputs)
                e[i] += load(a.out.data, at + i, a.out.dtype);
        if (whole) {
            std::uint32_t pair[2];
            for (int i = 0; i < 2; ++i)
                pair[i] = a.out.dtype == DType::f16 ? as_bits(__floats2half2_rn(e[2 * i], e[2 * i + 1]))
                                                    : bf16_pair(e[2 * i], e[2 * i + 1]);
            *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(a.out.data) + at) =
                make_uint2(pair[0], pair[1]);
        } else {
            for (int i = 0; i < 4 && output + i < a.w.outputs; ++i)
                store(a.out.data, at + i, a.out.dtype, e[i]);
        }
    }
};

}  // namespace recto::cuda
