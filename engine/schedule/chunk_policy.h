// How many prompt tokens a step may compute while others decode: as many as fit a time target, by a running
// estimate of the seconds that a row takes.
#pragma once
#include <algorithm>
#include <cstdint>

namespace recto {

class ChunkPolicy {
  public:
    ChunkPolicy(double target_seconds, std::int32_t block_size)
        : target_seconds_(target_seconds), block_size_(block_size) {}

    void observe(std::int32_t rows, double seconds) {
        // A step of few rows is bound by reading the weights and says nothing about the cost of one more row.
        if (rows < min_observed_rows) return;
        const double s = seconds / rows;
        seconds_per_row_ = seconds_per_row_ == 0 ? s : seconds_per_row_ + 0.25 * (s - seconds_per_row_);
    }

    // Whole blocks, at least one, so that a prompt always advances.
    std::int32_t rows_beside(std::int32_t decoding) const {
        const double rows = seconds_per_row_ == 0 ? first_guess : target_seconds_ / seconds_per_row_;
        const auto left = std::int32_t(std::min(rows, 1e6)) - decoding;
        return std::max(left / block_size_, 1) * block_size_;
    }

  private:
    static constexpr std::int32_t min_observed_rows = 32;
    static constexpr double first_guess = 64;
    double target_seconds_;
    std::int32_t block_size_;
    double seconds_per_row_ = 0;
};

}  // namespace recto
