// The word for a difference between two sides (users.md §5):
//     clear        the ranges of the samples do not overlap, and |ratio − 1| > floor
//     likely       two-sided rank test p < 0.05, and |ratio − 1| > floor
//     within noise anything else
//     too few runs fewest_runs were not done on each side, whatever the samples say: the ranges of
//                  three runs a side lie apart by chance once in ten times
// floor = max(1 %, self_spread of A's samples).
#pragma once
#include <optional>
#include <vector>

#include "engine/bench/compare.h"

namespace recto {

// A side. The smallest p that a rank test can give with so many is 0.008, with one fewer 0.029.
constexpr int fewest_runs = 5;

// Fills a, b, ratio, floor, p, word, better and the numbers of runs; nothing where a side has no sample or
// A's median is 0.
std::optional<Verdict> judge(const TimedFigure& a, const TimedFigure& b, bool higher_is_better);

// Of all rows that have both sides, by shape and figure; load_s once. `load_comparable` is false where the
// page cache was not alike before both loads.
std::vector<Verdict> judge_rows(const std::vector<BenchRow>& rows, bool load_comparable);

}  // namespace recto
