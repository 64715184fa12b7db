#include "kernels/cpu/experts.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/backend.h"

namespace recto::cpu {

CpuExperts::CpuExperts(std::vector<std::unique_ptr<PackedWeight>> experts) : experts_(std::move(experts)) {
    assert(!experts_.empty());
    for ([[maybe_unused]] const auto& e : experts_)
        assert(e->rows() == experts_[0]->rows() && e->cols() == experts_[0]->cols());
}

std::size_t CpuExperts::bytes() const {
    std::size_t n = 0;
    for (const auto& e : experts_)
        n += e->bytes();
    return n;
}

ExpertGroups group_by_expert(const ExpertChoice& choice, int experts) {
    ExpertGroups out;
    const std::int64_t slots = choice.rows * choice.per_row;
    std::vector<std::int64_t> place(std::size_t(experts), 0);
    for (std::int64_t i = 0; i < slots; ++i) {
        assert(choice.ids[i] >= 0 && choice.ids[i] < experts);
        ++place[std::size_t(choice.ids[i])];
    }
    std::int64_t first = 0;
    for (int e = 0; e < experts; ++e) {
        const std::int64_t count = place[std::size_t(e)];
        if (count > 0) out.groups.push_back({e, first, count});
        place[std::size_t(e)] = first;
        first += count;
    }
    out.order.resize(std::size_t(slots));
    for (std::int64_t i = 0; i < slots; ++i)
        out.order[std::size_t(place[std::size_t(choice.ids[i])]++)] = std::int32_t(i);
    return out;
}

void choose_experts(const float* logits, std::int64_t experts, int k, bool renormalize, std::int32_t* ids,
                    float* weights) {
    assert(k > 0 && k <= experts);
    // Softmax keeps the order of the logits, so they decide; a NaN is never larger than anything.
    for (int s = 0; s < k; ++s) {
        std::int32_t best = -1;
        for (std::int32_t e = 0; e < experts; ++e) {
            if (std::find(ids, ids + s, e) != ids + s) continue;
            if (best < 0 || logits[e] > logits[best]) best = e;
        }
        ids[s] = best;
    }
    bool finite = true;
    for (std::int64_t e = 0; e < experts; ++e)
        finite = finite && std::isfinite(logits[e]);
    const float top = logits[ids[0]];
    std::sort(ids, ids + k);
    float total = 0;
    if (renormalize) {
        for (int s = 0; s < k; ++s)
            total += std::exp(logits[ids[s]] - top);
    } else {
        for (std::int64_t e = 0; e < experts; ++e)
            total += std::exp(logits[e] - top);
    }
    for (int s = 0; s < k; ++s)
        weights[s] =
            finite ? std::exp(logits[ids[s]] - top) / total : std::numeric_limits<float>::quiet_NaN();
}

std::unique_ptr<PackedExperts> CpuBackend::stack_experts(std::vector<std::unique_ptr<PackedWeight>> experts) {
    return std::make_unique<CpuExperts>(std::move(experts));
}

void CpuBackend::route(Tensor logits, bool renormalize, const ExpertChoice& choice) {
    assert(logits.rows == choice.rows);
    pool_.parallel_for(logits.rows, 8, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            choose_experts(logits.f32() + r * logits.row_stride, logits.cols, choice.per_row, renormalize,
                           choice.ids + r * choice.per_row, choice.weights + r * choice.per_row);
        }
    });
}

void CpuBackend::expert_gate_up(Tensor x, const ExpertChoice& choice, const PackedExperts& weight,
                                Epilogue epilogue, Tensor out) {
    const auto& w = static_cast<const CpuExperts&>(weight);
    assert(x.rows == choice.rows && out.rows == x.rows * choice.per_row && x.cols == w.cols());
    const ExpertGroups by_expert = group_by_expert(choice, w.experts());
    for (const ExpertGroups::Group& g : by_expert.groups) {
        const std::int32_t* slots = by_expert.order.data() + g.first;
        if (g.count == 1) {
            Tensor in = x, to = out;
            in.data = x.f32() + slots[0] / choice.per_row * x.row_stride;
            to.data = out.f32() + slots[0] * out.row_stride;
            in.rows = to.rows = 1;
            linear(in, w.expert(g.expert), epilogue, to);
            continue;
        }
        const Tensor in{expert_in_.get<float>(std::size_t(g.count * x.cols)), DType::f32, g.count, x.cols,
                        x.cols};
        const Tensor to{expert_out_.get<float>(std::size_t(g.count * out.cols)), DType::f32, g.count,
                        out.cols, out.cols};
        pool_.parallel_for(g.count, 8, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                std::memcpy(in.f32() + i * in.row_stride, x.f32() + slots[i] / choice.per_row * x.row_stride,
                            std::size_t(x.cols) * sizeof(float));
        });
        linear(in, w.expert(g.expert), epilogue, to);
        pool_.parallel_for(g.count, 8, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                std::memcpy(out.f32() + slots[i] * out.row_stride, to.f32() + i * to.row_stride,
                            std::size_t(out.cols) * sizeof(float));
        });
    }
}

void CpuBackend::expert_down(Tensor x, const ExpertChoice& choice, const PackedExperts& weight, Tensor out) {
    const auto& w = static_cast<const CpuExperts&>(weight);
    assert(out.rows == choice.rows && x.rows == out.rows * choice.per_row && x.cols == w.cols());
    const ExpertGroups by_expert = group_by_expert(choice, w.experts());
    // Experts ascend, and with them the slots of a row.
    for (const ExpertGroups::Group& g : by_expert.groups) {
        const std::int32_t* slots = by_expert.order.data() + g.first;
        const Tensor in{expert_in_.get<float>(std::size_t(g.count * x.cols)), DType::f32, g.count, x.cols,
                        x.cols};
        const Tensor to{expert_out_.get<float>(std::size_t(g.count * out.cols)), DType::f32, g.count,
                        out.cols, out.cols};
        pool_.parallel_for(g.count, 8, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                std::memcpy(in.f32() + i * in.row_stride, x.f32() + slots[i] * x.row_stride,
                            std::size_t(x.cols) * sizeof(float));
        });
        linear(in, w.expert(g.expert), Epilogue::store, to);
        pool_.parallel_for(g.count, 8, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                float* sum = out.f32() + slots[i] / choice.per_row * out.row_stride;
                const float* one = to.f32() + i * to.row_stride;
                const float share = choice.weights[slots[i]];
                for (std::int64_t c = 0; c < out.cols; ++c)
                    sum[c] += share * one[c];
            }
        });
    }
}

}  // namespace recto::cpu
