// Steps of several sequences: rope, KV write and paged attention in 16-bit and FP8 types, judged by the
// reference.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "kernels/check.h"
#include "kernels/reference.h"

namespace recto {

namespace {

// Half a unit in the last place, relative.
double rounding_of(DType d) {
    switch (d) {
        case DType::f16:
            return 0x1p-11;
        case DType::bf16:
            return 0x1p-8;
        default:
            return 0x1p-24;
    }
}

std::vector<std::uint8_t> to_dtype(const float* v, std::size_t n, DType d) {
    std::vector<std::uint8_t> bytes(n * dtype_bytes(d));
    for (std::size_t i = 0; i < n; ++i) {
        if (d == DType::f32) {
            reinterpret_cast<float*>(bytes.data())[i] = v[i];
        } else {
            reinterpret_cast<std::uint16_t*>(bytes.data())[i] = narrow_16(v[i], d);
        }
    }
    return bytes;
}

int width_of(const AttentionStepCase& c) {
    return (c.shape.heads + 2 * c.shape.kv_heads) * c.shape.head_dim;
}
int q_width_of(const AttentionStepCase& c) {
    return c.shape.heads * c.shape.head_dim;
}

// [context, heads + 2 kv_heads, head_dim] of one sequence, in numbers that both 16-bit types hold exactly
// (but for FP32 activations), so that a query is what the products see, whichever type they compute in.
std::vector<float> input_of(const AttentionStepCase& c, std::size_t sequence) {
    const auto width = std::size_t(width_of(c)), q_width = std::size_t(q_width_of(c));
    std::vector<float> v =
        random_floats(std::size_t(c.sequences[sequence].context) * width, 1.0F, 700 + sequence);
    for (std::size_t i = 0; i < v.size(); ++i) {
        if (i % width < q_width) v[i] *= 6.0F;  // scores up to about ±6
        if (c.activation != DType::f32) v[i] = as_stored(as_stored(v[i], DType::bf16), DType::f16);
    }
    return v;
}

std::vector<float> norm_weights(const AttentionStepCase& c, std::uint64_t seed) {
    std::vector<float> w = random_floats(std::size_t(c.shape.head_dim), 0.5F, seed);
    for (float& v : w)
        v += 1.0F;
    return w;
}

std::vector<float> frequencies(const AttentionStepCase& c) {
    std::vector<float> f;
    for (int i = 0; i < c.rotary_dims / 2; ++i)
        f.push_back(float(std::pow(10000.0, -2.0 * i / c.rotary_dims)));
    return f;
}

float scale_of(const AttentionStepCase& c) {
    return 1.0F / std::sqrt(float(c.shape.head_dim));
}

// What one step is uploaded from and runs on.
class StepRunner {
  public:
    StepRunner(Backend& backend, const AttentionStepCase& c) : backend_(backend), c_(c) {
        int rows = prompt_rows, most_blocks = 0, blocks = 1;  // block 0 is nobody's
        std::int32_t queries = 0;
        for (const auto& s : c.sequences) {
            const int n = (s.context + c.block_size - 1) / c.block_size;
            most_blocks = std::max(most_blocks, n);
            blocks += n;
            queries += s.queries;
        }
        rows = std::max(rows, queries);
        KvShape shape;
        shape.blocks = blocks;
        shape.layers = 2;
        shape.kv_heads = c.shape.kv_heads;
        shape.block_size = c.block_size;
        shape.head_dim = c.shape.head_dim;
        shape.dtype = c.cache;
        kv_ = backend.make_kv(shape);
        if (backend.device().kind != "cpu") {  // every type's NaN
            const std::vector<std::uint8_t> nan(shape.block_bytes(), 0xFF);
            for (int b = 0; b < blocks; ++b)
                backend.swap_in(*kv_, b, nan.data());
        }
        // Neighbours in a sequence are strangers in memory.
        std::vector<std::int32_t> order(std::size_t(blocks) - 1);
        std::iota(order.begin(), order.end(), 1);
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[(i * 7919 + 13) % i]);
        std::size_t next = 0;
        for (std::size_t s = 0; s < c.sequences.size(); ++s) {
            const int n = (c.sequences[s].context + c.block_size - 1) / c.block_size;
            tables_.emplace_back(order.begin() + std::ptrdiff_t(next),
                                 order.begin() + std::ptrdiff_t(next) + n);
            tables_.back().resize(std::size_t(most_blocks), 0);
            next += std::size_t(n);
            inputs_.push_back(input_of(c, s));
        }
        BatchLimits limits;
        limits.max_rows = rows;
        limits.max_sequences = std::int32_t(c.sequences.size());
        limits.max_blocks = most_blocks;
        limits.heads = c.shape;
        batch_ = backend.make_batch(limits);
        most_blocks_ = most_blocks;
        const std::size_t element = dtype_bytes(c.activation);
        qkv_ = {buffer(std::size_t(rows * width_of(c)) * element), c.activation, 0, width_of(c), width_of(c)};
        out_ = {buffer(std::size_t(rows * q_width_of(c)) * element), c.activation, 0, q_width_of(c),
                q_width_of(c)};
        rope_ = {buffer(std::size_t(rows * std::max(c.rotary_dims, 1)) * sizeof(float)), DType::f32, 0,
                 c.rotary_dims, c.rotary_dims};
        for (const std::uint64_t seed : {51, 52}) {
            const std::vector<float> w = norm_weights(c, seed);
            norms_.push_back(static_cast<float*>(buffer(w.size() * sizeof(float))));
            backend.upload(norms_.back(), w.data(), w.size() * sizeof(float));
        }
    }

    // Everything before the step that is judged: keys and values only.
    void write_context() {
        for (std::size_t s = 0; s < c_.sequences.size(); ++s) {
            const int end = c_.sequences[s].context - c_.sequences[s].queries;
            for (int begin = 0; begin < end; begin += prompt_rows)
                store_rows({{s, begin, std::min(prompt_rows, end - begin)}});
        }
    }

    std::vector<float> attend() {
        std::vector<Rows> rows;
        for (std::size_t s = 0; s < c_.sequences.size(); ++s) {
            const auto& sequence = c_.sequences[s];
            rows.push_back({s, sequence.context - sequence.queries, sequence.queries});
        }
        // Blocks that hold nothing visible have been given back: their entries name a block of NaN.
        for (std::size_t s = 0; s < c_.sequences.size() && c_.window > 0; ++s) {
            const int first = rows[s].begin - c_.window + 1;
            for (int b = 0; (b + 1) * c_.block_size <= first; ++b)
                tables_[s][std::size_t(b)] = 0;
        }
        store_rows(rows);
        AttentionArgs args;
        args.shape = c_.shape;
        args.scale = scale_of(c_);
        args.window = c_.window;
        args.softcap = c_.softcap;
        args.layer = 1;
        const auto n = std::size_t(out_.rows * out_.cols);
        const std::vector<std::uint8_t> nan(n * dtype_bytes(c_.activation), 0xFF);
        std::vector<float> first;
        for (int again = 0; again < 2;
             ++again) {  // the same bits, and nothing left over from the first launch
            backend_.upload(out_.data, nan.data(), nan.size());
            backend_.attention(*batch_, args, qkv_.columns(0, q_width_of(c_)), *kv_, out_);
            std::vector<std::uint8_t> bytes(nan.size());
            backend_.download(bytes.data(), out_.data, bytes.size());
            std::vector<float> out(n);
            for (std::size_t i = 0; i < n; ++i) {
                if (c_.activation == DType::f32)
                    out[i] = reinterpret_cast<const float*>(bytes.data())[i];
                else if (c_.activation == DType::f16)
                    out[i] = f16_to_f32(reinterpret_cast<const std::uint16_t*>(bytes.data())[i]);
                else
                    out[i] = bf16_to_f32(reinterpret_cast<const std::uint16_t*>(bytes.data())[i]);
            }
            if (again == 1 && out != first) return std::vector<float>(n, std::nanf(""));
            first = std::move(out);
        }
        return first;
    }

  private:
    static constexpr int prompt_rows = 256;
    struct Rows {
        std::size_t sequence;
        int begin, count;
    };

    void* buffer(std::size_t bytes) {
        buffers_.push_back(backend_.allocate(std::max<std::size_t>(bytes, 64)));
        return buffers_.back()->data();
    }

    void store_rows(const std::vector<Rows>& all) {
        StepBatch step;
        step.max_blocks = most_blocks_;
        step.query_start.push_back(0);
        std::vector<float> values;
        for (const Rows& r : all) {
            const auto& table = tables_[r.sequence];
            for (int i = r.begin; i < r.begin + r.count; ++i) {
                step.token_ids.push_back(0);
                step.positions.push_back(i);
                step.row_sequence.push_back(step.sequences());
                step.slots.push_back(table[std::size_t(i / c_.block_size)] * c_.block_size +
                                     i % c_.block_size);
            }
            step.context_tokens.push_back(r.begin + r.count);
            step.query_start.push_back(step.rows());
            step.block_tables.insert(step.block_tables.end(), table.begin(), table.end());
            const auto from = inputs_[r.sequence].begin() + std::ptrdiff_t(r.begin) * width_of(c_);
            values.insert(values.end(), from, from + std::ptrdiff_t(r.count) * width_of(c_));
        }
        backend_.upload_batch(*batch_, step);
        qkv_.rows = out_.rows = rope_.rows = step.rows();
        const std::vector<std::uint8_t> bytes = to_dtype(values.data(), values.size(), c_.activation);
        backend_.upload(qkv_.data, bytes.data(), bytes.size());
        const std::vector<float> f = frequencies(c_);
        if (c_.rotary_dims > 0) backend_.rope_table(*batch_, {c_.rotary_dims, f, 1.0F}, rope_);
        RopeStoreArgs store;
        store.shape = c_.shape;
        store.rotary_dims = c_.rotary_dims;
        store.layer = 1;
        if (c_.head_norms) {
            store.q_norm = norms_[0];
            store.k_norm = norms_[1];
        }
        backend_.rope_store(*batch_, store, rope_, qkv_, *kv_);
    }

    Backend& backend_;
    const AttentionStepCase& c_;
    std::unique_ptr<KvCache> kv_;
    std::unique_ptr<DeviceBatch> batch_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::vector<std::vector<std::int32_t>> tables_;
    std::vector<std::vector<float>> inputs_;
    std::vector<float*> norms_;
    std::int32_t most_blocks_ = 0;
    Tensor qkv_, out_, rope_;
};

// One head as rope_store leaves it, in double.
void norm_and_rotate(const AttentionStepCase& c, const std::vector<float>& weights, int position,
                     std::vector<double>& head) {
    if (c.head_norms) {
        double square = 0;
        for (const double v : head)
            square += v * v;
        const double inverse = 1.0 / std::sqrt(square / double(head.size()) + 1e-6);
        for (std::size_t d = 0; d < head.size(); ++d)
            head[d] *= inverse * double(weights[d]);
    }
    reference::rotate(head.data(), c.rotary_dims, position, frequencies(c), 1.0);
}

}  // namespace

std::vector<float> run_attention_step(Backend& backend, const AttentionStepCase& c) {
    StepRunner runner(backend, c);
    runner.write_context();
    return runner.attend();
}

double attention_step_error(const AttentionStepCase& c, const std::vector<float>& out) {
    const auto dim = std::size_t(c.shape.head_dim);
    const auto heads = std::size_t(c.shape.heads), kv_heads = std::size_t(c.shape.kv_heads);
    const std::vector<float> q_norm = norm_weights(c, 51), k_norm = norm_weights(c, 52);
    double worst = 0;
    std::size_t next = 0;
    for (std::size_t s = 0; s < c.sequences.size(); ++s) {
        const auto& sequence = c.sequences[s];
        const std::vector<float> input = input_of(c, s);
        std::vector<double> keys, values;
        std::vector<float> q;
        std::vector<int> positions;
        double largest_q = 0, largest_k = 0, largest_v = 0;
        for (int t = 0; t < sequence.context; ++t) {
            const float* row = input.data() + std::size_t(t) * std::size_t(width_of(c));
            const bool asks = t >= sequence.context - sequence.queries;
            if (asks) positions.push_back(t);
            for (std::size_t h = 0; h < heads + 2 * kv_heads; ++h) {
                std::vector<double> head(row + h * dim, row + (h + 1) * dim);
                const bool is_q = h < heads, is_v = h >= heads + kv_heads;
                if (is_q && !asks) continue;
                if (!is_v) norm_and_rotate(c, is_q ? q_norm : k_norm, t, head);
                for (const double v : head) {
                    if (is_q) {
                        q.push_back(as_stored(float(v), c.activation));
                        largest_q = std::fmax(largest_q, std::fabs(v));
                        continue;
                    }
                    (is_v ? values : keys).push_back(double(as_stored(float(v), c.cache)));
                    double& largest = is_v ? largest_v : largest_k;
                    largest = std::fmax(largest, std::fabs(v));
                }
            }
        }
        const auto expected = reference::attention(q.data(), positions, keys.data(), values.data(), c.shape,
                                                   double(scale_of(c)), c.window, double(c.softcap));
        // Scores: FP32 sums of exact products, which tensor cores cut instead of rounding (2^-22 a step,
        // errors of either sign); where rope or a norm came before, a query that lies on an edge may round
        // the other way. Probabilities: one rounding to what the products compute in, and nothing under
        // FP16's smallest. The output: one rounding.
        const DType math = c.activation == DType::f32 ? DType::f32
                           : c.cache == DType::bf16   ? DType::bf16
                                                      : DType::f16;
        const double score = largest_q * largest_k;  // · √dim · scale = 1 for errors of either sign
        const double moved = c.rotary_dims > 0 || c.head_norms ? rounding_of(c.activation) * score : 0.0;
        const double score_error = 0x1p-22 * (score * std::sqrt(double(dim)) + double(c.softcap)) +
                                   0x1p-24 * (16.0 + double(sequence.context)) + moved;
        const double lost = math == DType::f16 ? 0x1p-25 * double(sequence.context) : 0.0;
        const double tolerance =
            largest_v * (2.0 * score_error + rounding_of(math) + lost + rounding_of(c.activation)) + 1e-30;
        for (const double e : expected) {
            if (next >= out.size()) return HUGE_VAL;
            const double error = std::fabs(double(out[next++]) - e);
            worst = std::isfinite(error) ? std::fmax(worst, error / tolerance) : HUGE_VAL;
        }
    }
    return next == out.size() ? worst : HUGE_VAL;
}

}  // namespace recto
