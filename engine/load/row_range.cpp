#include "engine/load/row_range.h"

#include <cassert>

namespace recto {

namespace {

class RowRange final : public WeightRows {
  public:
    RowRange(std::shared_ptr<const WeightRows> whole, std::int64_t first_row, std::int64_t rows)
        : whole_(std::move(whole)), first_row_(first_row), rows_(rows) {
        assert(first_row >= 0 && rows >= 0 && first_row + rows <= whole_->rows());
    }

    std::int64_t rows() const override { return rows_; }
    std::int64_t cols() const override { return whole_->cols(); }
    const WeightForm& form() const override { return whole_->form(); }
    std::int64_t preferred_rows() const override { return whole_->preferred_rows(); }

    void read(std::int64_t first_row, std::int64_t n, const WeightPlanes& out) const override {
        whole_->read(row_of_whole(first_row, n), n, out);
    }
    void read_f32(std::int64_t first_row, std::int64_t n, float* out) const override {
        whole_->read_f32(row_of_whole(first_row, n), n, out);
    }
    void read_dense(std::int64_t first_row, std::int64_t n, void* out) const override {
        whole_->read_dense(row_of_whole(first_row, n), n, out);
    }
    std::span<const std::int32_t> input_permutation() const override { return whole_->input_permutation(); }
    std::span<const float> bias() const override {
        const auto all = whole_->bias();
        return all.empty() ? all : all.subspan(std::size_t(first_row_), std::size_t(rows_));
    }

  private:
    std::int64_t row_of_whole(std::int64_t first_row, [[maybe_unused]] std::int64_t n) const {
        assert(first_row >= 0 && n >= 0 && first_row + n <= rows_);
        return first_row_ + first_row;
    }

    std::shared_ptr<const WeightRows> whole_;
    std::int64_t first_row_;
    std::int64_t rows_;
};

}  // namespace

std::unique_ptr<WeightRows> make_row_range(std::shared_ptr<const WeightRows> whole, std::int64_t first_row,
                                           std::int64_t rows) {
    return std::make_unique<RowRange>(std::move(whole), first_row, rows);
}

}  // namespace recto
