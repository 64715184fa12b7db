// Products with 16-bit activations, judged by the reference in double precision.
#include <algorithm>
#include <cmath>

#include "kernels/check_16.h"
#include "kernels/reference.h"

namespace recto {
namespace {

// Rounding of a weight to the type: of scale · q once or twice, of an offset once more, and an offset may be
// many times the weight. `unit` is half the distance of neighbours at 1.
double tolerance_of(const LinearCase& c, double unit, double magnitude, double value, bool wide_out) {
    bool offsets = false;
    for (const SyntheticSpec& p : c.parts)
        offsets = offsets || (p.form.grouped && p.form.offset != OffsetForm::none &&
                              p.form.offset != OffsetForm::zero_point);
    const double weights = unit * (offsets ? 8 : 2) * magnitude;
    return weights + (wide_out ? 0 : unit * std::fabs(value)) + 0x1p-20 * magnitude + 1e-6;
}

double error_of(Backend& backend, const LinearCase& c, DType dtype, std::int64_t rows) {
    const CaseWeights w(c);
    LinearInput in = linear_input(c, rows);
    for (float& v : in.x)
        v = as_stored(v, dtype);
    const std::vector<float> out = run_linear_16(backend, c, w, Activations::floating, dtype, in, rows);
    const bool wide = c.epilogue == Epilogue::add;
    const auto expected =
        reference::linear(in.x.data(), rows, w.parts, Activations::floating, c.epilogue, in.before.data());
    const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double error = std::fabs(double(out[i]) - expected.out[i]);
        const double allowed = tolerance_of(c, unit, expected.magnitude[i], expected.out[i], wide);
        worst = std::isfinite(error) ? std::fmax(worst, error / allowed) : HUGE_VAL;
    }
    return worst;
}

// Shapes that fill several blocks, groups and pieces of a card's kernels.
std::vector<LinearCase> wide_cases() {
    const WeightForm awq =
        grouped_form(QuantInt::u4, 128, ScaleForm::f16, OffsetForm::zero_point, "AWQ g128");
    const WeightForm q4_k =
        grouped_form(QuantInt::u4, 32, ScaleForm::f16_times_u6, OffsetForm::f16_times_u6, "Q4_K");
    const WeightForm q8_0 = grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0");
    std::vector<LinearCase> cases;
    const auto one = [&](const char* name, std::vector<SyntheticSpec> parts, Epilogue e) {
        cases.push_back({name, std::move(parts), Activations::floating, e});
    };
    std::uint64_t seed = 700;
    for (const WeightForm& f : {awq, q4_k, q8_0, dense_form(DType::f16), dense_form(DType::bf16)}) {
        const std::string name = f.source_name;
        const auto spec = [&](std::int64_t rows, std::int64_t cols, bool bias) {
            return SyntheticSpec{rows, cols, f, seed++, bias, false};
        };
        one((name + " q|k|v 640+128+128 x 1536").c_str(),
            {spec(640, 1536, true), spec(128, 1536, true), spec(128, 1536, true)}, Epilogue::store);
        one((name + " 768x2816 add").c_str(), {spec(768, 2816, false)}, Epilogue::add);
        one((name + " silu 2x1120 x 768").c_str(), {spec(1120, 768, false), spec(1120, 768, false)},
            Epilogue::silu_mul);
    }
    return cases;
}

}  // namespace

void check_linear_16(Backend& backend, DType dtype, const CaseReport& report) {
    const auto one = [&](const LinearCase& c, std::int64_t rows) {
        const std::string name =
            "linear " + c.name + ", " + dtype_name(dtype) + ", rows " + std::to_string(rows);
        if (report.wanted(name)) report.result(name, error_of(backend, c, dtype, rows));
    };
    for (LinearCase c : linear_cases()) {
        if (c.mode != Activations::floating && c.parts[0].form.grouped) continue;  // once for each weight
        for (const std::int64_t rows : {1, 5, 33, 70})
            one(c, rows);
    }
    for (const LinearCase& c : wide_cases())
        for (const std::int64_t rows : {1, 8, 11, 30, 64, 100, 150, 190, 220, 250, 300})
            one(c, rows);
}

}  // namespace recto
