// A mixture's experts as tiles, and the products with those that each row chose.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/grouped_linear.h"
#include "kernels/cuda/scratch_sizes.h"
#include "kernels/cuda/tiled_weight.h"

namespace recto::cuda {

class TiledExperts final : public PackedExperts {
  public:
    // One segment of every expert: the same outputs, in the same form.
    struct Segment {
        TileWeight tile;  // of expert 0
        int first_output = 0;
        bool permuted = false;
        const ExpertPlanes* planes = nullptr;  // [experts] device memory
    };

    // All of one form and shape, as the files of mixtures hold them; Error(input) when they are not.
    TiledExperts(Backend& backend, std::vector<std::unique_ptr<PackedWeight>> experts);
    int experts() const override { return int(experts_.size()); }
    std::int64_t rows() const override { return experts_[0]->rows(); }
    std::int64_t cols() const override { return experts_[0]->cols(); }
    std::size_t bytes() const override;
    std::string describe() const override { return experts_[0]->describe() + ", grouped by expert"; }
    const std::vector<Segment>& segments() const { return segments_; }
    DType activation() const;
    bool interleaved() const;
    bool permuted() const;

  private:
    std::vector<std::unique_ptr<PackedWeight>> experts_;
    std::vector<Segment> segments_;
    std::unique_ptr<Buffer> planes_;  // [segments, experts] ExpertPlanes
};

// Keeps the scratch memory of grouped products. Long steps are computed a slice of rows after another, so
// that the memory has a bound whatever the step.
class ExpertRunner {
  public:
    explicit ExpertRunner(int multiprocessors) : multiprocessors_(multiprocessors) {}

    // Adds what a layer's products will need, when it is stacked.
    static void expect(ProductNeeds& needs, const TiledExperts& experts);
    // Makes room for steps of up to `max_rows` rows. True if memory moved: captured graphs that used it are
    // void.
    bool reserve(const ProductNeeds& needs, std::int64_t max_rows);
    std::size_t bytes() const { return sorted_.bytes() + inputs_.bytes() + products_.bytes(); }
    // As Backend::expert_gate_up and expert_down; x of the experts' activation type, its rows aligned to 16
    // bytes.
    void gate_up(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const TiledExperts& experts,
                 Epilogue epilogue, Tensor out);
    void down(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const TiledExperts& experts,
              Tensor out);

  private:
    struct Slice;
    // Calls `work` for runs of rows whose slots have room, each sorted.
    template <class Work>
    void for_slices(cudaStream_t stream, const ExpertChoice& choice, int experts, Work work);
    void product(cudaStream_t stream, Tensor x, const Slice& slice, const TiledExperts::Segment& s,
                 int per_row, Epilogue epilogue, int splits, Tensor out);

    int multiprocessors_;
    DeviceMemory sorted_;                // slots, tiles, their count
    DeviceMemory inputs_;                // [slots, widest permuted input] 16-bit
    DeviceMemory products_;              // FP32 of down, or 16-bit gate|up of unlike parts
    std::int64_t rows_ = 0, slots_ = 0;  // reserved
};

}  // namespace recto::cuda
