// Medians and spreads of a benchmark's samples, and whether two sets of them differ.
#pragma once
#include <span>
#include <vector>

namespace recto {

// Linear interpolation between the two nearest order statistics (Hyndman and Fan's type 7, NumPy's default).
double quantile(std::vector<double> samples, double q);  // 0 for no samples

struct TimedFigure {
    std::vector<double> samples;  // one a repeat, in the order they were measured
    double median() const { return quantile(samples, 0.5); }
    double iqr() const { return quantile(samples, 0.75) - quantile(samples, 0.25); }
    double min() const { return quantile(samples, 0.0); }
    double max() const { return quantile(samples, 1.0); }
};

// Two-sided p of the rank-sum test (Wilcoxon 1945; Mann and Whitney 1947): twice the smaller tail of the
// exact permutation distribution of the sum of ranks, ties at their mean rank, at most 1. Above 60 samples
// together the normal approximation with correction for ties and continuity. 1 if a side is empty.
double rank_test_p(std::span<const double> a, std::span<const double> b);

bool ranges_overlap(std::span<const double> a, std::span<const double> b);  // touching counts

// How far one side's runs differ from themselves: the samples are dealt to two sides in the order A B B A A
// B…, as a comparison would, and |ratio of the medians − 1| is returned. 0 for fewer than two samples.
double self_spread(std::span<const double> samples);

}  // namespace recto
