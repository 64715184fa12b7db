// What the checks of a card's 16-bit products share. Not part of the public interface.
#pragma once
#include <memory>
#include <vector>

#include "kernels/check.h"

namespace recto {

inline bool gated(const LinearCase& c) {
    return c.epilogue == Epilogue::silu_mul || c.epilogue == Epilogue::gelu_mul;
}

// The parts of a case.
struct CaseWeights {
    std::vector<std::unique_ptr<WeightRows>> owned;
    std::vector<const WeightRows*> parts;
    explicit CaseWeights(const LinearCase& c);
};

// The product of all rows of `in`, whose x holds numbers of `dtype`: packed and run as a model would, results
// in `dtype`, but sums into the residual stream (Epilogue::add) in FP32.
std::vector<float> run_linear_16(Backend& backend, const LinearCase& c, const CaseWeights& weights,
                                 Activations mode, DType dtype, const LinearInput& in, std::int64_t rows);

}  // namespace recto
