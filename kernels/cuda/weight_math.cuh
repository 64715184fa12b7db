// How the plain kernels read a weight, and the gates of gated products.
#pragma once
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/packed_weight.h"

namespace recto::cuda {

__device__ inline const PartView& part_of(const WeightView& w, int& row) {
    int i = 0;
    while (i + 1 < w.parts && row >= w.part[i].rows)
        row -= w.part[i++].rows;
    return w.part[i];
}

// w = scale * q + offset, the multiply and the add rounded one after the other as kernels/weight.h says.
__device__ inline float weight_at(const PartView& p, int row, int col, int cols) {
    const long long at = (long long)row * cols + col;
    if (p.dense) return load(p.dense, at, p.dense_dtype);
    const long long group = at / p.group_size;
    float q;
    if (p.integer == QuantInt::u4) {
        const int byte = p.q[at / 2];
        q = float(at % 2 ? byte >> 4 : byte & 15);
    } else if (p.integer == QuantInt::u8) {
        q = float(p.q[at]);
    } else {
        q = float((signed char)p.q[at]);
    }
    const float product = __fmul_rn(p.scale[group], q);
    return p.offset ? __fadd_rn(product, p.offset[group]) : product;
}

__device__ inline float gate(float g, Epilogue epilogue) {
    if (epilogue == Epilogue::silu_mul) return g / (1.0F + expf(-g));
    const float inner =
        0.7978845608028654F * (g + 0.044715F * g * g * g);  // sqrt(2/π); the tanh form of GELU
    return 0.5F * g * (1.0F + tanhf(inner));
}

// For results of 16 bits: a few units in the last place of FP32 off, without the branches of exact division.
// Both gates are g · σ(linear · g + cubic · g³): the tanh form of GELU too, since (1 + tanh x) / 2 = σ(2 x).
struct GateCurve {
    float linear, cubic;

    __device__ float of(float g) const {
        return __fdividef(g, 1.0F + __expf(-g * fmaf(cubic, g * g, linear)));
    }
};
__device__ inline GateCurve gate_curve(Epilogue epilogue) {
    constexpr float twice = 2 * 0.7978845608028654F;  // 2 sqrt(2/π)
    return epilogue == Epilogue::silu_mul ? GateCurve{1.0F, 0.0F} : GateCurve{twice, twice * 0.044715F};
}
__device__ inline float quick_gate(float g, Epilogue epilogue) {
    return gate_curve(epilogue).of(g);
}

}  // namespace recto::cuda
