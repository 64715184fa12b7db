#include "kernels/cuda/tiled_weight.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/repack.h"

namespace recto::cuda {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

TileKind kind_of(const WeightForm& f) {
    if (!f.grouped) return TileKind::dense;
    return f.integer == QuantInt::u4 ? TileKind::u4 : TileKind::u8;
}

SecondPlane mode_of(const WeightForm& f) {
    switch (f.offset) {
        case OffsetForm::none:
            return SecondPlane::none;
        case OffsetForm::zero_point:
            return f.constant_zero >= 0 ? SecondPlane::none : SecondPlane::zero_u8;
        default:
            return SecondPlane::offset_16;
    }
}

int zero_of(const WeightForm& f) {
    const int biased = f.integer == QuantInt::i8 ? 128 : 0;  // the tiles hold signed integers biased
    return biased + (f.offset == OffsetForm::zero_point && f.constant_zero >= 0 ? f.constant_zero : 0);
}

bool equal(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    return std::ranges::equal(a, b);
}

// Two parts can share tiles.
bool alike(const WeightRows& a, const WeightRows& b, DType activation) {
    const WeightForm &f = a.form(), &g = b.form();
    if (kind_of(f) != kind_of(g) || !equal(a.input_permutation(), b.input_permutation())) return false;
    if (!f.grouped) return true;
    const bool bf16 = activation == DType::bf16;
    return f.group_size == g.group_size && mode_of(f) == mode_of(g) && zero_of(f) == zero_of(g) &&
           (!bf16 || (f.scale == ScaleForm::bf16) == (g.scale == ScaleForm::bf16));
}

// Dense rows in another 16-bit type, rounded once: FP32 files, and the odd FP16 tensor of a BF16 model.
class NarrowedRows final : public WeightRows {
  public:
    NarrowedRows(const WeightRows& rows, DType dtype) : rows_(rows), form_(rows.form()) {
        form_.dense = dtype;
    }
    std::int64_t rows() const override { return rows_.rows(); }
    std::int64_t cols() const override { return rows_.cols(); }
    const WeightForm& form() const override { return form_; }
    void read(std::int64_t, std::int64_t, const WeightPlanes&) const override { assert(false); }
    void read_f32(std::int64_t first, std::int64_t n, float* out) const override {
        rows_.read_f32(first, n, out);
    }
    void read_dense(std::int64_t first, std::int64_t n, void* out) const override {
        std::vector<float> wide(std::size_t(n * cols()));
        rows_.read_f32(first, n, wide.data());
        auto* to = static_cast<std::uint16_t*>(out);
        for (std::size_t i = 0; i < wide.size(); ++i)
            to[i] = narrow_16(wide[i], form_.dense);
    }

  private:
    const WeightRows& rows_;
    WeightForm form_;
};

struct Layout {
    std::size_t used = 0;
    std::size_t take(std::size_t bytes) {
        const std::size_t at = used;
        used += (bytes + 255) / 256 * 256;
        return at;
    }
};

}  // namespace

// One segment before its memory exists.
struct TiledWeight::Plan {
    std::vector<const WeightRows*> parts;
    Segment segment;
    std::size_t data = 0, scale = 0, second = 0, row_scale = 0, bias = 0, order = 0;
};

bool TiledWeight::suits(std::span<const WeightRows* const> parts, const PackOptions& options) {
    if (options.activation != DType::f16 && options.activation != DType::bf16) return false;
    return std::ranges::all_of(parts, [](const WeightRows* p) {
        const WeightForm& f = p->form();
        if (p->cols() % 8 != 0) return false;  // rows of x are copied in units of 16 bytes
        if (!f.grouped) return true;
        const int g = f.group_size;
        const bool group = g == 16 || g == 32 || g == 64 || g % chunk_k == 0 || g >= p->cols();
        return group && p->cols() % g == 0;
    });
}

TiledWeight::TiledWeight(WeightLoader& loader, std::span<const WeightRows* const> parts,
                         const PackOptions& options)
    : cols_(parts[0]->cols()), activation_(options.activation), gated_(options.gated) {
    interleaved_ =
        options.gated && parts.size() <= 2 && (parts.size() == 1 || alike(*parts[0], *parts[1], activation_));
    std::vector<Plan> plans;
    for (const WeightRows* part : parts) {
        assert(part->cols() == cols_);
        const bool dense = !part->form().grouped;
        const bool joins = !plans.empty() && alike(*plans.back().parts[0], *part, activation_) &&
                           (interleaved_ || dense || plans.back().parts.back()->rows() % block_rows == 0);
        if (!joins) {
            plans.emplace_back();
            plans.back().segment.first_output = int(rows_);
        }
        plans.back().parts.push_back(part);
        rows_ += part->rows();
    }
    Layout layout;
    for (Plan& plan : plans) {
        const WeightRows& first = *plan.parts[0];
        const WeightForm& f = first.form();
        TileWeight& t = plan.segment.tile;
        t.kind = kind_of(f);
        t.dtype = activation_;
        t.gated = interleaved_;
        for (const WeightRows* p : plan.parts)
            t.rows += int(p->rows());
        t.outputs = interleaved_ ? t.rows / 2 : t.rows;
        t.cols = int(cols_);
        t.blocks = int(ceil_div(t.outputs, interleaved_ ? block_rows / 2 : block_rows));
        t.chunks = int(ceil_div(cols_, chunk_k));
        if (t.kind == TileKind::dense) {
            plan.data = layout.take(std::size_t(t.rows) * std::size_t(cols_) * 2);
        } else {
            t.group_size = f.group_size;
            if (t.group_size >= cols_) t.group_size = t.chunks * chunk_k;  // one group for the padding too
            t.groups = int(ceil_div(std::int64_t(t.chunks) * chunk_k, t.group_size));
            t.mode = mode_of(f);
            t.zero = zero_of(f);
            t.planes_bf16 = activation_ == DType::bf16 && f.scale == ScaleForm::bf16;
            const std::size_t cells = std::size_t(t.blocks) * block_rows * std::size_t(t.chunks) * chunk_k;
            const std::size_t values = std::size_t(t.blocks) * block_rows * std::size_t(t.groups);
            plan.data = layout.take(t.kind == TileKind::u4 ? cells / 2 : cells);
            plan.scale = layout.take(values * 2);
            if (t.mode != SecondPlane::none)
                plan.second = layout.take(values * (t.mode == SecondPlane::zero_u8 ? 1 : 2));
            t.eight = eight_bit_type(options.mode);
            if (t.eight != DType::f32) plan.row_scale = layout.take(std::size_t(t.rows) * sizeof(float));
        }
        if (std::ranges::any_of(plan.parts, [](const WeightRows* p) { return !p->bias().empty(); }))
            plan.bias = layout.take(std::size_t(t.rows) * sizeof(float));
        if (!first.input_permutation().empty()) {
            plan.order = layout.take(std::size_t(cols_) * sizeof(std::int32_t));
            permuted_ = true;
        }
    }
    memory_ = loader.allocate(layout.used);
    load(loader, plans);
    loader.seal(*memory_);
    const WeightForm& f = parts[0]->form();
    name_ =
        std::string(f.source_name) +
        (f.grouped ? (kind_of(f) == TileKind::u4 ? ", 4-bit tiles" : ", 8-bit tiles") : "") + ", " +
        dtype_name(activation_) + " activations" +
        (f.grouped && eight_bit_type(options.mode) != DType::f32 ? " (" + activations_name(options.mode) + ")"
                                                                 : "") +
        ", tensor cores";
}

void TiledWeight::load(WeightLoader& loader, const std::vector<Plan>& plans) {
    for (const Plan& plan : plans) {
        Segment s = plan.segment;
        TileWeight& t = s.tile;
        t.data = memory_->at(plan.data);
        const bool bias =
            std::ranges::any_of(plan.parts, [](const WeightRows* p) { return !p->bias().empty(); });
        if (bias) s.bias = reinterpret_cast<const float*>(memory_->at(plan.bias));
        const auto order = plan.parts[0]->input_permutation();
        if (!order.empty()) {
            loader.put(order.data(), order.size_bytes(), memory_->at(plan.order));
            s.order = reinterpret_cast<const std::int32_t*>(memory_->at(plan.order));
        }
        TilePlanes planes{memory_->at(plan.data), nullptr, nullptr};
        if (t.kind != TileKind::dense) {
            planes.scale = reinterpret_cast<std::uint16_t*>(memory_->at(plan.scale));
            planes.second = t.mode == SecondPlane::none ? nullptr : memory_->at(plan.second);
            t.scale = planes.scale;
            t.second = planes.second;
            if (t.eight != DType::f32)
                t.row_scale = reinterpret_cast<const float*>(memory_->at(plan.row_scale));
        }
        std::size_t row = 0;
        int block = 0;
        for (std::size_t i = 0; i < plan.parts.size(); ++i) {
            const WeightRows& part = *plan.parts[i];
            const auto n = std::size_t(part.rows());
            if (bias) {
                std::vector<float> values(part.bias().begin(), part.bias().end());
                values.resize(n);
                loader.put(values.data(), n * sizeof(float), memory_->at(plan.bias + row * sizeof(float)));
            }
            if (t.kind == TileKind::dense) {
                std::byte* to = memory_->at(plan.data + row * std::size_t(cols_) * 2);
                if (part.form().dense == activation_)
                    loader.load_dense(part, to);
                else
                    loader.load_dense(NarrowedRows(part, activation_), to);
            } else {
                const BlockHalf half = !interleaved_            ? BlockHalf::whole
                                       : plan.parts.size() == 1 ? BlockHalf::both
                                       : i == 0                 ? BlockHalf::gate
                                                                : BlockHalf::up;
                const bool last = i + 1 == plan.parts.size();  // all of the segment lies in its tiles then
                loader.load_grouped(
                    part, [t, planes, block, half, last](const LogicalPlanes& p, cudaStream_t stream) {
                        repack(stream, p, t, planes, block, half);
                        if (last && t.eight != DType::f32) find_row_scales(stream, t);
                    });
                if (half == BlockHalf::whole) block += int(ceil_div(part.rows(), block_rows));
            }
            row += n;
        }
        segments_.push_back(s);
    }
}

}  // namespace recto::cuda
