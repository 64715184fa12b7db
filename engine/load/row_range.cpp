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
    std::optional<RawWeight> raw() const override {
        auto raw = whole_->raw();
        if (!raw || !narrow(*raw)) return std::nullopt;
        return raw;
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

    // Lines first_row_ … of a plane that has one for each `outputs` outputs.
    void take_lines(RawPlane& plane, std::int64_t outputs) const {
        if (plane.lines == 0) return;
        plane.data += first_row_ / outputs * plane.stride;
        plane.lines = (rows_ + outputs - 1) / outputs;
    }
    // The outputs' part of every line, where an output has `bits` in it.
    void take_columns(RawPlane& plane, std::int64_t bits) const {
        plane.data += first_row_ * bits / 8;
        plane.line_bytes = rows_ * bits / 8;
    }
    // To the rows of this range; false where they do not begin and end with whole words.
    bool narrow(RawWeight& raw) const {
        const std::int64_t in_word = 32 / raw.bits;
        const bool whole_words = first_row_ % in_word == 0 && rows_ % in_word == 0;
        switch (raw.layout) {
            case RawLayout::awq_gemm:
            case RawLayout::gptq:
                if (!whole_words) return false;
                take_columns(raw.packed, raw.layout == RawLayout::gptq ? 32 : 4);
                if (raw.zeros.lines > 0) take_columns(raw.zeros, raw.bits);
                take_columns(raw.scales, 8 * std::int64_t(dtype_bytes(raw.scale_dtype)));
                return true;
            case RawLayout::awq_gemv:
            case RawLayout::words:
                if (!whole_words) return false;
                take_lines(raw.packed, 1);
                take_lines(raw.zeros, raw.layout == RawLayout::words && !raw.zero_bytes ? in_word : 1);
                take_lines(raw.scales, 1);
                return true;
            default:
                if (raw.order.head_dim != 0) return false;
                take_lines(raw.packed, 1);
                return true;
        }
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
