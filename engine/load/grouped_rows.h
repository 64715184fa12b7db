// What the readers of quantized folders have in common: a weight of integers with a scale and, perhaps, a
// zero point or an offset a group, over bytes of mapped files.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/weight.h"

namespace recto {

struct SafeTensor;

// The tensors of one quantized module, found and checked for shape and dtype. Null: there is none.
struct QuantizedTensors {
    std::int64_t rows = 0, cols = 0;
    int bits = 4;
    std::int64_t file_group = 0;  // inputs under one scale in the file; the last group may be shorter
    const SafeTensor* packed = nullptr;
    const SafeTensor* zeros = nullptr;
    const SafeTensor* scales = nullptr;
    bool zeros_v1 = false;                   // GPTQ: zero points are stored less 1
    std::vector<std::int32_t> permutation;   // [cols] of act-order files, or empty
    std::vector<float> bias;                 // [rows] or empty
    std::shared_ptr<const void> keep_alive;  // the maps that the tensors point into
    double bits_per_weight = 0;              // scales and zero points included

    std::int64_t file_groups() const { return (cols + file_group - 1) / file_group; }
};

// Group size that the kernels can take for groups of `file_group` inputs in rows of `cols`: the same where it
// divides the row, a part of it where the last group is shorter, the row's length for one group. 0 if there
// is none.
int kernel_group(std::int64_t cols, std::int64_t file_group);

std::unique_ptr<WeightRows> make_awq_gemm_rows(QuantizedTensors tensors);
std::unique_ptr<WeightRows> make_awq_gemv_rows(QuantizedTensors tensors);
std::unique_ptr<WeightRows> make_awq_fast_rows(QuantizedTensors tensors);
std::unique_ptr<WeightRows> make_gptq_rows(QuantizedTensors tensors);
std::unique_ptr<WeightRows> make_compressed_rows(QuantizedTensors tensors);

// Words of a map, at any alignment.
inline std::uint32_t load_u32(const std::byte* from) {
    std::uint32_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}
inline std::uint64_t load_u64(const std::byte* from) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}
// The eight nibbles of a word, lowest first, one a byte.
inline std::uint64_t spread_nibbles(std::uint32_t word) {
    std::uint64_t x = word;
    x = (x | x << 16) & 0x0000FFFF0000FFFFULL;
    x = (x | x << 8) & 0x00FF00FF00FF00FFULL;
    return (x | x << 4) & 0x0F0F0F0F0F0F0F0FULL;
}

class GroupedRows : public WeightRows {
  public:
    GroupedRows(const char* name, QuantInt integer, OffsetForm offset, QuantizedTensors&& tensors);

    std::int64_t rows() const final { return t_.rows; }
    std::int64_t cols() const final { return t_.cols; }
    const WeightForm& form() const final { return form_; }
    std::span<const std::int32_t> input_permutation() const final { return t_.permutation; }
    std::span<const float> bias() const final { return t_.bias; }

    void read(std::int64_t first_row, std::int64_t n, const WeightPlanes& out) const final;
    // scale · (q − zero point), which is exact in FP32 for scales of 16 bits; scale · q + offset for offsets.
    void read_f32(std::int64_t first_row, std::int64_t n, float* out) const final;
    void read_dense(std::int64_t first_row, std::int64_t n, void* out) const final;

  protected:
    const QuantizedTensors& tensors() const { return t_; }

    // q [n, cols] in the file's order of inputs.
    virtual void codes(std::int64_t first_row, std::int64_t n, std::uint8_t* q) const = 0;
    // One value a group of the file, [n, file_groups()].
    virtual void scales(std::int64_t first_row, std::int64_t n, float* scale) const = 0;
    virtual void zero_points(std::int64_t first_row, std::int64_t n, std::uint8_t* zero) const;  // zero_point
    virtual void offsets(std::int64_t first_row, std::int64_t n, float* offset) const;  // f16 and f32

    // Column block [groups, rows of the file] → [n, groups], widened; what AWQ gemm and GPTQ scales need.
    void read_columns(const SafeTensor& tensor, std::int64_t first_row, std::int64_t n, float* out) const;

    RawWeight raw_as(RawLayout layout) const;  // the tensors as planes, line by line of their first dimension

  private:
    WeightForm form_;
    QuantizedTensors t_;
    std::int64_t groups_ = 0;  // of form_.group_size a row
};

}  // namespace recto
