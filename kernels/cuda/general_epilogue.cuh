// What follows the sums of a block's tile: the parts that other blocks hold are added in the order of the
// inputs, then bias, gate or residual, and the results are written row by row of the output through shared
// memory.
#pragma once
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/general_tile.cuh"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {

// Of four warps with d[4 j + 0 … 3] as mma.m16n8k16 says: rows 16 warp + lane / 4 (+ 8), tokens 8 j + 2 (lane
// % 4) (+ 1).
template <int Tokens>
struct GeneralEpilogue {
    static constexpr int values = Tokens / 2;
    static constexpr int slice = Tokens < 32 ? Tokens : 32;  // tokens written at a time
    static constexpr int stride = 68;  // floats between them: no two lanes of a warp write one bank
    static constexpr std::size_t shared_bytes = slice * stride * sizeof(float);

    const TileWeight& w;
    const Tensor& out;
    Epilogue epilogue;
    const float* bias;
    float* shared;  // [slice][stride]
    int block;      // of 64 rows of the weight
    int thread;

    // Sums of the `splits` blocks that share tile `tile`, of which this is number `split`. False: another one
    // writes.
    __device__ bool gather(float (&d)[values], const LinearScratch& scratch, int tile, int splits,
                           int split) const {
        if (splits == 1) return true;
        const auto place = [&](int s) {
            return scratch.partials +
                   (std::size_t(tile) * splits + std::size_t(s)) * values * general_threads;
        };
#pragma unroll
        for (int i = 0; i < values; ++i)
            place(split)[i * general_threads + thread] = d[i];
        __threadfence();
        __syncthreads();
        auto* arrived = reinterpret_cast<unsigned*>(shared);
        if (thread == 0) *arrived = atomicAdd(scratch.counters + tile, 1U);
        __syncthreads();
        if (*arrived != unsigned(splits - 1)) return false;
        __threadfence();
        if (thread == 0) scratch.counters[tile] = 0;
#pragma unroll
        for (int i = 0; i < values; ++i)
            d[i] = 0.0F;
        for (int s = 0; s < splits; ++s)
#pragma unroll
            for (int i = 0; i < values; ++i)
                d[i] += __ldcg(place(s) + i * general_threads + thread);
        return true;
    }

    __device__ void write(const float (&d)[values], const TokenRows& rows) const {
#pragma unroll
        for (int s = 0; s < Tokens / slice; ++s) {
            __syncthreads();  // what lay there was read
            const int row = thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
            for (int j = 0; j < slice / 8; ++j) {
                const int token = 8 * j + 2 * (thread % 4), i = 4 * (s * slice / 8 + j);
                shared[token * stride + row] = d[i];
                shared[(token + 1) * stride + row] = d[i + 1];
                shared[token * stride + row + 8] = d[i + 2];
                shared[(token + 1) * stride + row + 8] = d[i + 3];
            }
            __syncthreads();
            const int width = w.gated ? block_rows / 2 : block_rows;  // outputs
            for (int i = thread; i < slice * width / 4; i += general_threads) {
                const int token = i / (width / 4), r = i % (width / 4) * 4, output = block * width + r;
                if (s * slice + token >= rows.count || output >= w.outputs) continue;
                four(shared + token * stride + r, rows.slot(s * slice + token), output);
            }
        }
    }

  private:
    // Outputs `output` … + 3 of one row.
    __device__ void four(const float* from, long long row, int output) const {
        float e[4];
        *reinterpret_cast<float4*>(e) = *reinterpret_cast<const float4*>(from);
        const int n = min(4, w.outputs - output);
        if (bias)
            for (int i = 0; i < n; ++i)
                e[i] += bias[output + i];
        if (w.gated)
            for (int i = 0; i < n; ++i) {
                const float up = from[block_rows / 2 + i] + (bias ? bias[w.outputs + output + i] : 0.0F);
                e[i] = gate(e[i], epilogue) * up;
            }
        const long long at = row * out.row_stride + output;
        if (epilogue == Epilogue::add)
            for (int i = 0; i < n; ++i)
                e[i] += load(out.data, at + i, out.dtype);
        const bool wide = out.dtype == DType::f32;
        auto* to = static_cast<std::uint8_t*>(out.data) + at * (wide ? 4 : 2);
        if (n < 4 || reinterpret_cast<std::uintptr_t>(to) % (wide ? 16 : 8) != 0) {
            for (int i = 0; i < n; ++i)
                store(out.data, at + i, out.dtype, e[i]);
        } else if (wide) {
            *reinterpret_cast<float4*>(to) = make_float4(e[0], e[1], e[2], e[3]);
        } else {
            const bool half = out.dtype == DType::f16;
            *reinterpret_cast<uint2*>(to) =
                make_uint2(pair_bits(e[0], e[1], half), pair_bits(e[2], e[3], half));
        }
    }
};

}  // namespace recto::cuda
