// Experts of a mixture on the CPU: the packed matrices as they are, and the rows of a step sorted by expert,
// so that each expert's weights are read once a step.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/packed.h"

namespace recto::cpu {

class CpuExperts final : public PackedExperts {
  public:
    explicit CpuExperts(std::vector<std::unique_ptr<PackedWeight>> experts);
    int experts() const override { return int(experts_.size()); }
    std::int64_t rows() const override { return experts_[0]->rows(); }
    std::int64_t cols() const override { return experts_[0]->cols(); }
    std::size_t bytes() const override;
    std::string describe() const override { return experts_[0]->describe(); }
    const PackedMatrix& expert(int e) const {
        return static_cast<const PackedMatrix&>(*experts_[std::size_t(e)]);
    }

  private:
    std::vector<std::unique_ptr<PackedWeight>> experts_;
};

// The slots (row · k + place) of a step, by expert and ascending within one.
struct ExpertGroups {
    std::vector<std::int32_t> order;
    struct Group {
        int expert = 0;
        std::int64_t first = 0, count = 0;  // in `order`
    };
    std::vector<Group> groups;  // ascending by expert, none empty
};
ExpertGroups group_by_expert(const ExpertChoice& choice, int experts);

// One row of `route`. Plain loops and one exponential: the same bits in every instruction set.
void choose_experts(const float* logits, std::int64_t experts, int k, bool renormalize, std::int32_t* ids,
                    float* weights);

}  // namespace recto::cpu
