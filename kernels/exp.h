// exp for x ≤ 0, the same bits on every machine (engine/sample/row_ops.cpp has the same in 16 lanes,
// cuda/sample.cu on the card).
// Range reduction x = n·ln 2 + r, |r| ≤ ln 2 / 2 (Cody and Waite), then the Taylor polynomial of degree 7:
// relative error below 2e-7. Below −87 the result stays near 1e-38 instead of becoming denormal.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace recto {

constexpr float exp_round_magic = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
constexpr float exp_ln2_high = 0.693359375F;    // ln 2 = high − low; n · high is exact
constexpr float exp_ln2_low = 2.12194440e-4F;
constexpr std::array<float, 8> exp_coefficients{1.0F / 5040, 1.0F / 720, 1.0F / 120, 1.0F / 24,
                                                1.0F / 6,    0.5F,       1.0F,       1.0F};

inline float exp_negative(float x) {
    x = x < -87.0F ? -87.0F : x;
    const float shifted = x * 1.44269504F + exp_round_magic;
    const float n = shifted - exp_round_magic;
    const float r = (x - n * exp_ln2_high) + n * exp_ln2_low;
    float p = exp_coefficients[0];
    for (std::size_t c = 1; c < exp_coefficients.size(); ++c)
        p = p * r + exp_coefficients[c];
    const auto exponent = std::uint32_t(std::int32_t(n) + 127) << 23;
    return p * std::bit_cast<float>(exponent);
}

}  // namespace recto
