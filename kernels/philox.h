// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3" (SC 2011). A pure function from (key, counter) to 128 random bits: a draw is named by the seed,
// the index of the token in its output and the token id, and so does not depend on neighbours, chunking or
// preemption.
#pragma once
#include <array>
#include <cstdint>

namespace recto {

constexpr std::uint32_t philox_m0 = 0xD2511F53U, philox_m1 = 0xCD9E8D57U;
constexpr std::uint32_t philox_w0 = 0x9E3779B9U, philox_w1 = 0xBB67AE85U;  // Weyl steps of the key

constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t(philox_m0) * counter[0];
        const std::uint64_t b = std::uint64_t(philox_m1) * counter[2];
        counter = {std::uint32_t(b >> 32) ^ counter[1] ^ key[0], std::uint32_t(b),
                   std::uint32_t(a >> 32) ^ counter[3] ^ key[1], std::uint32_t(a)};
        key[0] += philox_w0;
        key[1] += philox_w1;
    }
    return counter;
}

// The uniform number of a token, in (0, 1): word `id mod 4` of the block that is named (id / 4, output
// index).
constexpr double uniform_of(std::uint32_t bits) {
    return (double(bits) + 0.5) * 0x1p-32;
}

constexpr double token_uniform(std::uint64_t seed, std::uint32_t output_index, std::int32_t token) {
    const auto id = std::uint32_t(token);
    return uniform_of(
        philox4x32({id / 4, output_index, 0, 0}, {std::uint32_t(seed), std::uint32_t(seed >> 32)})[id % 4]);
}

}  // namespace recto
