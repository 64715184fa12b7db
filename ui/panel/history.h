// Snapshots come at uneven times; plots want even ones. Plain functions over the recorded samples.
#pragma once
#include <vector>

#include "ui/models/time_series.h"

namespace recto::ui {

constexpr int history_points = 121;  // half a second apart over a minute

// Blocks of the owner-th owner at even times, newest last; as many as were recorded.
std::vector<double> used_history(const TimeSeries& series, std::size_t owner);
// A rate, averaged over each half second; 0 where nothing was recorded between two samples.
std::vector<double> rate_history(const TimeSeries& series, double TimeSeries::Sample::*rate);

}  // namespace recto::ui
