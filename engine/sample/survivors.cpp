#include "engine/sample/survivors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/sample/row_ops.h"
#include "kernels/philox.h"

namespace recto {
namespace {

constexpr std::size_t block = 64;  // tokens whose random bits are made together

// A weight's bin: its exponent and the first four bits of its mantissa, so that bins ascend with the weights
// and one holds few tokens of a usual row. Weights are at most 1.
constexpr int bin_shift = 19;
constexpr std::size_t bins = (std::size_t(0x3F800000) >> bin_shift) + 1;
std::size_t bin_of(float weight) {
    return std::bit_cast<std::uint32_t>(weight) >> bin_shift;
}

// Sums of rounded weights miss an exact p by some 1e-7; without a margin, p = 0.7 on .4 .3 .1 … would keep a
// third.
constexpr double sum_margin = 1e-6;

}  // namespace

bool Survivors::select(std::span<const float> row, const FilterParams& filter) {
    const float largest = row_largest(row);
    if (largest == -std::numeric_limits<float>::infinity()) return false;
    vocab_ = row.size();
    weights_.assign((vocab_ + block - 1) / block * block, 0.0F);
    row_weights(row, largest, 1.0F / float(filter.temperature), std::span(weights_).first(vocab_));

    threshold_ = std::numeric_limits<float>::min();  // masked tokens have 0
    threshold_ = std::max(threshold_, float(filter.min_p));
    if (filter.top_k > 0 && std::size_t(filter.top_k) < vocab_)
        threshold_ = std::max(threshold_, kth_weight(std::size_t(filter.top_k)));
    if (filter.top_p < 1) threshold_ = nucleus_weight(filter.top_p, threshold_);
    return true;
}

void Survivors::collect_bin(std::size_t bin, float floor) {
    members_.clear();
    for (std::size_t i = 0; i < vocab_; ++i)
        if (bin_of(weights_[i]) == bin && weights_[i] >= floor) members_.push_back(weights_[i]);
    std::sort(members_.begin(), members_.end(), std::greater<>());
}

float Survivors::kth_weight(std::size_t k) {
    mass_.assign(bins, 0);
    for (std::size_t i = 0; i < vocab_; ++i)
        mass_[bin_of(weights_[i])] += 1;
    std::size_t bin = bins - 1;
    auto left = double(k);
    while (mass_[bin] < left)
        left -= mass_[bin--];
    collect_bin(bin, 0);
    return members_[std::size_t(left) - 1];
}

float Survivors::nucleus_weight(double top_p, float floor) {
    mass_.assign(bins, 0);
    for (std::size_t i = 0; i < vocab_; ++i)
        if (weights_[i] >= floor) mass_[bin_of(weights_[i])] += double(weights_[i]);
    double total = 0;
    for (double m : mass_)
        total += m;
    const double target = top_p * total * (1 - sum_margin);

    double before = 0;  // of the more probable tokens
    std::size_t bin = bins - 1;
    while (bin > 0 && before + mass_[bin] < target)
        before += mass_[bin--];
    collect_bin(bin, floor);
    float lowest = floor;
    for (std::size_t i = 0; i < members_.size();) {  // groups of equal weights
        if (before >= target && before > 0) break;
        lowest = members_[i];
        for (; i < members_.size() && members_[i] == lowest; ++i)
            before += double(lowest);
    }
    return lowest;
}

std::int32_t Survivors::draw(std::uint64_t seed, std::uint32_t output_index) const {
    std::int32_t best = -1;
    double best_score = 0;  // weight / E, E = −ln u
    std::array<std::uint32_t, block> bits;
    for (std::size_t first = 0; first < weights_.size(); first += block) {
        const std::span<const float, block> weights(weights_.data() + first, block);
        // E is at least 2^-33, so a block of small weights needs no random numbers at all.
        const float largest = row_largest(weights);
        if (largest < threshold_ || double(largest) <= best_score * 0x1p-33) continue;
        philox_bits(std::uint32_t(first), output_index, seed, bits);
        // E = −ln u ≥ 1 − u, so most tokens are refused without a logarithm.
        const std::uint64_t hopeful = exceed_scaled_complement(weights, bits, best_score);
        for (std::uint64_t rest = hopeful; rest != 0; rest &= rest - 1) {
            const auto i = std::size_t(std::countr_zero(rest));
            const double score =
                weights[i] < threshold_ ? 0 : double(weights[i]) / -std::log(uniform_of(bits[i]));
            if (score <= best_score) continue;
            best_score = score;
            best = std::int32_t(first + i);
        }
    }
    return best;
}

}  // namespace recto
