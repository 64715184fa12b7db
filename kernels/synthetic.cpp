#include "kernels/synthetic.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace recto {

namespace {

// SplitMix64 (Steele, Lea & Flood 2014) over a counter: any element on its own.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

float unit(std::uint64_t bits) {
    return float(bits >> 40) * 0x1p-24F;
}  // [0, 1)

enum class Plane : std::uint64_t { q, scale, factor, offset, offset_factor, bias, order };

class SyntheticRows final : public WeightRows {
  public:
    explicit SyntheticRows(const SyntheticSpec& spec) : spec_(spec) {
        if (spec.bias) {
            for (std::int64_t r = 0; r < spec.rows; ++r)
                bias_.push_back(unit(draw(Plane::bias, r, 0)) - 0.5F);
        }
        if (spec.permuted) {
            for (std::int64_t k = 0; k < spec.cols; ++k)
                order_.push_back(std::int32_t(k));
            for (std::int64_t k = spec.cols - 1; k > 0; --k) {
                std::swap(order_[std::size_t(k)], order_[draw(Plane::order, 0, k) % std::uint64_t(k + 1)]);
            }
        }
    }
    std::int64_t rows() const override { return spec_.rows; }
    std::int64_t cols() const override { return spec_.cols; }
    const WeightForm& form() const override { return spec_.form; }
    std::span<const std::int32_t> input_permutation() const override { return order_; }
    std::span<const float> bias() const override { return bias_; }

    void read(std::int64_t first, std::int64_t n, const WeightPlanes& out) const override {
        assert(spec_.form.grouped);
        const std::int64_t groups = spec_.cols / spec_.form.group_size;
        const std::int64_t supers = (spec_.cols + super_group - 1) / super_group;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t r = first + i;
            if (out.q != nullptr) {
                for (std::int64_t k = 0; k < spec_.cols; ++k)
                    out.q[i * spec_.cols + k] = q(r, k);
            }
            for (std::int64_t g = 0; g < groups; ++g) {
                const std::int64_t at = i * groups + g;
                if (out.scale != nullptr) out.scale[at] = scale(r, g);
                if (out.offset != nullptr) out.offset[at] = offset(r, g);
                if (out.zero_point != nullptr) out.zero_point[at] = zero_point(r, g);
                if (out.scale_factor != nullptr) out.scale_factor[at] = factor(r, g);
                if (out.offset_factor != nullptr) out.offset_factor[at] = offset_factor(r, g);
            }
            for (std::int64_t s = 0; s < supers; ++s) {
                if (out.super_scale != nullptr) out.super_scale[i * supers + s] = super_scale(r, s);
                if (out.super_offset != nullptr) out.super_offset[i * supers + s] = super_offset(r, s);
            }
        }
    }

    void read_f32(std::int64_t first, std::int64_t n, float* out) const override {
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t k = 0; k < spec_.cols; ++k)
                out[i * spec_.cols + k] = value(first + i, k);
        }
    }

    void read_dense(std::int64_t first, std::int64_t n, void* out) const override {
        assert(!spec_.form.grouped);
        for (std::int64_t i = 0; i < n * spec_.cols; ++i) {
            const float v = value(first + i / spec_.cols, i % spec_.cols);
            if (spec_.form.dense == DType::f32)
                static_cast<float*>(out)[i] = v;
            else
                static_cast<std::uint16_t*>(out)[i] = narrow_16(v, spec_.form.dense);
        }
    }

  private:
    std::uint64_t draw(Plane plane, std::int64_t r, std::int64_t i) const {
        return mix(mix(mix(spec_.seed * 16 + std::uint64_t(plane)) + std::uint64_t(r)) + std::uint64_t(i));
    }
    std::uint8_t q(std::int64_t r, std::int64_t k) const {
        const std::uint64_t bits = draw(Plane::q, r, k) >> 32;
        return std::uint8_t(spec_.form.integer == QuantInt::u4 ? bits & 15 : bits & 255);
    }
    int signed_q(std::int64_t r, std::int64_t k) const {
        return spec_.form.integer == QuantInt::i8 ? int(std::int8_t(q(r, k))) : int(q(r, k));
    }
    // Such that weights are about 0.05.
    float base_scale() const { return spec_.form.integer == QuantInt::u4 ? 0.01F : 0.0006F; }
    std::uint16_t super_scale(std::int64_t r, std::int64_t s) const {
        return f32_to_f16(base_scale() / 32.0F * (0.5F + unit(draw(Plane::scale, r, s))));
    }
    std::int8_t factor(std::int64_t r, std::int64_t g) const {
        const std::uint64_t bits = draw(Plane::factor, r, g) >> 32;
        return spec_.form.scale == ScaleForm::f16_times_u6 ? std::int8_t(bits & 63) : std::int8_t(bits & 255);
    }
    float scale(std::int64_t r, std::int64_t g) const {
        if (spec_.form.scale == ScaleForm::f16_times_u6 || spec_.form.scale == ScaleForm::f16_times_i8) {
            return f16_to_f32(super_scale(r, g * spec_.form.group_size / super_group)) * float(factor(r, g));
        }
        const float s = base_scale() * (0.5F + unit(draw(Plane::scale, r, g)));
        if (spec_.form.scale == ScaleForm::f16) return as_stored(s, DType::f16);
        if (spec_.form.scale == ScaleForm::bf16) return as_stored(s, DType::bf16);
        return s;
    }
    std::uint8_t zero_point(std::int64_t r, std::int64_t g) const {
        const std::uint64_t bits = draw(Plane::offset, r, g) >> 32;
        return std::uint8_t(spec_.form.integer == QuantInt::u4 ? bits & 15 : bits & 255);
    }
    std::uint16_t super_offset(std::int64_t r, std::int64_t s) const {
        return f32_to_f16(0.002F * (0.5F + unit(draw(Plane::offset, r, s))));
    }
    std::uint8_t offset_factor(std::int64_t r, std::int64_t g) const {
        return std::uint8_t((draw(Plane::offset_factor, r, g) >> 32) & 63);
    }
    float offset(std::int64_t r, std::int64_t g) const {
        switch (spec_.form.offset) {
            case OffsetForm::none:
                return 0.0F;
            case OffsetForm::zero_point:
                return -scale(r, g) * float(zero_point(r, g));
            case OffsetForm::f16_times_u6:
                return -f16_to_f32(super_offset(r, g * spec_.form.group_size / super_group)) *
                       float(offset_factor(r, g));
            case OffsetForm::f16:
            case OffsetForm::f32:
                break;
        }
        const float m = -0.1F * unit(draw(Plane::offset, r, g));
        return spec_.form.offset == OffsetForm::f16 ? as_stored(m, DType::f16) : m;
    }
    float value(std::int64_t r, std::int64_t k) const {
        if (spec_.form.grouped) {
            const std::int64_t g = k / spec_.form.group_size;
            const float product = scale(r, g) * float(signed_q(r, k));
            return product + offset(r, g);
        }
        return as_stored((unit(draw(Plane::q, r, k)) - 0.5F) * 0.1F, spec_.form.dense);
    }

    SyntheticSpec spec_;
    std::vector<float> bias_;
    std::vector<std::int32_t> order_;
};

}  // namespace

std::unique_ptr<WeightRows> make_synthetic(const SyntheticSpec& spec) {
    return std::make_unique<SyntheticRows>(spec);
}

std::vector<float> random_floats(std::size_t n, float amplitude, std::uint64_t seed) {
    std::vector<float> v(n);
    for (std::size_t i = 0; i < n; ++i)
        v[i] = (2.0F * unit(mix(mix(seed) + i)) - 1.0F) * amplitude;
    return v;
}

WeightForm dense_form(DType dtype) {
    WeightForm f;
    f.dense = dtype;
    f.source_name = dtype == DType::f32 ? "F32" : dtype == DType::f16 ? "F16" : "BF16";
    f.bits_per_weight = double(dtype_bytes(dtype)) * 8;
    return f;
}

WeightForm grouped_form(QuantInt integer, int group_size, ScaleForm scale, OffsetForm offset,
                        const char* name) {
    WeightForm f;
    f.grouped = true;
    f.integer = integer;
    f.group_size = group_size;
    f.scale = scale;
    f.offset = offset;
    f.source_name = name;
    return f;
}

}  // namespace recto
