#include "kernels/check.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/reference.h"

namespace recto {

namespace {

bool gated(const LinearCase& c) {
    return c.epilogue == Epilogue::silu_mul || c.epilogue == Epilogue::gelu_mul;
}

// A view of a device buffer filled from host memory.
struct Device {
    std::unique_ptr<Buffer> buffer;
    Tensor tensor;
};

Device to_device(Backend& backend, const float* host, std::int64_t rows, std::int64_t cols) {
    Device d;
    const std::size_t bytes = std::size_t(rows * cols) * sizeof(float);
    d.buffer = backend.allocate(std::max<std::size_t>(bytes, 64));
    if (host != nullptr && bytes > 0) backend.upload(d.buffer->data(), host, bytes);
    d.tensor = {d.buffer->data(), DType::f32, rows, cols, cols};
    return d;
}

std::vector<float> to_host(Backend& backend, const Tensor& t) {
    std::vector<float> v(std::size_t(t.rows * t.cols));
    backend.download(v.data(), t.data, v.size() * sizeof(float));
    return v;
}

int row_width(const AttentionCase& c) {
    return (c.shape.heads + 2 * c.shape.kv_heads) * c.shape.head_dim;
}

// [context, heads + 2 kv_heads, head_dim]
std::vector<float> attention_input(const AttentionCase& c) {
    std::vector<float> qkv = random_floats(std::size_t(c.context) * std::size_t(row_width(c)), 1.0F, 7);
    const std::size_t q = std::size_t(c.shape.heads) * std::size_t(c.shape.head_dim);
    for (std::size_t i = 0; i < qkv.size(); ++i) {  // scores up to about ±6
        if (i % std::size_t(row_width(c)) < q) qkv[i] *= 6.0F;
    }
    return qkv;
}

float attention_scale(const AttentionCase& c) {
    return 1.0F / std::sqrt(float(c.shape.head_dim));
}

}  // namespace

std::int64_t case_outputs(const LinearCase& c) {
    std::int64_t n = 0;
    for (const SyntheticSpec& p : c.parts)
        n += p.rows;
    return gated(c) ? n / 2 : n;
}

LinearInput linear_input(const LinearCase& c, std::int64_t rows) {
    LinearInput in;
    in.x = random_floats(std::size_t(rows * c.parts[0].cols), 2.0F, 100);
    in.before = random_floats(std::size_t(rows * case_outputs(c)), 1.0F, 101);
    return in;
}

std::vector<float> run_linear(Backend& backend, const LinearCase& c, const LinearInput& in,
                              std::int64_t first, std::int64_t rows) {
    std::vector<std::unique_ptr<WeightRows>> weights;
    std::vector<const WeightRows*> parts;
    for (const SyntheticSpec& p : c.parts) {
        weights.push_back(make_synthetic(p));
        parts.push_back(weights.back().get());
    }
    const auto packed = backend.pack(parts, c.mode);
    const std::int64_t cols = c.parts[0].cols, outputs = case_outputs(c);
    const Device x = to_device(backend, in.x.data() + first * cols, rows, cols);
    const Device out = to_device(backend, in.before.data() + first * outputs, rows, outputs);
    backend.linear(x.tensor, *packed, c.epilogue, out.tensor);
    return to_host(backend, out.tensor);
}

double linear_error(const LinearCase& c, const LinearInput& in, std::int64_t rows,
                    const std::vector<float>& out) {
    std::vector<std::unique_ptr<WeightRows>> weights;
    std::vector<const WeightRows*> parts;
    for (const SyntheticSpec& p : c.parts) {
        weights.push_back(make_synthetic(p));
        parts.push_back(weights.back().get());
    }
    const auto expected = reference::linear(in.x.data(), rows, parts, c.mode, c.epilogue, in.before.data());
    assert(expected.out.size() == out.size());
    const double roundings = double(c.parts[0].cols) + 16;
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double tolerance = 0x1p-24 * roundings * expected.magnitude[i] + 1e-30;
        const double error = std::fabs(double(out[i]) - expected.out[i]);
        worst = std::isfinite(error) ? std::fmax(worst, error / tolerance) : HUGE_VAL;
    }
    return worst;
}

namespace {

std::int64_t width_of(const ExpertCase& c) {
    return c.down.cols;
}
std::int64_t hidden_of(const ExpertCase& c) {
    return c.down.rows;
}

// The rows of expert e: the case's, with a seed of its own.
struct ExpertWeights {
    std::vector<std::unique_ptr<WeightRows>> owned;
    std::vector<const WeightRows*> gate_up;
    const WeightRows* down = nullptr;
};
ExpertWeights expert_weights(const ExpertCase& c, int e) {
    ExpertWeights w;
    auto make = [&](SyntheticSpec s) {
        s.seed += std::uint64_t(10000 * e);
        w.owned.push_back(make_synthetic(s));
        return w.owned.back().get();
    };
    for (const SyntheticSpec& s : c.gate_up)
        w.gate_up.push_back(make(s));
    w.down = make(c.down);
    return w;
}

double off_by(float found, double expected, double magnitude, double roundings) {
    const double error = std::fabs(double(found) - expected);
    return std::isfinite(error) ? error / (0x1p-24 * roundings * magnitude + 1e-30) : HUGE_VAL;
}

}  // namespace

ExpertInput expert_input(const ExpertCase& c, std::int64_t rows) {
    ExpertInput in;
    in.x = random_floats(std::size_t(rows * hidden_of(c)), 2.0F, 110);
    in.logits = random_floats(std::size_t(rows * c.experts), 3.0F, 111);
    in.before = random_floats(std::size_t(rows * hidden_of(c)), 1.0F, 112);
    return in;
}

ExpertOutput run_experts(Backend& backend, const ExpertCase& c, const ExpertInput& in, std::int64_t first,
                         std::int64_t rows) {
    std::vector<std::unique_ptr<PackedWeight>> up, down;
    for (int e = 0; e < c.experts; ++e) {
        const ExpertWeights w = expert_weights(c, e);
        up.push_back(backend.pack(w.gate_up, c.mode));
        down.push_back(backend.pack({&w.down, 1}, c.mode));
    }
    const auto up_stack = backend.stack_experts(std::move(up));
    const auto down_stack = backend.stack_experts(std::move(down));
    const std::int64_t hidden = hidden_of(c), slots = rows * c.per_row;
    const Device x = to_device(backend, in.x.data() + first * hidden, rows, hidden);
    const Device logits = to_device(backend, in.logits.data() + first * c.experts, rows, c.experts);
    const Device out = to_device(backend, in.before.data() + first * hidden, rows, hidden);
    const Device gated = to_device(backend, nullptr, slots, width_of(c));
    const Device ids = to_device(backend, nullptr, rows, c.per_row);
    const Device weights = to_device(backend, nullptr, rows, c.per_row);
    const ExpertChoice choice{static_cast<std::int32_t*>(ids.tensor.data), weights.tensor.f32(), rows,
                              c.per_row};
    backend.route(logits.tensor, c.renormalize, choice);
    backend.expert_gate_up(x.tensor, choice, *up_stack, c.epilogue, gated.tensor);
    backend.expert_down(gated.tensor, choice, *down_stack, out.tensor);
    ExpertOutput o;
    o.ids.resize(std::size_t(slots));
    backend.download(o.ids.data(), choice.ids, o.ids.size() * sizeof(std::int32_t));
    o.weights = to_host(backend, weights.tensor);
    o.gated = to_host(backend, gated.tensor);
    o.out = to_host(backend, out.tensor);
    return o;
}

double expert_error(const ExpertCase& c, const ExpertInput& in, std::int64_t rows, const ExpertOutput& out) {
    const std::int64_t hidden = hidden_of(c), width = width_of(c), k = c.per_row;
    std::vector<ExpertWeights> experts;
    for (int e = 0; e < c.experts; ++e)
        experts.push_back(expert_weights(c, e));
    double worst = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        const auto expected =
            reference::route(in.logits.data() + r * c.experts, c.experts, c.per_row, c.renormalize);
        std::vector<double> sum(in.before.begin() + r * hidden, in.before.begin() + (r + 1) * hidden);
        std::vector<double> size(sum.size());
        for (std::size_t i = 0; i < sum.size(); ++i)
            size[i] = std::fabs(sum[i]);
        for (std::int64_t s = 0; s < k; ++s) {
            const auto slot = std::size_t(r * k + s);
            const std::int32_t e = expected.ids[std::size_t(s)];
            if (out.ids[slot] != e) return HUGE_VAL;
            // The difference of two logits is rounded at up to 6, and the sum over the experts.
            const double p = expected.weights[std::size_t(s)];
            worst = std::fmax(worst, off_by(out.weights[slot], p, p, 16.0 + double(c.experts)));
            const auto& w = experts[std::size_t(e)];
            const auto up =
                reference::linear(in.x.data() + r * hidden, 1, w.gate_up, c.mode, c.epilogue, nullptr);
            const float* gated = out.gated.data() + std::int64_t(slot) * width;
            for (std::int64_t i = 0; i < width; ++i)
                worst = std::fmax(worst, off_by(gated[i], up.out[std::size_t(i)],
                                                up.magnitude[std::size_t(i)], double(hidden) + 16));
            const auto down = reference::linear(gated, 1, {&w.down, 1}, c.mode, Epilogue::store, nullptr);
            for (std::size_t i = 0; i < sum.size(); ++i) {
                sum[i] += double(out.weights[slot]) * down.out[i];
                size[i] += double(out.weights[slot]) * down.magnitude[i];
            }
        }
        for (std::int64_t i = 0; i < hidden; ++i)
            worst = std::fmax(worst, off_by(out.out[std::size_t(r * hidden + i)], sum[std::size_t(i)],
                                            size[std::size_t(i)], double(width) + 16));
    }
    return worst;
}

std::vector<float> run_attention(Backend& backend, const AttentionCase& c, int chunk, int block_size) {
    const int slots = block_size > 0 ? block_size : c.block_size;
    const int blocks = (c.context + slots - 1) / slots;
    KvShape shape;
    shape.blocks = blocks + 3;
    shape.layers = 2;
    shape.kv_heads = c.shape.kv_heads;
    shape.block_size = slots;
    shape.head_dim = c.shape.head_dim;
    shape.dtype = c.dtype;
    const auto kv = backend.make_kv(shape);
    std::vector<std::int32_t> table(static_cast<std::size_t>(blocks));
    for (int i = 0; i < blocks; ++i)
        table[std::size_t(i)] = (i * 7 + 2) % (blocks + 3);
    std::vector<bool> taken(std::size_t(blocks) + 3);
    for (std::int32_t& b : table) {  // 7 may divide the count: the next free one then
        while (taken[std::size_t(b)])
            b = (b + 1) % (blocks + 3);
        taken[std::size_t(b)] = true;
    }
    const std::vector<float> qkv = attention_input(c);
    const int width = row_width(c), q_width = c.shape.heads * c.shape.head_dim;
    BatchLimits limits;
    limits.max_rows = chunk;
    limits.max_blocks = blocks;
    const auto batch = backend.make_batch(limits);
    std::vector<float> all;
    for (int begin = 0; begin < c.context; begin += chunk) {
        const int n = std::min(chunk, c.context - begin);
        StepBatch step;
        for (int i = begin; i < begin + n; ++i) {
            step.token_ids.push_back(0);
            step.positions.push_back(i);
            step.row_sequence.push_back(0);
            step.slots.push_back(table[std::size_t(i / slots)] * slots + i % slots);
        }
        step.query_start = {0, n};
        step.context_tokens = {begin + n};
        step.block_tables = table;
        step.max_blocks = blocks;
        backend.upload_batch(*batch, step);
        const Device in = to_device(backend, qkv.data() + std::ptrdiff_t(begin) * width, n, width);
        const Device out = to_device(backend, nullptr, n, q_width);
        const Device rope = to_device(backend, nullptr, n, 0);
        RopeStoreArgs store;
        store.shape = c.shape;
        store.layer = 1;
        backend.rope_store(*batch, store, rope.tensor, in.tensor, *kv);
        AttentionArgs args;
        args.shape = c.shape;
        args.scale = attention_scale(c);
        args.window = c.window;
        args.softcap = c.softcap;
        args.layer = 1;
        backend.attention(*batch, args, in.tensor.columns(0, q_width), *kv, out.tensor);
        const std::vector<float> rows = to_host(backend, out.tensor);
        all.insert(all.end(), rows.begin(), rows.end());
    }
    return {all.end() - std::ptrdiff_t(c.queries) * q_width, all.end()};
}

double attention_error(const AttentionCase& c, const std::vector<float>& out) {
    const std::vector<float> qkv = attention_input(c);
    const std::size_t width = std::size_t(row_width(c));
    const std::size_t q_width = std::size_t(c.shape.heads) * std::size_t(c.shape.head_dim);
    const std::size_t kv_width = std::size_t(c.shape.kv_heads) * std::size_t(c.shape.head_dim);
    std::vector<double> keys, values;
    for (int t = 0; t < c.context; ++t) {
        const float* row = qkv.data() + std::size_t(t) * width;
        for (std::size_t i = 0; i < kv_width; ++i) {
            keys.push_back(double(as_stored(row[q_width + i], c.dtype)));
            values.push_back(double(as_stored(row[q_width + kv_width + i], c.dtype)));
        }
    }
    std::vector<float> q;
    std::vector<int> positions;
    for (int t = c.context - c.queries; t < c.context; ++t) {
        const float* row = qkv.data() + std::size_t(t) * width;
        q.insert(q.end(), row, row + q_width);
        positions.push_back(t);
    }
    const auto expected = reference::attention(q.data(), positions, keys.data(), values.data(), c.shape,
                                               double(attention_scale(c)), c.window, double(c.softcap));
    assert(expected.size() == out.size());
    // |values| ≤ 1 and scores are at most 6 √head_dim in size: a score's error of 2^-24 · head_dim · that,
    // through the exponential, is the largest part; sums over the context add the rest.
    const double score = 6.0 * std::sqrt(double(c.shape.head_dim));
    const double tolerance =
        0x1p-24 * (2.0 * score * std::sqrt(double(c.shape.head_dim)) + 16.0 + double(c.context));
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double error = std::fabs(double(out[i]) - expected[i]);
        worst = std::isfinite(error) ? std::fmax(worst, error / tolerance) : HUGE_VAL;
    }
    return worst;
}

}  // namespace recto
