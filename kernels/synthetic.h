// Random weights of any logical form, for the checks and timings of kernels. The same seed gives the same
// weights.
#pragma once
#include <memory>
#include <vector>

#include "kernels/weight.h"

namespace recto {

struct SyntheticSpec {
    std::int64_t rows = 0, cols = 0;
    WeightForm form;
    std::uint64_t seed = 1;
    bool bias = false;
    bool permuted = false;  // an act-order file
};
std::unique_ptr<WeightRows> make_synthetic(const SyntheticSpec& spec);

// Uniform in −amplitude … amplitude.
std::vector<float> random_floats(std::size_t n, float amplitude, std::uint64_t seed);

// The forms that files of known formats take.
WeightForm dense_form(DType dtype);
WeightForm grouped_form(QuantInt integer, int group_size, ScaleForm scale, OffsetForm offset,
                        const char* name);

}  // namespace recto
