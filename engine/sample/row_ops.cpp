#include "engine/sample/row_ops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/exp.h"
#include "kernels/philox.h"

// One copy for each register width, chosen when the program starts. No multiply-add is fused, so the
// arithmetic is the same in all of them. Sanitizers are not ready yet when that choice is made.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define RECTO_ROW_CLONES \
    __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "-ffp-contract=off")))
#else
#define RECTO_ROW_CLONES
#endif

namespace recto {
namespace {

constexpr std::size_t lanes = 16;
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

using Floats = float __attribute__((vector_size(64)));
using Ints = std::int32_t __attribute__((vector_size(64)));

}  // namespace

RECTO_ROW_CLONES float row_largest(std::span<const float> row) {
    Floats best = Floats{} + minus_infinity;
    std::size_t i = 0;
    for (; i + lanes <= row.size(); i += lanes) {
        Floats x;
        std::memcpy(&x, row.data() + i, sizeof x);
        best = x > best ? x : best;
    }
    float largest = minus_infinity;
    for (std::size_t l = 0; l < lanes; ++l)
        largest = std::max(largest, best[l]);
    for (; i < row.size(); ++i)
        largest = std::max(largest, row[i]);
    return largest;
}

RECTO_ROW_CLONES bool row_finite(std::span<const float> row) {
    Ints bad{};
    std::size_t i = 0;
    for (; i + lanes <= row.size(); i += lanes) {
        Ints x;
        std::memcpy(&x, row.data() + i, sizeof x);
        bad |= (x & 0x7F800000) == 0x7F800000;  // all exponent bits
    }
    int any = 0;
    for (std::size_t l = 0; l < lanes; ++l)
        any |= bad[l];
    for (; i < row.size(); ++i)
        any |= !std::isfinite(row[i]);
    return any == 0;
}

std::size_t row_find(std::span<const float> row, float value) {
    return std::size_t(std::ranges::find(row, value) - row.begin());
}

RECTO_ROW_CLONES std::size_t row_count_at_least(std::span<const float> row, float bound) {
    Ints count{};
    std::size_t i = 0;
    for (; i + lanes <= row.size(); i += lanes) {
        Floats x;
        std::memcpy(&x, row.data() + i, sizeof x);
        count -= x >= bound;  // true is −1
    }
    std::size_t total = 0;
    for (std::size_t l = 0; l < lanes; ++l)
        total += std::size_t(count[l]);
    for (; i < row.size(); ++i)
        total += row[i] >= bound;
    return total;
}

RECTO_ROW_CLONES double row_weights(std::span<const float> row, float largest, float scale,
                                    std::span<float> out) {
    double sum = 0;
    constexpr std::size_t part = 32;  // float partials stay short, their sum is double
    std::size_t i = 0;
    while (i + lanes <= row.size()) {
        Floats partial{};
        for (std::size_t k = 0; k < part && i + lanes <= row.size(); ++k, i += lanes) {
            Floats x;
            std::memcpy(&x, row.data() + i, sizeof x);
            const Ints masked = x == minus_infinity;
            x = (x - largest) * scale;
            x = x < -87.0F ? Floats{} - 87.0F : x;
            // As exp_negative, lane by lane.
            const Floats shifted = x * 1.44269504F + exp_round_magic;
            const Floats n = shifted - exp_round_magic;
            const Floats r = (x - n * exp_ln2_high) + n * exp_ln2_low;
            Floats p = Floats{} + exp_coefficients[0];
            for (std::size_t c = 1; c < exp_coefficients.size(); ++c)
                p = p * r + exp_coefficients[c];
            const Ints exponent = (__builtin_convertvector(n, Ints) + 127) << 23;
            Floats power;
            std::memcpy(&power, &exponent, sizeof power);
            p = masked ? Floats{} : p * power;
            partial += p;
            std::memcpy(out.data() + i, &p, sizeof p);
        }
        for (std::size_t l = 0; l < lanes; ++l)
            sum += double(partial[l]);
    }
    for (; i < row.size(); ++i) {
        out[i] = row[i] == minus_infinity ? 0.0F : exp_negative((row[i] - largest) * scale);
        sum += double(out[i]);
    }
    return sum;
}

// philox4x32 of 16 neighbouring blocks. Words are held as 64-bit lanes with a zero upper half: a product of
// two of them is then one instruction on every x86-64.
RECTO_ROW_CLONES void philox_bits(std::uint32_t first_token, std::uint32_t output_index, std::uint64_t seed,
                                  std::span<std::uint32_t, 64> bits) {
    constexpr std::uint64_t low = 0xFFFFFFFFU;
    std::uint64_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
    for (std::size_t l = 0; l < lanes; ++l) {
        c0[l] = first_token / 4 + l;
        c1[l] = output_index;
        c2[l] = c3[l] = 0;
    }
    std::uint64_t k0 = seed & low, k1 = seed >> 32;
    for (int round = 0; round < 10; ++round) {
        for (std::size_t l = 0; l < lanes; ++l) {
            const std::uint64_t a = (c0[l] & low) * philox_m0;
            const std::uint64_t b = (c2[l] & low) * philox_m1;
            c0[l] = (b >> 32) ^ c1[l] ^ k0;
            c1[l] = b & low;
            c2[l] = (a >> 32) ^ c3[l] ^ k1;
            c3[l] = a & low;
        }
        k0 = (k0 + philox_w0) & low;
        k1 = (k1 + philox_w1) & low;
    }
    for (std::size_t l = 0; l < lanes; ++l) {
        bits[4 * l] = std::uint32_t(c0[l]);
        bits[4 * l + 1] = std::uint32_t(c1[l]);
        bits[4 * l + 2] = std::uint32_t(c2[l]);
        bits[4 * l + 3] = std::uint32_t(c3[l]);
    }
}

RECTO_ROW_CLONES std::uint64_t exceed_scaled_complement(std::span<const float, 64> weights,
                                                        std::span<const std::uint32_t, 64> bits,
                                                        double score) {
    // 24 bits of the complement, rounded down, so that the bound is on the safe side in float arithmetic.
    const float scale = float(score) * (1 - 1e-6F) * 0x1p-24F;
    std::array<std::uint8_t, 64> exceeds;
    for (std::size_t i = 0; i < 64; ++i)
        exceeds[i] = weights[i] > scale * float(std::int32_t(~bits[i] >> 8)) ? 1 : 0;
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < 64; i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, exceeds.data() + i, 8);
        mask |= (eight * 0x0102040810204080ULL >> 56) << i;  // one bit of each byte
    }
    return mask;
}

}  // namespace recto
