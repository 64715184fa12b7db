// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3" (SC 2011). A pure function from (key, counter) to 128 random bits: a draw is named by the seed,
// the index of the token in its output and the token id, and so does not depend on neighbours, chunking or
// preemption.
#pragma once
#include <array>
#include <cstdint>

namespace recto {

constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t(0xD2511F53U) * counter[0];
        const std::uint64_t b = std::uint64_t(0xCD9E8D57U) * counter[2];
        counter = {std::uint32_t(b >> 32) ^ counter[1] ^ key[0], std::uint32_t(b),
                   std::uint32_t(a >> 32) ^ counter[3] ^ key[1], std::uint32_t(a)};
        key[0] += 0x9E3779B9U;
        key[1] += 0xBB67AE85U;
    }
    return counter;
}

// One independent uniform number for each token id, in (0, 1).
class TokenUniforms {
  public:
    TokenUniforms(std::uint64_t seed, std::uint32_t output_index)
        : key_{std::uint32_t(seed), std::uint32_t(seed >> 32)}, output_index_(output_index) {}

    // Ascending ids are cheapest: four neighbours share one call of the generator.
    double operator()(std::int32_t token) {
        const auto group = std::uint32_t(token) / 4;
        if (group != group_) {
            group_ = group;
            bits_ = philox4x32({group, output_index_, 0, 0}, key_);
        }
        return (double(bits_[std::uint32_t(token) % 4]) + 0.5) * 0x1p-32;
    }

  private:
    std::array<std::uint32_t, 2> key_;
    std::uint32_t output_index_;
    std::uint32_t group_ = ~std::uint32_t(0);
    std::array<std::uint32_t, 4> bits_{};
};

}  // namespace recto
