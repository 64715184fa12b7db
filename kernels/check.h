// Runs cases on a backend and judges the results by the reference. Shared by the tests and `kernels --check`.
#pragma once
#include <vector>

#include "kernels/cases.h"

namespace recto {

// Rows of a case's input and of what Epilogue::add adds to; a row depends on its index alone.
struct LinearInput {
    std::vector<float> x;       // [rows, cols]
    std::vector<float> before;  // [rows, outputs of the epilogue]
};
std::int64_t case_outputs(const LinearCase& c);
LinearInput linear_input(const LinearCase& c, std::int64_t rows);

// The backend's result on rows `first` … `first + rows` of the input.
std::vector<float> run_linear(Backend& backend, const LinearCase& c, const LinearInput& in,
                              std::int64_t first, std::int64_t rows);

// Largest error ÷ tolerance over all outputs; ≤ 1 passes. The tolerance is the rounding of FP32 sums: 2^-24
// times the number of roundings on the way times Σ |terms|.
double linear_error(const LinearCase& c, const LinearInput& in, std::int64_t rows,
                    const std::vector<float>& out);

// Writes the case's context in chunks of `chunk` tokens into shuffled blocks and attends in every step.
// Returns the last `queries` rows: [queries, heads * head_dim]. block_size 0: the case's.
std::vector<float> run_attention(Backend& backend, const AttentionCase& c, int chunk, int block_size = 0);
double attention_error(const AttentionCase& c, const std::vector<float>& out);

}  // namespace recto
