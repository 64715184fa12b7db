// Every operation in plain loops and double precision, from the logical weights and from positions: nothing
// of a backend's packing, tiling or storage is used, so it can judge them.
#pragma once
#include <vector>

#include "kernels/backend.h"

namespace recto::reference {

// Rows as int8 mode sees them: groups of 32, scale = largest / 127 in FP32, values rounded half to even.
std::vector<double> quantized_activations(const float* x, std::int64_t rows, std::int64_t cols);
// Twice: the row, then what x − scale · q left of it (in FP32), each quantized so; their sum.
std::vector<double> twice_quantized_activations(const float* x, std::int64_t rows, std::int64_t cols);

// out [rows, Σ outputs] or, gated, half of them. `magnitude` [same] is Σ |terms|: rounding errors scale with
// it.
struct LinearResult {
    std::vector<double> out, magnitude;
};
// x [rows, cols]; `before` is what Epilogue::add adds to (or null).
LinearResult linear(const float* x, std::int64_t rows, std::span<const WeightRows* const> parts,
                    Activations mode, Epilogue epilogue, const float* before);

// What one row of the router chooses: experts ascending, weights in double.
struct Choice {
    std::vector<std::int32_t> ids;
    std::vector<double> weights;
};
Choice route(const float* logits, std::int64_t experts, int k, bool renormalize);

std::vector<double> rms_norm(const float* x, std::int64_t rows, std::int64_t cols, const float* weight,
                             double eps);

// One head in place.
void rotate(double* head, int rotary_dims, int position, std::span<const float> inverse_frequency,
            double factor);

// q [rows, heads * head_dim]; keys and values [context, kv_heads * head_dim], as the cache's dtype holds
// them.
std::vector<double> attention(const float* q, const std::vector<int>& positions, const double* keys,
                              const double* values, const HeadShape& shape, double scale, int window,
                              double softcap);

}  // namespace recto::reference
