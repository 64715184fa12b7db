// Timings of one row against matrices that lie in memory.
#include "kernels/bench_print.h"
#include "kernels/synthetic.h"

namespace recto {

namespace {

struct LargeShapes {
    static constexpr int hidden = 2048, kv = 512, ffn = 8192, layers = 6;
    struct Layer {
        std::unique_ptr<PackedWeight> qkv, o, gate_up, down;
    };
    std::vector<Layer> weights;

    LargeShapes(Backend& backend, const WeightForm& form) {
        auto pack = [&](std::initializer_list<std::int64_t> rows, std::int64_t cols) {
            std::vector<FilledRows> sources;
            for (const std::int64_t n : rows)
                sources.emplace_back(n, cols, form);
            std::vector<const WeightRows*> parts;
            for (const FilledRows& s : sources)
                parts.push_back(&s);
            return backend.pack(parts, Activations::int8);
        };
        for (int i = 0; i < layers; ++i) {
            weights.push_back({pack({hidden, kv, kv}, hidden), pack({hidden}, hidden),
                               pack({ffn, ffn}, hidden), pack({hidden}, ffn)});
        }
    }
    double bytes() const {
        double n = 0;
        for (const Layer& l : weights)
            n += double(l.qkv->bytes() + l.o->bytes() + l.gate_up->bytes() + l.down->bytes());
        return n;
    }
};

}  // namespace

void bench_large(Backend& backend, const std::string& filter, const Printer& print) {
    using M = LargeShapes;
    const WeightForm forms[] = {
        grouped_form(QuantInt::u4, 32, ScaleForm::f16, OffsetForm::zero_point, "Q4_0"),
        grouped_form(QuantInt::u4, 32, ScaleForm::f16_times_u6, OffsetForm::f16_times_u6, "Q4_K"),
        grouped_form(QuantInt::u4, 128, ScaleForm::f16, OffsetForm::zero_point, "AWQ g128"),
        grouped_form(QuantInt::i8, 16, ScaleForm::f16_times_i8, OffsetForm::none, "Q6_K"),
        grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0"),
    };
    for (const WeightForm& form : forms) {
        const std::string name = std::string("1B linears ") + form.source_name + ", 1 row";
        if (!filter.empty() && name.find(filter) == std::string::npos) continue;
        const M model(backend, form);
        const auto buffer = [&](std::int64_t n) { return backend.allocate(std::size_t(n) * sizeof(float)); };
        const auto x = buffer(M::hidden), qkv = buffer(M::hidden + 2 * M::kv), gated = buffer(M::ffn);
        const std::vector<float> v = random_floats(M::ffn, 1.0F, 5);
        backend.upload(x->data(), v.data(), M::hidden * sizeof(float));
        backend.upload(gated->data(), v.data(), M::ffn * sizeof(float));
        const auto row = [](const Buffer& b, std::int64_t n) {
            return Tensor{b.data(), DType::f32, 1, n, n};
        };
        const double t = time_of(backend, [&] {
            backend.run({}, [&] {
                for (const M::Layer& l : model.weights) {
                    backend.linear(row(*x, M::hidden), *l.qkv, Epilogue::store,
                                   row(*qkv, M::hidden + 2 * M::kv));
                    backend.linear(row(*qkv, M::hidden), *l.o, Epilogue::store, row(*x, M::hidden));
                    backend.linear(row(*x, M::hidden), *l.gate_up, Epilogue::silu_mul, row(*gated, M::ffn));
                    backend.linear(row(*gated, M::ffn), *l.down, Epilogue::store, row(*x, M::hidden));
                }
            });
        });
        const double weights =
            M::layers * (double(M::hidden) * (2.0 * M::hidden + 2 * M::kv) + 3.0 * M::ffn * M::hidden);
        print.line(name, t, model.bytes(), 2 * weights, true);
    }
}

}  // namespace recto
