// exp for x ≤ 0, written so that a loop over it vectorizes and gives the same bits on every machine.
// Range reduction x = n·ln 2 + r, |r| ≤ ln 2 / 2 (Cody and Waite), then the Taylor polynomial of degree 7:
// relative error below 2e-7. Below −87 the result stays near 1e-38 instead of becoming denormal.
#pragma once
#include <bit>
#include <cstdint>

namespace recto {

inline float exp_negative(float x) {
    x = x < -87.0F ? -87.0F : x;
    constexpr float round_magic = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
    const float shifted = x * 1.44269504F + round_magic;
    const float n = shifted - round_magic;
    const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
    float p = 1.0F / 5040;
    p = p * r + 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 0.5F;
    p = p * r + 1.0F;
    p = p * r + 1.0F;
    const auto exponent = std::uint32_t(std::int32_t(n) + 127) << 23;
    return p * std::bit_cast<float>(exponent);
}

}  // namespace recto
