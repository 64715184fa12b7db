// Elementary functions over lanes. The same roundings in every instruction set.
#pragma once

namespace recto::cpu {

// e^r for x = n ln 2 + r with |r| ≤ 0.3466: Taylor to r^7 (truncation below 6e-9 relative).
template <class L>
inline typename L::F exp_of_rest(typename L::F x, typename L::I n) {
    using F = typename L::F;
    const F nf = L::to_float(n);
    F r = L::fma(nf, L::set1(-0.693359375F), x);
    r = L::fma(nf, L::set1(2.12194440e-4F), r);
    F p = L::set1(1.0F / 5040.0F);
    p = L::fma(p, r, L::set1(1.0F / 720.0F));
    p = L::fma(p, r, L::set1(1.0F / 120.0F));
    p = L::fma(p, r, L::set1(1.0F / 24.0F));
    p = L::fma(p, r, L::set1(1.0F / 6.0F));
    p = L::fma(p, r, L::set1(0.5F));
    p = L::fma(p, r, L::set1(1.0F));
    return L::fma(p, r, L::set1(1.0F));
}

// e^x. At most 2 units in the last place for −87.3 < x < 88.7; below that 0, above 2^128 is infinity; NaN
// stays NaN.
template <class L>
inline typename L::F exp_lanes(typename L::F x) {
    using F = typename L::F;
    const F lowest = L::set1(-87.33654F);
    const F clamped = L::min(L::set1(88.9F), L::max(lowest, x));
    const auto n = L::round(L::mul(clamped, L::set1(1.44269504F)));
    const F p = exp_of_rest<L>(clamped, n);
    // 2^n in two halves, since n may be 128.
    const auto half = L::sub_i(L::template shift_right<1>(L::add_i(n, L::set1_i(256))), L::set1_i(128));
    const auto rest = L::sub_i(n, half);
    const F s1 = L::from_bits(L::template shift_left<23>(L::add_i(half, L::set1_i(127))));
    const F s2 = L::from_bits(L::template shift_left<23>(L::add_i(rest, L::set1_i(127))));
    const F y = L::mul(L::mul(p, s1), s2);
    return L::if_less(x, lowest, L::zero(), y);
}

// The same, bit for bit, for x ≤ 0, where 2^n is a normal number and one multiplication rounds once.
template <class L>
inline typename L::F exp_nonpositive(typename L::F x) {
    using F = typename L::F;
    const F lowest = L::set1(-87.33654F);
    const F clamped = L::max(lowest, x);
    const auto n = L::round(L::mul(clamped, L::set1(1.44269504F)));
    const F s = L::from_bits(L::template shift_left<23>(L::add_i(n, L::set1_i(127))));
    return L::if_less(x, lowest, L::zero(), L::mul(exp_of_rest<L>(clamped, n), s));
}

template <class L>
inline typename L::F sigmoid_lanes(typename L::F x) {
    const auto one = L::set1(1.0F);
    return L::div(one, L::add(one, exp_lanes<L>(L::sub(L::zero(), x))));
}

// x / (1 + e^−x)
template <class L>
inline typename L::F silu_lanes(typename L::F x) {
    return L::div(x, L::add(L::set1(1.0F), exp_lanes<L>(L::sub(L::zero(), x))));
}

// The tanh form of gelu: ½ x (1 + tanh u) = x / (1 + e^−2u), u = √(2/π) (x + 0.044715 x³).
template <class L>
inline typename L::F gelu_lanes(typename L::F x) {
    const auto cube = L::mul(L::mul(x, x), x);
    const auto u2 = L::mul(L::set1(1.5957691216F), L::fma(cube, L::set1(0.044715F), x));
    return L::div(x, L::add(L::set1(1.0F), exp_lanes<L>(L::sub(L::zero(), u2))));
}

// tanh x = 1 − 2 / (1 + e^2x); absolute error below 2e-7.
template <class L>
inline typename L::F tanh_lanes(typename L::F x) {
    const auto e = exp_lanes<L>(L::add(x, x));
    return L::sub(L::set1(1.0F), L::div(L::set1(2.0F), L::add(L::set1(1.0F), e)));
}

}  // namespace recto::cpu
