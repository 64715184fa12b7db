// Runs cases on a backend and judges the results by the reference. Shared by the tests and `kernels --check`.
#pragma once
#include <functional>
#include <string>
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

// The cases of linear_cases(), and a few wider ones, with activations and results of a 16-bit type. The
// tolerance is what rounding weights and results to that type may give.
struct CaseReport {
    std::function<bool(const std::string& name)> wanted;
    std::function<void(const std::string& name, double error)> result;  // of the tolerance
};
void check_linear_16(Backend& backend, DType dtype, const CaseReport& report);
// The same of mixtures: the cases of expert_cases(), a few wider ones and one of very many rows.
void check_experts_16(Backend& backend, DType dtype, const CaseReport& report);
// Products of many rows with Activations::token_fp8 and token_int8, on a card that has them.
void check_activations_8(Backend& backend, DType dtype, const CaseReport& report);

// Decode steps of a few rows that a card captures as one kernel, against the same operations one by one.
void check_programs(Backend& backend, const CaseReport& report);

// The backend's result on rows `first` … `first + rows` of a mixture's input, stage by stage, so that each
// stage can be judged by what the one before really gave it.
struct ExpertInput {
    std::vector<float> x;       // [rows, hidden]
    std::vector<float> logits;  // [rows, experts]
    std::vector<float> before;  // [rows, hidden]
};
struct ExpertOutput {
    std::vector<std::int32_t> ids;  // [rows, k]
    std::vector<float> weights;     // [rows, k]
    std::vector<float> gated;       // [rows k, width]
    std::vector<float> out;         // [rows, hidden]
};
ExpertInput expert_input(const ExpertCase& c, std::int64_t rows);
ExpertOutput run_experts(Backend& backend, const ExpertCase& c, const ExpertInput& in, std::int64_t first,
                         std::int64_t rows);
// Largest error ÷ tolerance over the weights and both products; infinite if another expert was chosen.
double expert_error(const ExpertCase& c, const ExpertInput& in, std::int64_t rows, const ExpertOutput& out);

// Writes the case's context in chunks of `chunk` tokens into shuffled blocks and attends in every step.
// Returns the last `queries` rows: [queries, heads * head_dim]. block_size 0: the case's.
std::vector<float> run_attention(Backend& backend, const AttentionCase& c, int chunk, int block_size = 0);
double attention_error(const AttentionCase& c, const std::vector<float>& out);

// The step's rows, all of them: [rows, heads * head_dim]. On a card, slots that were never written hold NaN.
std::vector<float> run_attention_step(Backend& backend, const AttentionStepCase& c);
double attention_step_error(const AttentionStepCase& c, const std::vector<float>& out);

}  // namespace recto
