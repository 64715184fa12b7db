// The one list of kernel cases: tests, `kernels --check` and `kernels --bench` all draw from it.
#pragma once
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/synthetic.h"

namespace recto {

struct LinearCase {
    std::string name;
    std::vector<SyntheticSpec> parts;
    Activations mode = Activations::int8;
    Epilogue epilogue = Epilogue::store;
};
std::vector<LinearCase> linear_cases();

struct AttentionCase {
    std::string name;
    HeadShape shape;
    DType dtype = DType::f16;
    int block_size = 16;
    int context = 0;  // tokens in the cache at the end
    int queries = 0;  // the last ones, in one chunk
    int window = 0;
    float softcap = 0;
};
std::vector<AttentionCase> attention_cases();

// One step of several sequences, each computing its last `queries` tokens over what its cache holds: decode
// and prefill side by side, in the element types that a card has.
struct AttentionStepCase {
    struct Sequence {
        int context, queries;
    };
    std::string name;
    HeadShape shape;
    std::vector<Sequence> sequences;
    int block_size = 16;
    int window = 0;
    float softcap = 0;
    int rotary_dims = 0;
    bool head_norms = false;
    DType activation = DType::f16;
    DType cache = DType::f16;
};
// With every pair of activation and cache types that the tiled kernels of kernels/cuda serve.
std::vector<AttentionStepCase> attention_step_cases();

// A mixture's MLP: route, gate|up of the chosen experts, their weighted down products added to a residual.
struct ExpertCase {
    std::string name;
    int experts = 0;
    int per_row = 0;
    bool renormalize = true;
    std::vector<SyntheticSpec> gate_up;  // of expert 0; the others have other seeds
    SyntheticSpec down;
    Activations mode = Activations::int8;
    Epilogue epilogue = Epilogue::silu_mul;
};
std::vector<ExpertCase> expert_cases();

}  // namespace recto
