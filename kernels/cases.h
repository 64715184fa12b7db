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

}  // namespace recto
