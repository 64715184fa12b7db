// Medians and spreads of a benchmark's samples.
#pragma once
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

}  // namespace recto
