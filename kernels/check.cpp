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

float as_stored(float v, DType d) {
    if (d == DType::f16) return f16_to_f32(f32_to_f16(v));
    if (d == DType::bf16) return bf16_to_f32(f32_to_bf16(v));
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
