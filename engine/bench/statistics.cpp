#include "engine/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace recto {
namespace {

constexpr std::size_t most_exact = 60;

// Twice the mean rank of each sample among both sides: whole numbers also where samples tie.
std::vector<int> doubled_ranks(std::span<const double> a, std::span<const double> b) {
    std::vector<double> all(a.begin(), a.end());
    all.insert(all.end(), b.begin(), b.end());
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return all[x] < all[y]; });
    std::vector<int> ranks(all.size());
    for (std::size_t i = 0; i < order.size();) {
        std::size_t end = i + 1;
        while (end < order.size() && all[order[end]] == all[order[i]])
            ++end;
        for (std::size_t k = i; k < end; ++k)
            ranks[order[k]] = int(i + 1 + end);
        i = end;
    }
    return ranks;
}

// Over all ways to choose `count` of the ranks: how many have each sum.
std::vector<double> sum_counts(const std::vector<int>& ranks, std::size_t count) {
    const int most = std::accumulate(ranks.begin(), ranks.end(), 0);
    std::vector<std::vector<double>> ways(count + 1, std::vector<double>(std::size_t(most) + 1));
    ways[0][0] = 1;
    for (const int rank : ranks)
        for (std::size_t chosen = count; chosen >= 1; --chosen)
            for (std::size_t sum = std::size_t(most); sum >= std::size_t(rank); --sum)
                ways[chosen][sum] += ways[chosen - 1][sum - std::size_t(rank)];
    return ways[count];
}

double exact_p(const std::vector<int>& ranks, std::size_t count, int seen) {
    const std::vector<double> ways = sum_counts(ranks, count);
    const double all = std::accumulate(ways.begin(), ways.end(), 0.0);
    const auto at = ways.begin() + seen;
    const double low = std::accumulate(ways.begin(), at + 1, 0.0);
    const double high = std::accumulate(at, ways.end(), 0.0);
    return std::min(1.0, 2 * std::min(low, high) / all);
}

double normal_p(const std::vector<int>& ranks, double na, double nb, double seen_sum) {
    const double n = na + nb;
    const double u = seen_sum - na * (na + 1) / 2;
    std::vector<int> sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    double ties = 0;
    for (auto i = sorted.begin(); i != sorted.end();) {
        const auto end = std::upper_bound(i, sorted.end(), *i);
        const auto t = double(end - i);
        ties += t * t * t - t;
        i = end;
    }
    const double variance = na * nb / 12 * (n + 1 - ties / (n * (n - 1)));
    if (variance <= 0) return 1;
    const double z = (std::abs(u - na * nb / 2) - 0.5) / std::sqrt(variance);
    return std::min(1.0, std::erfc(z / std::sqrt(2.0)));
}

}  // namespace

double quantile(std::vector<double> samples, double q) {
    if (samples.empty()) return 0.0;
    std::sort(samples.begin(), samples.end());
    const double place = q * double(samples.size() - 1);
    const auto below = std::size_t(std::floor(place));
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (samples[above] - samples[below]) * (place - double(below));
}

double rank_test_p(std::span<const double> a, std::span<const double> b) {
    if (a.empty() || b.empty()) return 1;
    const std::vector<int> ranks = doubled_ranks(a, b);
    const int seen = std::accumulate(ranks.begin(), ranks.begin() + std::ptrdiff_t(a.size()), 0);
    if (ranks.size() > most_exact) return normal_p(ranks, double(a.size()), double(b.size()), seen / 2.0);
    return exact_p(ranks, a.size(), seen);
}

bool ranges_overlap(std::span<const double> a, std::span<const double> b) {
    if (a.empty() || b.empty()) return true;
    const auto [a_min, a_max] = std::minmax_element(a.begin(), a.end());
    const auto [b_min, b_max] = std::minmax_element(b.begin(), b.end());
    return *a_min <= *b_max && *b_min <= *a_max;
}

double self_spread(std::span<const double> samples) {
    std::vector<double> first;
    std::vector<double> second;
    for (std::size_t i = 0; i < samples.size(); ++i)
        (i % 4 == 0 || i % 4 == 3 ? first : second).push_back(samples[i]);
    const double base = quantile(first, 0.5);
    return second.empty() || base == 0 ? 0 : std::abs(quantile(second, 0.5) / base - 1);
}

}  // namespace recto
