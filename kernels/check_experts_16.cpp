// Mixtures of experts with 16-bit activations, judged stage by stage by the reference in double precision.
#include <algorithm>
#include <cmath>

#include "kernels/check_16.h"
#include "kernels/reference.h"

namespace recto {
namespace {

using Rows = std::vector<const WeightRows*>;

struct Expert {
    std::vector<std::unique_ptr<WeightRows>> owned;
    Rows gate_up, down;
    Expert(const ExpertCase& c, int e) {
        const auto make = [&](SyntheticSpec s) {
            s.seed += std::uint64_t(10000 * e);
            owned.push_back(make_synthetic(s));
            return owned.back().get();
        };
        for (const SyntheticSpec& s : c.gate_up)
            gate_up.push_back(make(s));
        down.push_back(make(c.down));
    }
};

// Half the distance of neighbours at 1.
double unit_of(DType d) {
    return d == DType::f16 ? 0x1p-11 : 0x1p-8;
}

// What one product may be off by: a weight is rounded to the type, once or twice as scale · q and once more
// with an offset, which may be many times the weight; its FP32 sums add 2^-20 of the terms. A gated product
// of unlike parts rounds both before the gate, which the bound of the terms covers.
double product_tolerance(const Rows& parts, double unit, double magnitude) {
    const bool offsets = std::ranges::any_of(parts, [](const WeightRows* p) {
        const WeightForm& f = p->form();
        return f.grouped && f.offset != OffsetForm::none && f.offset != OffsetForm::zero_point;
    });
    return unit * (offsets ? 8 : 2) * magnitude + 0x1p-20 * magnitude + 1e-6;
}

struct Mixture {
    Backend& backend;
    const ExpertCase& c;
    DType dtype;
    std::int64_t rows;
    ExpertInput in;
    ExpertOutput out;
    std::vector<Expert> experts;

    Mixture(Backend& b, const ExpertCase& which, DType d, std::int64_t n)
        : backend(b), c(which), dtype(d), rows(n) {
        in = expert_input(c, rows);
        for (int e = 0; e < c.experts; ++e)
            experts.emplace_back(c, e);
    }
    std::int64_t width() const { return c.down.cols; }
    std::int64_t hidden() const { return c.down.rows; }

    void run() {
        std::vector<std::unique_ptr<PackedWeight>> up, down;
        PackOptions options(Activations::floating, dtype, true);
        options.expert = true;
        for (const Expert& e : experts)
            up.push_back(backend.pack(e.gate_up, options));
        options.gated = false;
        for (const Expert& e : experts)
            down.push_back(backend.pack(e.down, options));
        const auto up_stack = backend.stack_experts(std::move(up)),
                   down_stack = backend.stack_experts(std::move(down));
        const std::int64_t slots = rows * c.per_row;
        const auto memory = [&](const void* host, std::size_t bytes) {
            auto m = backend.allocate(std::max<std::size_t>(bytes, 64));
            if (host) backend.upload(m->data(), host, bytes);
            return m;
        };
        std::vector<std::uint16_t> x(in.x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = narrow_16(in.x[i], dtype);
            in.x[i] = widen_16(x[i], dtype);
        }
        const std::vector<std::uint16_t> poison(std::size_t(slots * width()),
                                                0x7FFF);  // what is not written shows
        const auto x_memory = memory(x.data(), x.size() * 2),
                   logits = memory(in.logits.data(), in.logits.size() * 4),
                   gated = memory(poison.data(), poison.size() * 2),
                   result = memory(in.before.data(), in.before.size() * 4),
                   ids = memory(nullptr, std::size_t(slots) * 4),
                   weights = memory(nullptr, std::size_t(slots) * 4);
        const ExpertChoice choice{static_cast<std::int32_t*>(ids->data()),
                                  static_cast<float*>(weights->data()), rows, c.per_row};
        backend.route({logits->data(), DType::f32, rows, c.experts, c.experts}, c.renormalize, choice);
        const Tensor middle{gated->data(), dtype, slots, width(), width()};
        backend.expert_gate_up({x_memory->data(), dtype, rows, hidden(), hidden()}, choice, *up_stack,
                               c.epilogue, middle);
        backend.expert_down(middle, choice, *down_stack,
                            {result->data(), DType::f32, rows, hidden(), hidden()});
        out.ids.resize(std::size_t(slots));
        out.weights.resize(std::size_t(slots));
        out.out.resize(in.before.size());
        std::vector<std::uint16_t> narrow_gated(poison.size());
        backend.download(out.ids.data(), ids->data(), out.ids.size() * 4);
        backend.download(out.weights.data(), weights->data(), out.weights.size() * 4);
        backend.download(out.out.data(), result->data(), out.out.size() * 4);
        backend.download(narrow_gated.data(), gated->data(), narrow_gated.size() * 2);
        for (const std::uint16_t v : narrow_gated)
            out.gated.push_back(widen_16(v, dtype));
    }

    // Largest error of the tolerance over both products.
    double error() const {
        const double unit = unit_of(dtype);
        double worst = 0;
        const auto judge = [&](float found, double expected, double allowed) {
            const double e = std::fabs(double(found) - expected);
            worst = std::isfinite(e) ? std::fmax(worst, e / allowed) : HUGE_VAL;
        };
        std::vector<double> sum(in.before.begin(), in.before.end()), allowed(sum.size());
        for (std::size_t i = 0; i < sum.size(); ++i)
            allowed[i] = 0x1p-20 * std::fabs(sum[i]) + 1e-6;
        for (int e = 0; e < c.experts; ++e) {  // each with all of its rows, as its weights are dear to read
            std::vector<std::size_t> slots;
            std::vector<float> x, gated;
            for (std::size_t slot = 0; slot < out.ids.size(); ++slot) {
                if (out.ids[slot] != e) continue;
                slots.push_back(slot);
                const float *from = in.x.data() + std::int64_t(slot) / c.per_row * hidden(),
                            *middle = out.gated.data() + std::int64_t(slot) * width();
                x.insert(x.end(), from, from + hidden());
                gated.insert(gated.end(), middle, middle + width());
            }
            if (slots.empty()) continue;
            const Expert& w = experts[std::size_t(e)];
            const auto n = std::int64_t(slots.size());
            const auto up =
                reference::linear(x.data(), n, w.gate_up, Activations::floating, c.epilogue, nullptr);
            for (std::size_t i = 0; i < gated.size(); ++i)
                judge(gated[i], up.out[i],
                      product_tolerance(w.gate_up, unit, up.magnitude[i]) + unit * std::fabs(up.out[i]));
            const auto down =
                reference::linear(gated.data(), n, w.down, Activations::floating, Epilogue::store, nullptr);
            for (std::size_t s = 0; s < slots.size(); ++s) {
                const std::size_t row = slots[s] / std::size_t(c.per_row) * std::size_t(hidden());
                const double p = out.weights[slots[s]];
                for (std::size_t i = 0; i < std::size_t(hidden()); ++i) {
                    const std::size_t from = s * std::size_t(hidden()) + i;
                    sum[row + i] += p * down.out[from];
                    allowed[row + i] += p * product_tolerance(w.down, unit, down.magnitude[from]);
                }
            }
        }
        for (std::size_t i = 0; i < sum.size(); ++i)
            judge(out.out[i], sum[i], allowed[i]);
        // The choice itself is FP32: another check judges its weights.
        for (std::int64_t r = 0; r < rows; ++r) {
            const auto expected =
                reference::route(in.logits.data() + r * c.experts, c.experts, c.per_row, c.renormalize);
            if (!std::equal(expected.ids.begin(), expected.ids.end(), out.ids.begin() + r * c.per_row))
                return HUGE_VAL;
        }
        return worst;
    }
};

// Shapes that fill several blocks, groups and pieces of a card's kernels; gate and up of unlike forms.
std::vector<ExpertCase> wide_cases() {
    const WeightForm awq =
        grouped_form(QuantInt::u4, 128, ScaleForm::f16, OffsetForm::zero_point, "AWQ g128");
    const WeightForm q4_k =
        grouped_form(QuantInt::u4, 32, ScaleForm::f16_times_u6, OffsetForm::f16_times_u6, "Q4_K");
    const WeightForm q8_0 = grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0");
    std::vector<ExpertCase> cases;
    std::uint64_t seed = 900;
    const auto one = [&](const WeightForm& gate, const WeightForm& up, const WeightForm& down,
                         bool permuted) {
        ExpertCase c;
        c.name = std::string("2 of 5 ") + gate.source_name + "|" + up.source_name + "|" + down.source_name +
                 " 640x1536" + (permuted ? " act-order" : "");
        c.experts = 5;
        c.per_row = 2;
        c.gate_up = {{1536, 640, gate, seed, true, permuted}, {1536, 640, up, seed + 1, true, permuted}};
        c.down = {640, 1536, down, seed + 2, true, permuted};
        seed += 3;
        cases.push_back(std::move(c));
    };
    one(q4_k, q4_k, q8_0, false);
    one(q4_k, q8_0, q4_k, false);
    one(awq, awq, awq, true);
    one(dense_form(DType::bf16), dense_form(DType::bf16), dense_form(DType::bf16), false);
    return cases;
}

}  // namespace

void check_experts_16(Backend& backend, DType dtype, const CaseReport& report) {
    const auto one = [&](const ExpertCase& c, std::int64_t rows) {
        const std::string name =
            "experts " + c.name + ", " + dtype_name(dtype) + ", rows " + std::to_string(rows);
        if (!report.wanted(name)) return;
        Mixture m(backend, c, dtype, rows);
        m.run();
        report.result(name, m.error());
    };
    for (const ExpertCase& c : expert_cases()) {
        if (c.mode != Activations::floating && c.gate_up[0].form.grouped) continue;  // once for each weight
        for (const std::int64_t rows : {1, 5, 33, 200})
            one(c, rows);
        if (c.experts == 40) one(c, 2100);  // more slots than one slice holds
    }
    for (const ExpertCase& c : wide_cases())
        for (const std::int64_t rows : {1, 7, 40, 130})
            one(c, rows);
}

}  // namespace recto
