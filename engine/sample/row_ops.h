// Passes over a logits row, 16 lanes at a time. Sums have one partial per lane, added in a fixed order: the
// result is the same on every machine, however wide its registers are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace recto {

// The largest element, −∞ for a row of −∞; NaN elements are ignored.
float row_largest(std::span<const float> row);
// Neither NaN nor infinite anywhere.
bool row_finite(std::span<const float> row);
// Index of the first element equal to `value`, row.size() if none.
std::size_t row_find(std::span<const float> row, float value);
// How many elements are at least `bound`.
std::size_t row_count_at_least(std::span<const float> row, float bound);
// out[i] = exp((row[i] − largest) · scale), 0 for −∞. Returns their sum.
double row_weights(std::span<const float> row, float largest, float scale, std::span<float> out);

// Random bits of the tokens first_token … first_token + 63 (see token_uniform); first_token is a multiple
// of 64.
void philox_bits(std::uint32_t first_token, std::uint32_t output_index, std::uint64_t seed,
                 std::span<std::uint32_t, 64> bits);

// Bit i is set when weights[i] may exceed score · (1 − u_i), u_i being the uniform number of bits[i]; it is
// never clear when that is so.
std::uint64_t exceed_scaled_complement(std::span<const float, 64> weights,
                                       std::span<const std::uint32_t, 64> bits, double score);

}  // namespace recto
