#include "engine/bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace recto {

double quantile(std::vector<double> samples, double q) {
    if (samples.empty()) return 0.0;
    std::sort(samples.begin(), samples.end());
    const double place = q * double(samples.size() - 1);
    const auto below = std::size_t(std::floor(place));
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (samples[above] - samples[below]) * (place - double(below));
}

}  // namespace recto
