// Decode steps that a card runs as one kernel, judged by the same operations one by one, which the other
// checks judge by the reference.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/check_16.h"

namespace recto {
namespace {

struct ProgramCase {
    std::string name;
    HeadShape shape;
    int hidden = 0, width = 0;  // of the stream, of the MLP
    WeightForm form;
    std::vector<int> contexts;  // of each sequence, its new token among them
    DType activation = DType::f16, cache = DType::f16;
    bool bias = false;
    int window = 0;
    float softcap = 0.0F;
    int rotary_dims = 0;
    int block_size = 16;
    int programs = 1;  // that its step is, where a block may have 227 KiB of shared memory
};

// Odd numbers of chunks, blocks without a unit, rows of unequal length, groups of heads, shares of a context.
std::vector<ProgramCase> program_cases() {
    const auto grouped = [](int group, OffsetForm offset, const char* name) {
        return grouped_form(QuantInt::u4, group, ScaleForm::f16, offset, name);
    };
    const WeightForm awq = grouped(128, OffsetForm::zero_point, "AWQ g128");
    std::vector<ProgramCase> cases;
    const auto one = [&](ProgramCase c) {
        c.name = "program " + std::string(c.form.source_name) + " " + std::to_string(c.hidden) + "x" +
                 std::to_string(c.width) + " heads " + std::to_string(c.shape.heads) + "/" +
                 std::to_string(c.shape.kv_heads) + "x" + std::to_string(c.shape.head_dim) + " rows " +
                 std::to_string(c.contexts.size()) + " " + dtype_name(c.activation) + ", cache " +
                 dtype_name(c.cache) + (c.bias ? " bias" : "") + (c.window ? " window" : "") +
                 (c.softcap > 0 ? " cap" : "");
        if (c.rotary_dims == 0) c.rotary_dims = c.shape.head_dim;
        cases.push_back(std::move(c));
    };
    for (const DType activation : {DType::f16, DType::bf16}) {
        const WeightForm dense = dense_form(activation);
        for (const WeightForm& form : {awq, dense}) {
            one({"", {4, 4, 128}, 512, 1408, form, {75}, activation, activation});
            one({"", {8, 2, 64}, 512, 1408, form, {1, 200}, activation, activation, true});
            one({"", {8, 1, 128}, 1024, 2816, form, {1000, 17, 16}, activation, DType::f8_e4m3});
            one({"", {12, 4, 64}, 768, 2048, form, {33, 1, 64, 511}, activation, DType::f8_e4m3, true, 48});
        }
        one({"", {32, 32, 128}, 4096, 11008, awq, {180}, activation, activation});
        one({"", {2, 1, 128}, 256, 512, awq, {5000}, activation, activation, false, 0, 30.0F, 64, 32});
        // A long row among short ones, and more shares than blocks.
        one({"", {40, 40, 64}, 256, 512, awq, {20, 3000, 700, 3}, activation, activation});
        one({"",
             {20, 2, 64},
             1280,
             768,
             grouped(256, OffsetForm::zero_point, "g256"),
             {9, 90},
             activation,
             activation});
        one({"",
             {4, 2, 128},
             512,
             512,
             grouped(512, OffsetForm::zero_point, "whole row"),
             {40},
             activation,
             activation});
    }
    // `down` alone between programs, and the head after it; a list too long beside a wide `down`, which makes
    // the next layer's rope begin a program: test_cuda_program_cut.cpp has the sums.
    for (const int width : {37888, 35328}) {
        ProgramCase c{"", {4, 4, 128}, 512, width, awq, {9, 90}};
        c.programs = 2;
        one(c);
    }
    return cases;
}

constexpr int layers = 2, vocabulary = 1008;

class ProgramRunner {
  public:
    ProgramRunner(Backend& backend, const ProgramCase& c)
        : backend_(backend), c_(c), rows_(int(c.contexts.size())) {
        const int q_width = c.shape.heads * c.shape.head_dim;
        qkv_width_ = q_width + 2 * c.shape.kv_heads * c.shape.head_dim;
        std::uint64_t seed = 40;
        const auto weight = [&](std::vector<std::int64_t> rows, std::int64_t cols, bool is_gated) {
            std::vector<std::unique_ptr<WeightRows>> owned;
            std::vector<const WeightRows*> parts;
            for (const std::int64_t r : rows) {
                owned.push_back(make_synthetic({r, cols, c.form, ++seed, c.bias}));
                parts.push_back(owned.back().get());
            }
            return backend.pack(parts, PackOptions(Activations::floating, c.activation, is_gated));
        };
        for (int layer = 0; layer < layers; ++layer) {
            const std::int64_t kv = c.shape.kv_heads * c.shape.head_dim;
            weights_.push_back(weight({q_width, kv, kv}, c.hidden, false));
            weights_.push_back(weight({c.hidden}, q_width, false));
            weights_.push_back(weight({c.width, c.width}, c.hidden, true));
            weights_.push_back(weight({c.hidden}, c.width, false));
        }
        const auto head = make_synthetic({vocabulary, c.hidden, dense_form(c.activation), 39});
        const WeightRows* parts[] = {head.get()};
        head_ = backend.pack(parts, PackOptions(Activations::floating, c.activation));
        std::vector<float> norm = random_floats(std::size_t(c.hidden), 0.3F, 38);
        for (float& v : norm)
            v += 1.0F;
        norm_ = floats(norm);
        stream_ = random_floats(std::size_t(rows_) * std::size_t(c.hidden), 1.0F, 37);
        for (int i = 0; i < c.rotary_dims / 2; ++i)
            frequencies_.push_back(float(std::pow(10000.0, -2.0 * i / c.rotary_dims)));
        make_step();
        x_ = tensor(DType::f32, c.hidden);
        gathered_ = tensor(DType::f32, c.hidden);
        normed_ = tensor(c.activation, c.hidden);
        qkv_ = tensor(c.activation, qkv_width_);
        mixed_ = tensor(c.activation, q_width);
        gated_ = tensor(c.activation, c.width);
        logits_ = tensor(DType::f32, vocabulary);
        table_ = tensor(DType::f32, c.rotary_dims);
    }

    // The stream and the logits that follow; `whole`: as a step that may be captured.
    std::vector<float> run(bool whole) {
        fill_cache();
        backend_.upload(x_.data, stream_.data(), stream_.size() * sizeof(float));
        backend_.upload_batch(*batch_, step_);
        backend_.run({rows_, rows_, rows_, whole}, [&] { enqueue(); });
        std::vector<float> out(stream_.size() + std::size_t(rows_ * vocabulary));
        backend_.download(out.data(), x_.data, stream_.size() * sizeof(float));
        backend_.download(out.data() + stream_.size(), logits_.data,
                          std::size_t(rows_ * vocabulary) * sizeof(float));
        return out;
    }
    std::size_t streams() const { return stream_.size(); }

  private:
    void enqueue() {
        backend_.rope_table(*batch_, {c_.rotary_dims, frequencies_, 1.0F}, table_);
        for (int layer = 0; layer < layers; ++layer) {
            const auto* w = &weights_[std::size_t(4 * layer)];
            backend_.rms_norm(x_, norm_, 1e-5F, normed_);
            backend_.linear(normed_, *w[0], Epilogue::store, qkv_);
            RopeStoreArgs store;
            store.shape = c_.shape;
            store.rotary_dims = c_.rotary_dims;
            store.layer = layer;
            backend_.rope_store(*batch_, store, table_, qkv_, *kv_);
            AttentionArgs args;
            args.shape = c_.shape;
            args.scale = 1.0F / std::sqrt(float(c_.shape.head_dim));
            args.window = c_.window;
            args.softcap = c_.softcap;
            args.layer = layer;
            backend_.attention(*batch_, args, qkv_.columns(0, mixed_.cols), *kv_, mixed_);
            backend_.linear(mixed_, *w[1], Epilogue::add, x_);
            backend_.rms_norm(x_, norm_, 1e-5F, normed_);
            backend_.linear(normed_, *w[2], layer == 0 ? Epilogue::silu_mul : Epilogue::gelu_mul, gated_);
            backend_.linear(gated_, *w[3], Epilogue::add, x_);
        }
        backend_.gather_rows(*batch_, x_, gathered_);
        backend_.rms_norm(gathered_, norm_, 1e-5F, normed_);
        backend_.linear(normed_, *head_, Epilogue::store, logits_);
    }

    // Block 0 is nobody's; the others go to the sequences in turns.
    void make_step() {
        int most = 0;
        for (const int context : c_.contexts)
            most = std::max(most, (context + c_.block_size - 1) / c_.block_size);
        step_.max_blocks = most;
        step_.query_start.push_back(0);
        int next = 1;
        for (int r = 0; r < rows_; ++r) {
            const int context = c_.contexts[std::size_t(r)], position = context - 1;
            std::vector<std::int32_t> table(std::size_t(most), -1);
            for (int b = 0; b * c_.block_size < context; ++b)
                table[std::size_t(b)] = next++;
            step_.token_ids.push_back(0);
            step_.positions.push_back(position);
            step_.row_sequence.push_back(r);
            step_.slots.push_back(table[std::size_t(position / c_.block_size)] * c_.block_size +
                                  position % c_.block_size);
            step_.query_start.push_back(r + 1);
            step_.context_tokens.push_back(context);
            step_.logit_rows.push_back(r);
            step_.block_tables.insert(step_.block_tables.end(), table.begin(), table.end());
        }
        KvShape shape;
        shape.blocks = next;
        shape.layers = layers;
        shape.kv_heads = c_.shape.kv_heads;
        shape.block_size = c_.block_size;
        shape.head_dim = c_.shape.head_dim;
        shape.dtype = c_.cache;
        kv_ = backend_.make_kv(shape);
        BatchLimits limits;
        limits.max_rows = limits.max_sequences = limits.max_outputs = rows_;
        limits.max_blocks = most;
        limits.heads = c_.shape;
        batch_ = backend_.make_batch(limits);
    }

    // The same numbers before every run; what no token has written yet is NaN.
    void fill_cache() {
        const KvShape& shape = kv_->shape();
        const std::size_t n = shape.block_bytes() / dtype_bytes(shape.dtype);
        const std::vector<float> values = random_floats(n, 1.0F, 36);
        std::vector<std::uint8_t> bytes(shape.block_bytes());
        for (std::size_t i = 0; i < n; ++i)
            if (shape.dtype == DType::f8_e4m3)  // of exponents that are no NaN's
                bytes[i] =
                    std::uint8_t((values[i] < 0 ? 0x80 : 0) | (int(std::fabs(values[i]) * 0x38) & 0x3F));
            else
                reinterpret_cast<std::uint16_t*>(bytes.data())[i] = narrow_16(values[i], shape.dtype);
        for (int b = 1; b < shape.blocks; ++b)
            backend_.swap_in(*kv_, b, bytes.data());
    }

    Tensor tensor(DType dtype, std::int64_t cols) {
        const std::size_t bytes = std::size_t(rows_) * std::size_t(cols) * dtype_bytes(dtype);
        buffers_.push_back(backend_.allocate(bytes));
        const std::vector<std::uint8_t> nan(bytes, 0xFF);
        backend_.upload(buffers_.back()->data(), nan.data(), bytes);
        return {buffers_.back()->data(), dtype, rows_, cols, cols};
    }
    float* floats(const std::vector<float>& v) {
        buffers_.push_back(backend_.allocate(v.size() * sizeof(float)));
        backend_.upload(buffers_.back()->data(), v.data(), v.size() * sizeof(float));
        return static_cast<float*>(buffers_.back()->data());
    }

    Backend& backend_;
    const ProgramCase& c_;
    int rows_;
    std::int64_t qkv_width_ = 0;
    std::vector<std::unique_ptr<PackedWeight>> weights_;
    std::unique_ptr<PackedWeight> head_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    float* norm_ = nullptr;
    std::vector<float> stream_, frequencies_;
    StepBatch step_;
    std::unique_ptr<KvCache> kv_;
    std::unique_ptr<DeviceBatch> batch_;
    Tensor x_, gathered_, normed_, qkv_, mixed_, gated_, logits_, table_;
};

// Infinite unless the step was as many kernels as it should be, and gave the same bits again. Else the
// largest difference of what both ways give, ÷ what roundings on the way may make of the largest: some 16 in
// sequence of activations, and as many of weights, which operations one by one round to the activations' type
// and a program does not, errors of either sign; and in an FP8 cache (2^-4) single keys and values that lie
// on an edge, of hundreds.
double program_error(Backend& backend, const ProgramCase& c) {
    constexpr double never = std::numeric_limits<double>::infinity();
    ProgramRunner runner(backend, c);
    const std::vector<float> expected = runner.run(false);
    const int before = backend.device().programs;
    const std::vector<float> out = runner.run(true);
    const DeviceInfo device = backend.device();
    // Other cards than Hopper's have as little as 99 KiB of shared memory a block, which is enough for the
    // narrow ones only: of the others' steps parts are programs, or nothing is.
    const bool narrow = c.hidden <= 512 && c.width <= 2048;
    if ((device.card.hopper || narrow) && device.programs - before != c.programs) return never;
    if (runner.run(true) != out) return never;
    const double rounding = c.activation == DType::f16 ? 0x1p-11 : 0x1p-8;
    const double tolerance = 8 * rounding + (c.cache == DType::f8_e4m3 ? 0x1p-4 / 16 : 0.0);
    double worst = 0;
    for (const auto& [begin, end] :
         {std::pair{std::size_t(0), runner.streams()}, {runner.streams(), out.size()}}) {
        double largest = 0;
        for (std::size_t i = begin; i < end; ++i)
            largest = std::fmax(largest, std::fabs(double(expected[i])));
        for (std::size_t i = begin; i < end; ++i) {
            const double error = std::fabs(double(out[i]) - double(expected[i])) / (tolerance * largest);
            worst = std::isfinite(error) ? std::fmax(worst, error) : never;
        }
    }
    return worst;
}

}  // namespace

void check_programs(Backend& backend, const CaseReport& report) {
    for (const ProgramCase& c : program_cases())
        if (report.wanted(c.name)) report.result(c.name, program_error(backend, c));
}

}  // namespace recto
