#include "ui/panel/history.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace recto::ui {
namespace {

int points_recorded(const TimeSeries& series, double step) {
    const auto& samples = series.samples();
    const double span = samples.back().time - samples.front().time;
    return std::clamp(int(std::floor(span / step)) + 1, 1, history_points);
}

}  // namespace

std::vector<double> used_history(const TimeSeries& series, std::size_t owner) {
    const auto& samples = series.samples();
    if (samples.empty()) return {};
    const double step = series.span_s() / (history_points - 1);
    const int n = points_recorded(series, step);
    std::vector<double> values(std::size_t(n), 0.0);
    const auto total = [](const TimeSeries::Sample& sample) {
        return std::accumulate(sample.used.begin(), sample.used.end(), 0.0);
    };
    std::size_t at = samples.size() - 1;
    for (int i = 0; i < n; ++i) {  // i steps before the newest
        const double time = samples.back().time - i * step;
        while (at > 0 && samples[at].time > time)
            --at;
        // The fullest moment since the point before: an answer of a few steps is to be seen.
        std::size_t fullest = at;
        for (std::size_t k = at; k > 0 && samples[k - 1].time > time - step; --k)
            if (total(samples[k - 1]) > total(samples[fullest])) fullest = k - 1;
        const auto& used = samples[fullest].used;
        values[std::size_t(n - 1 - i)] = owner < used.size() ? used[owner] : 0;
    }
    return values;
}

std::vector<double> rate_history(const TimeSeries& series, double TimeSeries::Sample::*rate) {
    const auto& samples = series.samples();
    if (samples.empty()) return {};
    const double step = series.span_s() / (history_points - 1);
    const int n = points_recorded(series, step);
    // A sample's rate holds since the sample before it: weight it by the time it covers in each bucket.
    std::vector<double> sum(std::size_t(n), 0.0);
    const double newest = samples.back().time;
    for (std::size_t i = 1; i < samples.size(); ++i) {
        const double begin = std::max(samples[i - 1].time, newest - n * step), end = samples[i].time;
        for (double t = begin; t < end - 1e-9;) {
            const int back =
                std::min(n - 1, int(std::floor((newest - t - 1e-9) / step)));  // bucket, from newest
            const double next = std::min(end, newest - back * step);
            if (next <= t) break;
            sum[std::size_t(n - 1 - back)] += samples[i].*rate * (next - t) / step;
            t = next;
        }
    }
    return sum;
}

}  // namespace recto::ui
