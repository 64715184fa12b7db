#include "kernels/bench.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "kernels/bench_print.h"
#include "kernels/check.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/select.h"
#include "kernels/draw_cases.h"
#include "kernels/error.h"

namespace recto {

namespace {

// The starter model's shapes with random weights.
struct StarterShapes {
    static constexpr int hidden = 576, layers = 30, heads = 9, kv_heads = 3, head_dim = 64, ffn = 1536,
                         vocab = 49152;
    static constexpr int qkv_rows = (heads + 2 * kv_heads) * head_dim;
    struct Layer {
        std::unique_ptr<PackedWeight> qkv, o, gate_up, down;
    };
    std::vector<Layer> weights;
    std::unique_ptr<PackedWeight> head;
    double pack_seconds = 0;

    explicit StarterShapes(Backend& backend) {
        const WeightForm q4_1 = grouped_form(QuantInt::u4, 32, ScaleForm::f16, OffsetForm::f16, "Q4_1");
        const WeightForm q8_0 = grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0");
        std::uint64_t seed = 1;
        auto pack = [&](std::initializer_list<SyntheticSpec> specs) {
            std::vector<std::unique_ptr<WeightRows>> rows;
            std::vector<const WeightRows*> parts;
            for (SyntheticSpec s : specs) {
                s.seed = seed++;
                rows.push_back(make_synthetic(s));
                parts.push_back(rows.back().get());
            }
            return backend.pack(parts, Activations::int8);
        };
        for (int i = 0; i < layers; ++i) {
            Layer l;
            l.qkv = pack({{heads * head_dim, hidden, q4_1},
                          {kv_heads * head_dim, hidden, q4_1},
                          {kv_heads * head_dim, hidden, q4_1}});
            l.o = pack({{hidden, heads * head_dim, q4_1}});
            l.gate_up = pack({{ffn, hidden, q4_1}, {ffn, hidden, q4_1}});
            l.down = pack({{hidden, ffn, q4_1}});
            weights.push_back(std::move(l));
        }
        head = pack({{vocab, hidden, q8_0}});
    }
    double layer_bytes() const {
        const Layer& l = weights[0];
        return double(l.qkv->bytes() + l.o->bytes() + l.gate_up->bytes() + l.down->bytes());
    }
};

// `sequences` sequences of `context` tokens; the last `rows_each` of each are computed.
StepBatch make_step(int sequences, int rows_each, int context, int block_size) {
    StepBatch s;
    const int blocks = (context + block_size - 1) / block_size;
    s.max_blocks = blocks;
    s.query_start.push_back(0);
    for (int i = 0; i < sequences; ++i) {
        for (int b = 0; b < blocks; ++b)
            s.block_tables.push_back(i * blocks + b);
        for (int r = 0; r < rows_each; ++r) {
            const int position = context - rows_each + r;
            s.token_ids.push_back((i * 977 + r * 31) % StarterShapes::vocab);
            s.positions.push_back(position);
            s.row_sequence.push_back(i);
            s.slots.push_back((i * blocks + position / block_size) * block_size + position % block_size);
        }
        s.query_start.push_back(s.rows());
        s.context_tokens.push_back(context);
        s.logit_rows.push_back(s.rows() - 1);
    }
    return s;
}

class StepBench {
  public:
    StepBench(Backend& backend, const StarterShapes& model, int sequences, int rows_each, int context)
        : backend_(backend), model_(model), step_(make_step(sequences, rows_each, context, 16)) {
        using M = StarterShapes;
        KvShape shape;
        shape.blocks = int(step_.block_tables.size());
        shape.layers = M::layers;
        shape.kv_heads = M::kv_heads;
        shape.head_dim = M::head_dim;
        kv_ = backend.make_kv(shape);
        fill(*kv_);
        BatchLimits limits;
        limits.max_rows = step_.rows();
        limits.max_sequences = sequences;
        limits.max_outputs = sequences;
        limits.max_blocks = step_.max_blocks;
        batch_ = backend.make_batch(limits);
        backend.upload_batch(*batch_, step_);
        const std::int64_t rows = step_.rows();
        x_ = tensor(rows, M::hidden);
        normed_ = tensor(rows, M::hidden);
        qkv_ = tensor(rows, M::qkv_rows);
        mixed_ = tensor(rows, M::hidden);
        gated_ = tensor(rows, M::ffn);
        rope_ = tensor(rows, M::head_dim);
        last_ = tensor(sequences, M::hidden);
        logits_ = tensor(sequences, M::vocab);
        norm_ = tensor(1, M::hidden);
        ids_ = tensor(1, sequences);
        frequencies_.assign(M::head_dim / 2, 0.01F);
        const std::vector<float> ones(M::hidden, 1.0F);
        backend.upload(norm_.data, ones.data(), ones.size() * sizeof(float));
    }

    void embed() { backend_.embed(*batch_, *model_.head, 1.0F, x_); }
    void rope_table() { backend_.rope_table(*batch_, {StarterShapes::head_dim, frequencies_, 1.0F}, rope_); }
    void norm() { backend_.rms_norm(x_, norm_.f32(), 1e-5F, normed_); }
    void qkv(int i) { backend_.linear(normed_, *model_.weights[std::size_t(i)].qkv, Epilogue::store, qkv_); }
    void rope_store(int i) {
        RopeStoreArgs a;
        a.shape = heads();
        a.rotary_dims = StarterShapes::head_dim;
        a.layer = i;
        backend_.rope_store(*batch_, a, rope_, qkv_, *kv_);
    }
    void attention(int i) {
        AttentionArgs a;
        a.shape = heads();
        a.scale = 0.125F;
        a.layer = i;
        backend_.attention(*batch_, a, qkv_.columns(0, StarterShapes::hidden), *kv_, mixed_);
    }
    void o(int i) { backend_.linear(mixed_, *model_.weights[std::size_t(i)].o, Epilogue::add, x_); }
    void gate_up(int i) {
        backend_.linear(normed_, *model_.weights[std::size_t(i)].gate_up, Epilogue::silu_mul, gated_);
    }
    void down(int i) { backend_.linear(gated_, *model_.weights[std::size_t(i)].down, Epilogue::add, x_); }
    void head() {
        backend_.gather_rows(*batch_, normed_, last_);
        backend_.linear(last_, *model_.head, Epilogue::store, logits_);
    }
    void argmax() { backend_.argmax(logits_, StarterShapes::vocab, static_cast<std::int32_t*>(ids_.data)); }

    void run(const std::function<void()>& work) { backend_.run({}, work); }
    void whole() {
        run([&] {
            embed();
            rope_table();
            for (int i = 0; i < StarterShapes::layers; ++i) {
                norm();
                qkv(i);
                rope_store(i);
                attention(i);
                o(i);
                norm();
                gate_up(i);
                down(i);
            }
            norm();
            head();
            argmax();
        });
    }
    double rows() const { return double(step_.rows()); }

  private:
    static HeadShape heads() {
        return {StarterShapes::heads, StarterShapes::kv_heads, StarterShapes::head_dim};
    }
    // Memory never written is one page of zeros in the processor's cache, and would be timed as such.
    void fill(KvCache& kv) {
        const std::size_t n = kv.shape().block_bytes() / sizeof(std::uint16_t);
        const std::vector<float> v = random_floats(n, 1.0F, 3);
        std::vector<std::uint16_t> block(n);
        std::transform(v.begin(), v.end(), block.begin(), f32_to_f16);
        for (int b = 0; b < kv.shape().blocks; ++b)
            backend_.swap_in(kv, b, block.data());
    }
    Tensor tensor(std::int64_t rows, std::int64_t cols) {
        buffers_.push_back(backend_.allocate(std::size_t(rows * cols) * sizeof(float)));
        const std::vector<float> v = random_floats(std::size_t(rows * cols), 1.0F, buffers_.size());
        backend_.upload(buffers_.back()->data(), v.data(), v.size() * sizeof(float));
        return {buffers_.back()->data(), DType::f32, rows, cols, cols};
    }
    Backend& backend_;
    const StarterShapes& model_;
    StepBatch step_;
    std::unique_ptr<KvCache> kv_;
    std::unique_ptr<DeviceBatch> batch_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    Tensor x_, normed_, qkv_, mixed_, gated_, rope_, last_, logits_, norm_, ids_;
    std::vector<float> frequencies_;
};

struct StepSize {
    const char* name;
    int sequences, rows_each, context;
};
constexpr StepSize step_sizes[] = {
    {"decode 1 at 128", 1, 1, 128}, {"decode 1 at 4096", 1, 1, 4096}, {"decode 4 at 128", 4, 1, 128},
    {"decode 8 at 160", 8, 1, 160}, {"decode 16 at 160", 16, 1, 160}, {"prefill 128", 1, 128, 128},
    {"prefill 512", 1, 512, 512},
};

void bench_steps(Backend& backend, const std::string& filter, const Printer& print) {
    using M = StarterShapes;
    std::unique_ptr<StarterShapes> model;
    auto wanted = [&](const std::string& name) {
        return filter.empty() || name.find(filter) != std::string::npos;
    };
    const double matrix_ops = 2.0 * M::hidden * (M::qkv_rows + M::hidden + 3.0 * M::ffn);
    for (const StepSize& size : step_sizes) {
        const std::string step = size.name;
        const double rows = double(size.sequences) * size.rows_each;
        // Score and value products with every visible position.
        const double seen = size.sequences * (double(size.context) * size.rows_each -
                                              0.5 * size.rows_each * (size.rows_each - 1.0));
        const double attention_ops = 4.0 * M::heads * M::head_dim * seen;
        const double kv_bytes = 2.0 * 2 * M::kv_heads * M::head_dim * double(size.context) * size.sequences;
        struct Part {
            std::string name;
            std::function<void(StepBench&)> work;
            double bytes, ops;
            bool integer;
        };
        std::vector<Part> parts;
        auto each_layer = [](auto op) {
            return [op](StepBench& b) {
                b.run([&] {
                    for (int i = 0; i < M::layers; ++i)
                        op(b, i);
                });
            };
        };
        if (!model) {
            const bool any =
                std::any_of(std::begin(step_sizes), std::end(step_sizes), [&](const StepSize& s) {
                    for (const char* part :
                         {": whole step", ": qkv", ": o+add", ": gate_up", ": down", ": head", ": argmax",
                          ": embed", ": rope_table", ": attention", ": rope_store", ": rms_norm"}) {
                        if (wanted(s.name + std::string(part))) return true;
                    }
                    return false;
                });
            if (!any) return;
            model = std::make_unique<StarterShapes>(backend);
        }
        const double L = M::layers, h = M::hidden;
        const auto bytes_of = [&](const PackedWeight& w) { return double(w.bytes()); };
        const auto& l0 = model->weights[0];
        parts.push_back({"whole step", [](StepBench& b) { b.whole(); },
                         model->layer_bytes() * L + bytes_of(*model->head) + kv_bytes * L,
                         rows * matrix_ops * L + attention_ops * L + size.sequences * 2.0 * h * M::vocab,
                         true});
        parts.push_back({"qkv", each_layer([](StepBench& b, int i) { b.qkv(i); }), bytes_of(*l0.qkv) * L,
                         rows * 2 * h * M::qkv_rows * L, true});
        parts.push_back({"o+add", each_layer([](StepBench& b, int i) { b.o(i); }), bytes_of(*l0.o) * L,
                         rows * 2 * h * h * L, true});
        parts.push_back({"gate_up", each_layer([](StepBench& b, int i) { b.gate_up(i); }),
                         bytes_of(*l0.gate_up) * L, rows * 4 * h * M::ffn * L, true});
        parts.push_back({"down", each_layer([](StepBench& b, int i) { b.down(i); }), bytes_of(*l0.down) * L,
                         rows * 2 * h * M::ffn * L, true});
        parts.push_back({"head", [](StepBench& b) { b.run([&] { b.head(); }); }, bytes_of(*model->head),
                         size.sequences * 2.0 * h * M::vocab, true});
        parts.push_back(
            {"argmax", [](StepBench& b) { b.argmax(); }, size.sequences * 4.0 * M::vocab, 0, false});
        parts.push_back({"embed", [](StepBench& b) { b.embed(); }, rows * h * (34.0 / 32 + 4), 0, false});
        parts.push_back(
            {"rope_table", [](StepBench& b) { b.rope_table(); }, rows * 4 * M::head_dim, 0, false});
        parts.push_back({"attention", each_layer([](StepBench& b, int i) { b.attention(i); }), kv_bytes * L,
                         attention_ops * L, false});
        parts.push_back({"rope_store", each_layer([](StepBench& b, int i) { b.rope_store(i); }),
                         rows * M::qkv_rows * 4 * L, 0, false});
        parts.push_back(
            {"rms_norm", each_layer([](StepBench& b, int) { b.norm(); }), rows * h * 8 * L, 0, false});
        std::unique_ptr<StepBench> bench;
        for (const Part& p : parts) {
            const std::string name = step + ": " + p.name;
            if (!wanted(name)) continue;
            if (!bench) {
                bench = std::make_unique<StepBench>(backend, *model, size.sequences, size.rows_each,
                                                    size.context);
                bench->whole();
            }
            const double t = time_of(backend, [&] { p.work(*bench); });
            std::ostringstream extra;
            if (p.name == "whole step") extra << std::fixed << std::setprecision(1) << rows / t << " tok/s";
            print.line(name, t, p.bytes, p.ops, p.integer, extra.str());
        }
    }
}

void bench_pack(Backend& backend, const std::string& filter, const Printer& print) {
    const std::string name = "pack Q4_1 12288x576";
    if (!filter.empty() && name.find(filter) == std::string::npos) return;
    // From rows that already lie in memory, so that the reader's arithmetic is not what is timed.
    const FilledRows ready(12288, 576,
                           grouped_form(QuantInt::u4, 32, ScaleForm::f16, OffsetForm::f16, "Q4_1"));
    const WeightRows* parts[] = {&ready};
    const double t = time_of(backend, [&] { backend.pack(parts, Activations::int8); });
    print.line(name, t, double(ready.rows() * ready.cols()) * 20 / 32, 0, true);
}

std::string trimmed(double v) {
    std::ostringstream s;
    s << std::setprecision(3) << v;
    return s.str();
}

}  // namespace

Ceilings measure_ceilings(Backend& backend) {
    auto* cpu_backend = dynamic_cast<cpu::CpuBackend*>(&backend);
    if (cpu_backend == nullptr) return {};
    return cpu_backend->measure_ceilings();
}

int run_check(Backend& backend, std::ostream& out, const std::string& filter) {
    int failed = 0, cases = 0;
    auto report = [&](const std::string& name, double error) {
        ++cases;
        const bool ok = error <= 1.0;
        failed += ok ? 0 : 1;
        out << (ok ? "ok    " : "FAIL  ") << name << ": error " << trimmed(error) << " of the tolerance\n";
    };
    const auto wanted = [&](const std::string& name) { return name.find(filter) != std::string::npos; };
    // A card's plain kernels dequantize in every mode, and are held to that.
    const bool integer_products = backend.device().kind == "cpu";
    for (LinearCase c : linear_cases()) {
        if (!integer_products) c.mode = Activations::floating;
        for (const std::int64_t rows : {1, 5, 33}) {
            const std::string name = "linear " + c.name + ", rows " + std::to_string(rows);
            if (!wanted(name)) continue;
            const LinearInput in = linear_input(c, rows);
            report(name, linear_error(c, in, rows, run_linear(backend, c, in, 0, rows)));
        }
    }
    for (const DType dtype : {DType::f16, DType::bf16})
        if (backend.activation_dtype(dtype) == dtype) {
            check_linear_16(backend, dtype, {wanted, report});
            check_activations_8(backend, dtype, {wanted, report});
        }
    for (const AttentionCase& c : attention_cases()) {
        const std::string name = "attention " + c.name;
        if (wanted(name)) report(name, attention_error(c, run_attention(backend, c, 64)));
    }
    for (AttentionStepCase c : attention_step_cases()) {
        if (backend.device().kind == "cpu") {  // FP32 activations, no FP8
            if (c.activation != DType::f16 || c.cache == DType::f8_e4m3) continue;
            c.activation = DType::f32;
        }
        const std::string name = "attention step " + c.name;
        if (wanted(name)) report(name, attention_step_error(c, run_attention_step(backend, c)));
    }
    for (ExpertCase c : expert_cases()) {
        if (!integer_products) c.mode = Activations::floating;
        for (const std::int64_t rows : {1, 5, 33}) {
            const std::string name = "experts " + c.name + ", rows " + std::to_string(rows);
            if (!wanted(name)) continue;
            const ExpertInput in = expert_input(c, rows);
            report(name, expert_error(c, in, rows, run_experts(backend, c, in, 0, rows)));
        }
    }
    for (const DType dtype : {DType::f16, DType::bf16})
        if (backend.activation_dtype(dtype) == dtype) check_experts_16(backend, dtype, {wanted, report});
    // Steps are captured where the host goes on; programs need a card of sm_80 or newer, and tiles.
    if (backend.asynchronous() && backend.device().card.tiles) check_programs(backend, {wanted, report});
    if (backend.asynchronous()) {
        for (const DrawCase& c : draw_cases()) {
            const std::string name = "draw " + c.name + ", rows " + std::to_string(c.rows);
            if (!wanted(name)) continue;
            const auto drawn = run_draws(backend, c), expected = expected_draws(c);
            int wrong = 0;  // one row is one too many
            for (std::size_t r = 0; r < expected.size(); ++r)
                wrong += drawn[r] != expected[r];
            report(name, 2 * wrong);
        }
    }
    if (cases == 0)
        throw Error(ErrorKind::argument,
                    "kernels --check: expected a part of a case's name, found no case with \"" + filter +
                        "\"; without a name it runs them all");
    out << (failed == 0 ? "All cases agree with the reference.\n"
                        : std::to_string(failed) + " cases differ from the reference.\n");
    return failed;
}

void run_bench(Backend& backend, const std::string& filter, std::ostream& out) {
    const DeviceInfo d = backend.device();
    int lines = 0;
    Printer print{out, measure_ceilings(backend), lines};
    out << d.name << ", " << d.kernels << ", " << d.threads << " threads\n";
    if (print.top.read_bytes_s > 0) {
        out << "measured ceilings: " << trimmed(print.top.read_bytes_s * 1e-9) << " GB/s read, "
            << trimmed(print.top.int8_ops_s * 1e-12) << " int8 TOP/s, "
            << trimmed(print.top.fp32_ops_s * 1e-12) << " FP32 TFLOP/s\n";
    }
    bench_card(backend, filter, print);
    if (filter.find("7B") == std::string::npos) bench_steps(backend, filter, print);
    bench_experts(backend, filter, print);
    bench_large(backend, filter, print);
    bench_attention(backend, filter, print);
    bench_pack(backend, filter, print);
    bench_draw(backend, filter, print);
    if (lines == 0)
        throw Error(ErrorKind::argument,
                    "kernels --bench: expected a part of a timing's name, found none with \"" + filter +
                        "\" for this device; without a name it times all");
}

void list_variants(const CpuOptions& options, std::ostream& out) {
    const cpu::CpuFeatures features = cpu::detect_cpu();
    const cpu::KernelTable& table = cpu::select_table(features, options.max_isa);
    out << features.name << ": " << features.list() << "\nkernels: " << table.name << "\n";
    std::vector<std::string> seen;
    for (const LinearCase& c : linear_cases()) {
        for (const SyntheticSpec& p : c.parts) {
            for (const std::int64_t rows : {1, 3, 8, 16, 512}) {
                const cpu::PanelPlan plan = cpu::plan_panels(
                    rows, p.form.grouped && c.mode == Activations::int8 ? table.int8_rows : table.max_rows);
                const int chunk = p.form.group_size % 32 == 0 || p.form.group_size == p.cols ? 32 : 16;
                const std::string kernel =
                    p.form.grouped
                        ? cpu::describe(cpu::variant_of(p.form, chunk, c.mode), plan.size, table.name)
                        : std::string(dtype_name(p.form.dense)) + " dense, 16 outputs x " +
                              std::to_string(plan.size) + " rows, " + table.name;
                const std::string line = std::string("linear ") + p.form.source_name + ", rows " +
                                         std::to_string(rows) + ": " + kernel;
                if (std::find(seen.begin(), seen.end(), line) != seen.end()) continue;
                seen.push_back(line);
                out << line << "\n";
            }
        }
    }
    out << "experts: rows sorted by expert, each expert as linear, " << table.name << "\n";
    for (const DType d : {DType::f32, DType::f16, DType::bf16}) {
        out << "attention, " << dtype_name(d) << " cache: partitions of " << cpu::partition_tokens
            << " positions, " << table.name << "\n";
    }
}

}  // namespace recto
