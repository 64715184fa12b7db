#include "engine/sample/survivors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/sample/exp.h"
#include "engine/sample/philox.h"

namespace recto {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// A heap beats selecting in a copy while it stays in the first-level cache and most of a row is refused by
// one compare.
constexpr int largest_heap = 256;

// Sums of rounded weights miss an exact p by some 1e-7; without a margin, p = 0.7 on .4 .3 .1 … would keep a
// third.
constexpr double sum_margin = 1e-6;

}  // namespace

bool Survivors::select(std::span<const float> row, const FilterParams& filter) {
    ids_.clear();
    weights_.clear();
    float largest = minus_infinity;
    for (float x : row)
        largest = std::max(largest, x);
    if (largest == minus_infinity) return false;

    // Below this the weight is at most 2e-38 of the largest: never drawn, and min_p, top_k or top_p would not
    // differ.
    const auto temperature = float(filter.temperature);
    float threshold = largest - 87.0F * temperature;
    if (filter.min_p > 0)
        threshold = std::max(threshold, largest + temperature * float(std::log(filter.min_p)));
    if (filter.top_k > 0 && std::size_t(filter.top_k) < row.size())
        threshold = std::max(threshold, kth_largest(row, filter.top_k));

    for (std::size_t i = 0; i < row.size(); ++i)
        if (row[i] >= threshold) ids_.push_back(std::int32_t(i));
    weights_.resize(ids_.size());
    for (std::size_t i = 0; i < ids_.size(); ++i)
        weights_[i] = row[std::size_t(ids_[i])];
    const float scale = 1.0F / temperature;
    for (float& w : weights_)
        w = exp_negative((w - largest) * scale);
    if (filter.top_p < 1) keep_from(nucleus_threshold(filter.top_p));
    return true;
}

float Survivors::kth_largest(std::span<const float> row, int k) {
    if (k > largest_heap) {
        scratch_.assign(row.begin(), row.end());
        const auto kth = scratch_.begin() + (k - 1);
        std::nth_element(scratch_.begin(), kth, scratch_.end(), std::greater<>());
        return *kth;
    }
    scratch_.assign(row.begin(), row.begin() + k);
    std::make_heap(scratch_.begin(), scratch_.end(), std::greater<>());
    float smallest = scratch_.front();
    for (float x : row.subspan(std::size_t(k))) {
        if (x <= smallest) continue;
        std::pop_heap(scratch_.begin(), scratch_.end(), std::greater<>());
        scratch_.back() = x;
        std::push_heap(scratch_.begin(), scratch_.end(), std::greater<>());
        smallest = scratch_.front();
    }
    return smallest;
}

// Mass is first summed in one bin per power of two of the weight; only the bin in which the sum crosses p is
// sorted.
float Survivors::nucleus_threshold(double top_p) {
    std::array<double, 256> mass{};
    const auto bin_of = [](float w) { return std::bit_cast<std::uint32_t>(w) >> 23; };
    double total = 0;
    for (float w : weights_)
        mass[bin_of(w)] += w;
    for (double m : mass)
        total += m;
    const double target = top_p * total * (1 - sum_margin);

    double before = 0;  // of the more probable bins
    std::uint32_t bin = 255;
    while (bin > 0 && before + mass[bin] < target)
        before += mass[bin--];
    scratch_.clear();
    for (float w : weights_)
        if (bin_of(w) == bin) scratch_.push_back(w);
    std::sort(scratch_.begin(), scratch_.end(), std::greater<>());

    float threshold = scratch_.empty() ? 0.0F : scratch_.front();
    for (std::size_t i = 0; i < scratch_.size();) {  // groups of equal weights
        if (before >= target && before > 0) break;
        threshold = scratch_[i];
        for (const float w = scratch_[i]; i < scratch_.size() && scratch_[i] == w; ++i)
            before += w;
    }
    return threshold;
}

void Survivors::keep_from(float weight) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
        if (weights_[i] < weight) continue;
        ids_[kept] = ids_[i];
        weights_[kept++] = weights_[i];
    }
    ids_.resize(kept);
    weights_.resize(kept);
}

std::int32_t Survivors::draw(std::uint64_t seed, std::uint32_t output_index) const {
    TokenUniforms uniform(seed, output_index);
    std::int32_t best = -1;
    double best_score = 0;  // weight / E, E = −ln u
    for (std::size_t i = 0; i < ids_.size(); ++i) {
        const double u = uniform(ids_[i]);
        const double w = weights_[i];
        // E = −ln u ≥ 1 − u, so most tokens are refused without a logarithm.
        if (w <= best_score * (1 - u)) continue;
        const double score = w / -std::log(u);
        if (score > best_score) {
            best_score = score;
            best = ids_[i];
        }
    }
    return best;
}

}  // namespace recto
