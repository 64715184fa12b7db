// Writes outputs of a product, one or four neighbouring ones of a token: bias, gate or residual, and the
// output's own dtype.
#pragma once
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/tile_linear.h"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {

struct RowWriter {
    const TileWeight& w;
    const Tensor& out;
    Epilogue epilogue;
    const float* bias;

    // A segment may begin at any column, so the address decides and not the index.
    __device__ bool whole(long long at, int output) const {
        const std::size_t width = out.dtype == DType::f32 ? 4 : 2;
        return output + 4 <= w.outputs &&
               (reinterpret_cast<std::uintptr_t>(out.data) + std::size_t(at) * width) % (4 * width) == 0;
    }
    __device__ long long place(int token, int output) const {
        return (long long)token * out.row_stride + output;
    }

    __device__ float4 biased(int output, float4 v) const {
        float e[4] = {v.x, v.y, v.z, v.w};
        if (bias)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (output + i < w.outputs) e[i] += bias[output + i];
        return make_float4(e[0], e[1], e[2], e[3]);
    }
    __device__ float4 gated(int output, float4 gates, float4 ups) const {
        const float g[4] = {gates.x, gates.y, gates.z, gates.w};
        const float u[4] = {ups.x, ups.y, ups.z, ups.w};
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            v[i] = output + i < w.outputs ? gated(output + i, g[i], u[i]) : 0.0F;
        return make_float4(v[0], v[1], v[2], v[3]);
    }
    __device__ void store_four(int token, int output, float4 v) const {
        float e[4] = {v.x, v.y, v.z, v.w};
        const long long at = place(token, output);
        const bool one = whole(at, output);
        if (out.dtype == DType::f32) {
            float* to = static_cast<float*>(out.data) + at;
            if (one) {
                if (epilogue == Epilogue::add) {
                    const float4 b = *reinterpret_cast<const float4*>(to);
                    e[0] += b.x, e[1] += b.y, e[2] += b.z, e[3] += b.w;
                }
                *reinterpret_cast<float4*>(to) = make_float4(e[0], e[1], e[2], e[3]);
            } else {
                for (int i = 0; i < 4 && output + i < w.outputs; ++i)
                    to[i] = epilogue == Epilogue::add ? to[i] + e[i] : e[i];
            }
            return;
        }
        for (int i = 0; i < 4; ++i)
            if (epilogue == Epilogue::add && output + i < w.outputs)
                e[i] += load(out.data, at + i, out.dtype);
        if (one) {
            std::uint32_t pair[2];
            for (int i = 0; i < 2; ++i)
                pair[i] = out.dtype == DType::f16 ? as_bits(__floats2half2_rn(e[2 * i], e[2 * i + 1]))
                                                  : bf16_pair(e[2 * i], e[2 * i + 1]);
            *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(out.data) + at) =
                make_uint2(pair[0], pair[1]);
        } else {
            for (int i = 0; i < 4 && output + i < w.outputs; ++i)
                store(out.data, at + i, out.dtype, e[i]);
        }
    }

    __device__ float biased(int output, float v) const {
        return bias ? v + bias[output] : v;
    }
    __device__ float gated(int output, float g, float u) const {
        return quick_gate(biased(output, g), epilogue) * biased(w.outputs + output, u);
    }
    __device__ float before(int token, int output) const {
        return load(out.data, place(token, output), out.dtype);
    }
    __device__ void store_one(int token, int output, float v) const {
        store(out.data, place(token, output), out.dtype, v);
    }
};

}  // namespace recto::cuda
