// What the machine can do at most, by the same instructions that the kernels use, without their memory
// traffic.
#pragma once
#include <cstddef>
#include <cstdint>

namespace recto::cpu {

template <class L>
std::int32_t read_memory(const std::uint8_t* p, std::size_t bytes) {
    auto a = L::zero_i(), b = L::zero_i(), c = L::zero_i(), d = L::zero_i();
    for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
        a = L::add_i(a, L::load_i(p + i));
        b = L::add_i(b, L::load_i(p + i + 64));
        c = L::add_i(c, L::load_i(p + i + 128));
        d = L::add_i(d, L::load_i(p + i + 192));
    }
    return L::sum_i(L::add_i(L::add_i(a, b), L::add_i(c, d)));
}

// 16 independent sums (8 where registers are few), 64 products each a round.
template <class L>
double int8_rounds(std::int64_t steps, float* sink) {
    constexpr int chains = L::max_rows >= 12 ? 16 : 4;
    alignas(64) std::uint8_t w[64];
    alignas(64) std::int8_t x[4] = {1, -2, 3, -4};
    for (int i = 0; i < 64; ++i)
        w[i] = std::uint8_t(i & 15);
    const auto weight = L::load_bytes(w);
    typename L::I acc[chains];
    for (auto& a : acc)
        a = L::zero_i();
    for (std::int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
        for (auto& a : acc)
            a = L::dot_nibbles(a, weight, x);
    }
    auto total = L::zero_i();
    for (auto& a : acc)
        total = L::add_i(total, a);
    *sink = float(L::sum_i(total));
    return double(steps) * chains * 64 * 2;
}

template <class L>
double fp32_rounds(std::int64_t steps, float* sink) {
    constexpr int chains = L::max_rows >= 12 ? 16 : 4;
    typename L::F acc[chains];
    for (auto& a : acc)
        a = L::set1(1.0F);
    const auto w = L::set1(*sink), v = L::set1(1e-3F);
    for (std::int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
        for (auto& a : acc)
            a = L::fma(a, w, v);
    }
    auto total = L::zero();
    for (auto& a : acc)
        total = L::add(total, a);
    *sink = L::sum(total);
    return double(steps) * chains * lanes * 2;
}

}  // namespace recto::cpu
