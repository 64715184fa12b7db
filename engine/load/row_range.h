// A run of rows of another weight: how one role's part of a fused tensor (q|k|v, gate|up) is seen.
#pragma once
#include <cstdint>
#include <memory>

#include "kernels/weight.h"

namespace recto {

// Rows first_row … first_row + rows − 1 of `whole`, in whatever form that is, with their part of its bias.
std::unique_ptr<WeightRows> make_row_range(std::shared_ptr<const WeightRows> whole, std::int64_t first_row,
                                           std::int64_t rows);

}  // namespace recto
