// A weight as the tensor-core products read it: segments of tiles, or rows of 16-bit numbers.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/tile_linear.h"
#include "kernels/cuda/weight_loader.h"

namespace recto::cuda {

class TiledWeight final : public PackedWeight {
  public:
    struct Segment {
        TileWeight tile;
        int first_output = 0;  // column of the product's output
        const float* bias = nullptr;
        const std::int32_t* order = nullptr;  // act-order: element k meets input order[k]
    };

    // Whether the parts can be held this way; why not (odd widths, FP32 activations) is no error: plain
    // kernels run.
    static bool suits(std::span<const WeightRows* const> parts, const PackOptions& options);
    TiledWeight(WeightLoader& loader, std::span<const WeightRows* const> parts, const PackOptions& options);

    std::int64_t rows() const override { return rows_; }
    std::int64_t cols() const override { return cols_; }
    std::size_t bytes() const override { return memory_->bytes(); }
    std::string describe() const override { return name_; }
    const std::vector<Segment>& segments() const { return segments_; }
    DType activation() const { return activation_; }
    // Gate and up rows share blocks. A gated weight of unlike parts is not: its products are gated
    // afterwards.
    bool interleaved() const { return interleaved_; }
    bool gated() const { return gated_; }  // PackOptions::gated
    bool permuted() const { return permuted_; }
    bool eight_bit() const {  // products of many rows are of 8 bits, of some parts at least
        return std::ranges::any_of(segments_, [](const Segment& s) { return s.tile.eight != DType::f32; });
    }

  private:
    struct Plan;
    void load(WeightLoader& loader, const std::vector<Plan>& plans);

    std::int64_t rows_ = 0, cols_ = 0;
    DType activation_;
    bool gated_ = false, interleaved_ = false, permuted_ = false;
    std::unique_ptr<WeightMemory> memory_;
    std::vector<Segment> segments_;
    std::string name_;
};

}  // namespace recto::cuda
