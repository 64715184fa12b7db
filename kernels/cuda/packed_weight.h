// Weights as the plain CUDA kernels read them: row-major, in the logical form.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/weight_loader.h"

namespace recto::cuda {

// What a kernel needs of one part; device pointers. Exactly one of `dense` and `q` is set.
struct PartView {
    const void* dense;      // [rows, cols] of dense_dtype
    const std::uint8_t* q;  // u4: [rows, cols / 2], element 2j in the low nibble; u8, i8: [rows, cols]
    const float* scale;     // [rows, cols / group_size]
    const float* offset;    // the same, or null
    const float* bias;      // [rows], or null
    const int* order;       // [cols] act-order: element k of a row meets input order[k]; or null
    int rows;
    int group_size;
    DType dense_dtype;
    QuantInt integer;
};

constexpr int max_parts = 4;

struct WeightView {
    PartView part[max_parts];
    int parts;
    int rows;  // of all parts
    int cols;
};

class CudaWeight final : public PackedWeight {
  public:
    CudaWeight(WeightLoader& loader, std::span<const WeightRows* const> parts);
    std::int64_t rows() const override { return view_.rows; }
    std::int64_t cols() const override { return view_.cols; }
    std::size_t bytes() const override { return memory_->bytes(); }
    std::string describe() const override;
    const WeightView& view() const { return view_; }

  private:
    // Gives every plane of the weight its place, from `base` on; returns the bytes that they take.
    std::size_t lay_out(std::span<const WeightRows* const> parts, std::byte* base);

    WeightView view_{};
    std::unique_ptr<WeightMemory> memory_;
    std::string name_;
};

// The experts' weights and, in device memory, the views that kernels index by expert.
class CudaExperts final : public PackedExperts {
  public:
    CudaExperts(Backend& backend, std::vector<std::unique_ptr<PackedWeight>> experts);
    int experts() const override { return int(experts_.size()); }
    std::int64_t rows() const override { return experts_[0]->rows(); }
    std::int64_t cols() const override { return experts_[0]->cols(); }
    std::size_t bytes() const override;
    std::string describe() const override { return experts_[0]->describe(); }
    const WeightView* views() const { return static_cast<const WeightView*>(views_->data()); }
    const WeightView& shape() const { return static_cast<const CudaWeight&>(*experts_[0]).view(); }

  private:
    std::vector<std::unique_ptr<PackedWeight>> experts_;
    std::unique_ptr<Buffer> views_;  // [experts] WeightView
};

}  // namespace recto::cuda
