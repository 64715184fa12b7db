// WeightRows over bytes of a mapped file: what GGUF and safetensors have in common.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/load/gguf_type.h"
#include "kernels/weight.h"

namespace recto {

// A matrix in a file. `data` holds rows * cols elements of the stored type, at any alignment.
struct StoredMatrix {
    std::span<const std::byte> data;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    RowOrder order;
    std::vector<float> bias;                 // [rows] in logical order, or empty
    std::shared_ptr<const void> keep_alive;  // the map that `data` points into
};

// Any type of GGUF tensor.
std::unique_ptr<WeightRows> make_gguf_rows(GgufType type, StoredMatrix matrix);
// float32, float16 or bfloat16. `source_name` must outlive the result ("F16").
std::unique_ptr<WeightRows> make_dense_rows(DType dtype, const char* source_name, StoredMatrix matrix);

// Exact widening of n stored elements. `from` may be unaligned.
void widen_to_f32(DType dtype, const std::byte* from, std::int64_t n, float* to);

class StoredRows : public WeightRows {
  public:
    // A row is cols / block_elements blocks of block_bytes.
    StoredRows(const WeightForm& form, RawLayout layout, int block_elements, int block_bytes, StoredMatrix matrix)
        : form_(form),
          layout_(layout),
          row_bytes_(matrix.cols / block_elements * block_bytes),
          matrix_(std::move(matrix)) {}

    std::int64_t rows() const final { return matrix_.rows; }
    std::int64_t cols() const final { return matrix_.cols; }
    const WeightForm& form() const final { return form_; }
    std::span<const float> bias() const final { return matrix_.bias; }
    std::optional<RawWeight> raw() const final {
        RawWeight raw;
        raw.layout = layout_;
        raw.packed = {matrix_.data.data(), matrix_.rows, row_bytes_, row_bytes_};
        raw.order = matrix_.order;
        raw.keep_alive = matrix_.keep_alive;
        return raw;
    }

  protected:
    const std::byte* row(std::int64_t logical) const {
        return matrix_.data.data() + matrix_.order.file_row(logical) * row_bytes_;
    }
    std::int64_t row_bytes() const { return row_bytes_; }

  private:
    WeightForm form_;
    RawLayout layout_;
    std::int64_t row_bytes_;
    StoredMatrix matrix_;
};

}  // namespace recto
