// Products of many rows with 8-bit operands on a card. The reference rounds rows and weights as
// kernels/cuda/eight_bit.h says, by the conversions of kernels/dtype.h, and sums in double.
#include <algorithm>
#include <cmath>

#include "kernels/check_16.h"

namespace recto {
namespace {

double gate(double x, Epilogue kind) {
    if (kind == Epilogue::silu_mul) return x / (1.0 + std::exp(-x));
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

struct EightRow {
    std::vector<double> values;  // e4m3 or integers
    double scale = 0;
};

float scale_of(float largest, bool fp8) {
    return largest / (fp8 ? 448.0F : 127.0F);
}
double rounded(float v, bool fp8) {
    return fp8 ? double(e4m3_to_f32(f32_to_e4m3(v))) : std::nearbyint(double(v));
}

EightRow eight_row(const float* x, std::int64_t n, bool fp8) {
    EightRow r;
    float largest = 0;
    for (std::int64_t k = 0; k < n; ++k)
        largest = std::fmax(largest, std::fabs(x[k]));
    const float scale = scale_of(largest, fp8), inverse = 1.0F / scale;
    for (std::int64_t k = 0; k < n; ++k)
        r.values.push_back(rounded(x[k] * inverse, fp8));
    r.scale = double(scale);
    return r;
}

// Of planes as a card's tiles hold them: scales and offsets in 16 bits, zero points apart.
EightRow eight_weight(const WeightRows& w, std::int64_t row, DType activation, bool fp8) {
    const WeightForm& f = w.form();
    const std::int64_t cols = w.cols(), groups = cols / f.group_size;
    std::vector<std::uint8_t> q(static_cast<std::size_t>(cols)), zero(static_cast<std::size_t>(groups));
    std::vector<float> scale(static_cast<std::size_t>(groups)), offset(static_cast<std::size_t>(groups));
    WeightPlanes planes;
    planes.q = q.data();
    planes.scale = scale.data();
    planes.offset = offset.data();
    const bool points = f.offset == OffsetForm::zero_point;
    if (points) planes.zero_point = zero.data();
    w.read(row, 1, planes);
    const DType held = activation == DType::bf16 && f.scale == ScaleForm::bf16 ? DType::bf16 : DType::f16;
    for (std::size_t g = 0; g < scale.size(); ++g) {
        scale[g] = as_stored(scale[g], held);
        offset[g] = points || f.offset == OffsetForm::none ? 0.0F : as_stored(offset[g], held);
    }
    const auto integer = [&](std::int64_t k) {
        const std::uint8_t bits = q[std::size_t(k)];
        const int value = f.integer == QuantInt::i8 ? int(std::int8_t(bits)) : int(bits);
        return float(value - (points ? int(zero[std::size_t(k / f.group_size)]) : 0));
    };
    float largest = 0;
    for (std::int64_t k = 0; k < cols; ++k) {
        const auto g = std::size_t(k / f.group_size);
        largest = std::fmax(largest, std::fabs(std::fmaf(integer(k), scale[g], offset[g])));
    }
    EightRow r;
    const float row_scale = scale_of(largest, fp8), inverse = 1.0F / row_scale;
    for (std::int64_t k = 0; k < cols; ++k) {
        const auto g = std::size_t(k / f.group_size);
        r.values.push_back(rounded(std::fmaf(integer(k), scale[g] * inverse, offset[g] * inverse), fp8));
    }
    r.scale = double(row_scale);
    return r;
}

struct Sum {
    double value = 0, allowed = 0;
};

// One output, and how far a card's may be off. int8 sums are exact; what follows rounds three times in FP32.
// Hopper's tensor cores align 32 FP8 products and the sum so far to the largest and keep 13 bits behind its
// first ("14 bits": DeepSeek-V3 technical report (2024), §3.5.2): the sum loses up to 2^-13 of itself every
// 32 inputs, always downwards, and each product up to 2^-13 of it, either way; of those four standard
// deviations are allowed. The largest partial sum is taken twice, as the card's order within 64 inputs is
// another one.
Sum dot(const EightRow& x, const EightRow& w, double bias, bool fp8) {
    double sum = 0, largest = 0;
    for (std::size_t k = 0; k < x.values.size(); ++k) {
        sum += x.values[k] * w.values[k];
        largest = std::fmax(largest, std::fabs(sum));
    }
    const double scale = x.scale * w.scale, n = double(x.values.size());
    Sum s;
    s.value = sum * scale + bias;
    s.allowed = 0x1p-22 * std::fabs(sum * scale) + 0x1p-23 * std::fabs(s.value);
    if (fp8) s.allowed += 2 * largest * scale * 0x1p-13 * (n / 32 + 4 * std::sqrt(n));
    return s;
}

double error_of(Backend& backend, const LinearCase& c, DType dtype, std::int64_t rows) {
    const CaseWeights w(c);
    const std::int64_t cols = c.parts[0].cols, outputs = case_outputs(c);
    LinearInput in = linear_input(c, rows);
    for (std::size_t i = 0; i < in.x.size(); ++i) {
        // Rows of unlike sizes: a scale that is another row's shows.
        const float size = std::ldexp(1.0F, int(i / std::size_t(cols) % 7) - 4);
        in.x[i] = as_stored(in.x[i] * size, dtype);
    }
    const bool wide = c.epilogue == Epilogue::add;
    const std::vector<float> out = run_linear_16(backend, c, w, c.mode, dtype, in, rows);
    if (!std::ranges::all_of(out, [](float v) { return std::isfinite(v); })) return HUGE_VAL;

    const bool fp8 = c.mode == Activations::token_fp8;
    std::vector<EightRow> weights;
    std::vector<double> bias;
    for (const WeightRows* part : w.parts)
        for (std::int64_t r = 0; r < part->rows(); ++r) {
            weights.push_back(eight_weight(*part, r, dtype, fp8));
            bias.push_back(part->bias().empty() ? 0.0 : double(part->bias()[std::size_t(r)]));
        }
    const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
    const auto order = w.parts[0]->input_permutation();
    std::vector<float> row(static_cast<std::size_t>(cols));
    double worst = 0;
    // Every 13th row and the last: all outputs of all rows would take the processor minutes.
    for (std::int64_t r = 0; r < rows; r = r == rows - 1 ? rows : std::min(r + 13, rows - 1)) {
        for (std::int64_t k = 0; k < cols; ++k)
            row[std::size_t(k)] = in.x[std::size_t(r * cols + (order.empty() ? k : order[std::size_t(k)]))];
        const EightRow x8 = eight_row(row.data(), cols, fp8);
        for (std::int64_t o = 0; o < outputs; ++o) {
            const auto at = std::size_t(r * outputs + o);
            Sum s = dot(x8, weights[std::size_t(o)], bias[std::size_t(o)], fp8);
            // Sums and biased sums are rounded to the type; of gated ones each factor is.
            const auto round_off = [&](const Sum& v) {
                return v.allowed + 2 * unit * (std::fabs(v.value) + std::fabs(bias[std::size_t(o)]));
            };
            if (gated(c)) {
                const auto u = std::size_t(o + outputs);
                const Sum up = dot(x8, weights[u], bias[u], fp8);
                const double g = gate(s.value, c.epilogue),
                             g_off = 1.13 * round_off(s);  // the gates' steepest slope
                const double u_off = up.allowed + 2 * unit * (std::fabs(up.value) + std::fabs(bias[u]));
                s.allowed = std::fabs(g) * u_off + g_off * (std::fabs(up.value) + u_off) +
                            unit * std::fabs(g * up.value);
                s.value = g * up.value;
            } else if (wide) {
                const double before = double(in.before[at]);
                s.allowed += 0x1p-22 * (std::fabs(before) + std::fabs(s.value));
                s.value += before;
            } else {
                s.allowed = round_off(s);
            }
            worst = std::fmax(worst, std::fabs(double(out[at]) - s.value) / (s.allowed + 1e-7));
        }
    }
    return worst;
}

std::vector<LinearCase> eight_bit_cases() {
    const auto zero_point = OffsetForm::zero_point;
    const WeightForm awq = grouped_form(QuantInt::u4, 128, ScaleForm::f16, zero_point, "AWQ g128");
    const WeightForm q4_k =
        grouped_form(QuantInt::u4, 32, ScaleForm::f16_times_u6, OffsetForm::f16_times_u6, "Q4_K");
    const WeightForm q8_0 = grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0");
    const WeightForm q6_k = grouped_form(QuantInt::i8, 16, ScaleForm::f16_times_i8, OffsetForm::none, "Q6_K");
    const WeightForm gptq8 = grouped_form(QuantInt::u8, 64, ScaleForm::f16, zero_point, "GPTQ 8 bit g64");
    const WeightForm compressed = grouped_form(QuantInt::u4, 32, ScaleForm::bf16, zero_point, "BF16 scales");
    std::vector<LinearCase> cases;
    const auto one = [&](const std::string& name, std::vector<SyntheticSpec> parts, Epilogue e) {
        cases.push_back({name, std::move(parts), Activations::token_fp8, e});
    };
    std::uint64_t seed = 900;
    const auto spec = [&](std::int64_t rows, std::int64_t cols, const WeightForm& f, bool bias = false,
                          bool permuted = false) {
        return SyntheticSpec{rows, cols, f, seed++, bias, permuted};
    };
    for (const WeightForm& f : {awq, q4_k, q8_0}) {
        const std::string name = f.source_name;
        one(name + " q|k|v 640+128+128 x 1536",
            {spec(640, 1536, f, true), spec(128, 1536, f, true), spec(128, 1536, f, true)}, Epilogue::store);
        one(name + " 768x2816 add", {spec(768, 2816, f)}, Epilogue::add);
        one(name + " silu 2x1120 x 768", {spec(1120, 768, f), spec(1120, 768, f)}, Epilogue::silu_mul);
    }
    // Outputs that are no multiple of 16, halves that end inside a group of rows, padded inputs, unlike
    // parts.
    one("AWQ g128 gelu 2x1000 x 640", {spec(2000, 640, awq, true)}, Epilogue::gelu_mul);
    one("Q8_0 silu 2x43 x 96", {spec(43, 96, q8_0), spec(43, 96, q8_0)}, Epilogue::silu_mul);
    one("Q6_K 203x768 add, bias", {spec(203, 768, q6_k, true)}, Epilogue::add);
    one("GPTQ 8 bit g64 176x192 act-order", {spec(176, 192, gptq8, false, true)}, Epilogue::store);
    one("BF16 scales 80x288", {spec(80, 288, compressed)}, Epilogue::store);
    one("whole row 72x200",
        {spec(72, 200, grouped_form(QuantInt::u4, 200, ScaleForm::f16, zero_point, "whole row"))},
        Epilogue::store);
    one("q|k|v Q4_K|Q6_K 192+64+64 x 512", {spec(192, 512, q4_k), spec(64, 512, q4_k), spec(64, 512, q6_k)},
        Epilogue::store);
    // More than one slice of the transient copy: 8,192 outputs of 4,096 inputs.
    one("Q4_K 9232x4096, two slices", {spec(9232, 4096, q4_k)}, Epilogue::store);
    return cases;
}

}  // namespace

void check_activations_8(Backend& backend, DType dtype, const CaseReport& report) {
    const DeviceInfo device = backend.device();
    if (device.kind == "cpu" || !device.eight_bit) return;
    for (const Activations mode : {Activations::token_fp8, Activations::token_int8}) {
        if (mode == Activations::token_fp8 && *device.eight_bit != mode) continue;
        for (LinearCase c : eight_bit_cases()) {
            c.mode = mode;
            const bool large = c.parts[0].rows > 4096;
            for (const std::int64_t rows : {300, 1000}) {
                if (large && rows > 300) continue;
                const std::string name = std::string("8-bit ") +
                                         (mode == Activations::token_fp8 ? "FP8 " : "int8 ") + c.name + ", " +
                                         dtype_name(dtype) + ", rows " + std::to_string(rows);
                if (report.wanted(name)) report.result(name, error_of(backend, c, dtype, rows));
            }
        }
    }
}

}  // namespace recto
