// Timings on a card: the products of Llama-2-7B's layer for few and many rows, beside the card's measured
// ceilings.
#include <algorithm>
#include <cmath>

#include "kernels/bench_print.h"
#include "kernels/synthetic.h"

namespace recto {
namespace {

constexpr int hidden = 4096, ffn = 11008, layers = 4;

// Random bits as numbers of a layer's size: products of constants draw less power and run faster than real
// ones.
class RandomDense final : public WeightRows {
  public:
    RandomDense(std::int64_t rows, std::int64_t cols, DType dtype)
        : rows_(rows), cols_(cols), form_(dense_form(dtype)) {}
    std::int64_t rows() const override { return rows_; }
    std::int64_t cols() const override { return cols_; }
    const WeightForm& form() const override { return form_; }
    void read(std::int64_t, std::int64_t, const WeightPlanes&) const override {}
    void read_f32(std::int64_t, std::int64_t, float*) const override {}
    void read_dense(std::int64_t first, std::int64_t n, void* out) const override {
        auto* to = static_cast<std::uint16_t*>(out);
        std::uint32_t state = std::uint32_t(first) * 2654435761U + 1;
        for (std::int64_t i = 0; i < n * cols_; ++i) {
            state = state * 1664525U + 1013904223U;
            // Sign, exponent of about 1/64, random mantissa.
            to[i] = form_.dense == DType::f16 ? std::uint16_t((state >> 16 & 0x83FF) | 0x2400)
                                              : std::uint16_t((state >> 16 & 0x807F) | 0x3C80);
        }
    }

  private:
    std::int64_t rows_, cols_;
    WeightForm form_;
};

class RandomGrouped final : public WeightRows {
  public:
    RandomGrouped(std::int64_t rows, std::int64_t cols, const WeightForm& form) : filled_(rows, cols, form) {}
    std::int64_t rows() const override { return filled_.rows(); }
    std::int64_t cols() const override { return filled_.cols(); }
    const WeightForm& form() const override { return filled_.form(); }
    void read(std::int64_t first, std::int64_t n, const WeightPlanes& out) const override {
        filled_.read(first, n, out);
        std::uint32_t state = std::uint32_t(first) * 2654435761U + 1;
        if (out.q)
            for (std::int64_t i = 0; i < n * cols(); ++i) {
                state = state * 1664525U + 1013904223U;
                out.q[i] = std::uint8_t(form().integer == QuantInt::u4 ? state >> 28 : state >> 24);
            }
        if (out.scale) std::fill_n(out.scale, n * cols() / form().group_size, 0.003F);
    }
    void read_f32(std::int64_t, std::int64_t, float*) const override {}
    void read_dense(std::int64_t, std::int64_t, void*) const override {}

  private:
    FilledRows filled_;
};

struct Product {
    const char* name;
    std::vector<std::int64_t> parts;
    std::int64_t cols;
    Epilogue epilogue;
    std::int64_t outputs() const {
        std::int64_t n = 0;
        for (const std::int64_t p : parts)
            n += p;
        return epilogue == Epilogue::silu_mul ? n / 2 : n;
    }
    double weights() const {
        double n = 0;
        for (const std::int64_t p : parts)
            n += double(p);
        return n * double(cols);
    }
};

const std::vector<Product>& products() {
    static const std::vector<Product> list = {
        {"q|k|v", {hidden, hidden, hidden}, hidden, Epilogue::store},
        {"o", {hidden}, hidden, Epilogue::add},
        {"gate|up", {ffn, ffn}, hidden, Epilogue::silu_mul},
        {"down", {hidden}, ffn, Epilogue::add},
    };
    return list;
}

struct Rows {
    std::unique_ptr<Buffer> memory;
    Tensor tensor;
    Rows(Backend& backend, std::int64_t rows, std::int64_t cols, DType dtype)
        : memory(backend.allocate(std::size_t(rows * cols) * dtype_bytes(dtype))),
          tensor{memory->data(), dtype, rows, cols, cols} {
        const std::vector<float> v = random_floats(std::size_t(rows * cols), 1.0F, 9);
        if (dtype == DType::f32) {
            backend.upload(tensor.data, v.data(), v.size() * 4);
        } else {
            std::vector<std::uint16_t> narrow(v.size());
            for (std::size_t i = 0; i < v.size(); ++i)
                narrow[i] = narrow_16(v[i], dtype);
            backend.upload(tensor.data, narrow.data(), narrow.size() * 2);
        }
    }
};

}  // namespace

double copy_rate(Backend& backend) {
    KvShape shape;
    shape.blocks = 2;
    shape.layers = 1;
    shape.kv_heads = 32;
    shape.block_size = 1 << 17;
    shape.head_dim = 128;  // 2 GiB a block
    const auto kv = backend.make_kv(shape);
    backend.copy_block(*kv, 0, 1);
    return 2.0 * double(shape.block_bytes()) / time_of(backend, [&] { backend.copy_block(*kv, 0, 1); });
}

void bench_card(Backend& backend, const std::string& filter, const Printer& shown) {
    constexpr DType dtype = DType::f16;
    if (backend.activation_dtype(dtype) != dtype) return;
    // "7B" alone, the beginning of some lines, or one line whole.
    const auto wanted = [&](const std::string& label) { return label.find(filter) != std::string::npos; };
    if (!filter.empty() && filter.find("7B") == std::string::npos) return;
    Printer print = shown;
    print.top.read_bytes_s = copy_rate(backend);
    {
        const RandomDense weight(8192, 8192, dtype);
        const WeightRows* parts[] = {&weight};
        const auto packed = backend.pack(parts, PackOptions(Activations::floating, dtype));
        const Rows x(backend, 8192, 8192, dtype), out(backend, 8192, 8192, dtype);
        const double t = time_of(
            backend, [&] { backend.linear(x.tensor, *packed, Epilogue::store, out.tensor); }, 0.1);
        print.top.fp32_ops_s = 2.0 * std::pow(8192.0, 3) / t;
    }
    print.out << "measured ceilings: " << std::int64_t(print.top.read_bytes_s * 1e-9)
              << " GB/s read and written by a copy, " << std::int64_t(print.top.fp32_ops_s * 1e-12)
              << " TFLOP/s float16 product of 8192 x 8192 x 8192\n";
    struct Run {
        WeightForm form;
        Activations mode;
        std::string name;
        std::vector<std::int64_t> rows;
    };
    const WeightForm awq =
        grouped_form(QuantInt::u4, 128, ScaleForm::f16, OffsetForm::zero_point, "AWQ g128");
    std::vector<Run> runs;
    for (const WeightForm& form :
         {dense_form(dtype), awq,
          grouped_form(QuantInt::u4, 32, ScaleForm::f16_times_u6, OffsetForm::f16_times_u6, "Q4_K"),
          grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0")})
        runs.push_back({form,
                        Activations::floating,
                        std::string("7B ") + form.source_name,
                        {1, 4, 8, 16, 32, 64, 128, 256, 2048}});
    if (const auto eight = backend.device().eight_bit)
        runs.push_back({awq, *eight, "7B AWQ g128 8-bit activations", {512, 2048, 8192}});
    for (const auto& [form, mode, name, counts] : runs) {
        const auto label = [&name = name](const Product& p, std::int64_t rows) {
            return name + " " + p.name + ", rows " + std::to_string(rows);
        };
        const auto any = [&](const Product& p) {
            return std::ranges::any_of(counts, [&](std::int64_t rows) { return wanted(label(p, rows)); });
        };
        if (std::ranges::none_of(products(), any)) continue;
        std::vector<std::unique_ptr<PackedWeight>> weights;  // [layer][product]
        for (int l = 0; l < layers; ++l) {
            for (const Product& p : products()) {
                std::vector<std::unique_ptr<WeightRows>> rows;
                std::vector<const WeightRows*> parts;
                for (const std::int64_t n : p.parts) {
                    if (form.grouped)
                        rows.push_back(std::make_unique<RandomGrouped>(n, p.cols, form));
                    else
                        rows.push_back(std::make_unique<RandomDense>(n, p.cols, dtype));
                    parts.push_back(rows.back().get());
                }
                weights.push_back(
                    backend.pack(parts, PackOptions(mode, dtype, p.epilogue == Epilogue::silu_mul)));
            }
        }
        for (const std::int64_t rows : counts) {
            double layer_seconds = 0, layer_bytes = 0, layer_weights = 0;
            std::size_t timed = 0;
            for (std::size_t i = 0; i < products().size(); ++i) {
                const Product& p = products()[i];
                if (!wanted(label(p, rows))) continue;
                ++timed;
                const Rows x(backend, rows, p.cols, dtype);
                const Rows out(backend, rows, p.outputs(), p.epilogue == Epilogue::add ? DType::f32 : dtype);
                const int repeats = rows > 256 ? 1 : 8;
                // Once as it is: scratch memory cannot be made while a graph is captured.
                backend.linear(x.tensor, *weights[i], p.epilogue, out.tensor);
                static int number = 0;
                const GraphKey key{--number, 0, 0, true};  // a key of its own: no step has negative rows
                const double t =
                    time_of(
                        backend,
                        [&] {
                            backend.run(key, [&] {
                                for (int r = 0; r < repeats; ++r)
                                    for (int l = 0; l < layers; ++l)
                                        backend.linear(x.tensor,
                                                       *weights[std::size_t(l) * products().size() + i],
                                                       p.epilogue, out.tensor);
                            });
                        },
                        0.03) /
                    (layers * repeats);
                const double bytes =
                    double(weights[i]->bytes()) + double(x.tensor.bytes()) + double(out.tensor.bytes());
                print.line(label(p, rows), t, bytes, 2 * p.weights() * double(rows), false);
                layer_seconds += t;
                layer_bytes += bytes;
                layer_weights += p.weights();
            }
            if (timed == products().size())
                print.line(name + " layer's products, rows " + std::to_string(rows), layer_seconds,
                           layer_bytes, 2 * layer_weights * double(rows), false);
        }
    }
}

}  // namespace recto
