// Timings of paged attention and of rope + KV write at a card's sizes, one layer a call, over more layers
// than the card's cache holds. Steps that decode replay a graph, as the engine's do.
#include <numeric>

#include "kernels/bench_print.h"
#include "kernels/synthetic.h"

namespace recto {

namespace {

struct AttentionBench {
    const char* name;
    HeadShape shape;
    int sequences, queries, context;
    DType cache = DType::f16;
    int window = 0;
};

constexpr HeadShape mha{32, 32, 128}, gqa{32, 8, 128};
constexpr AttentionBench benches[] = {
    {"decode 1 x 16384, 32x128", mha, 1, 1, 16384},
    {"decode 1 x 16384, 32x128 fp8", mha, 1, 1, 16384, DType::f8_e4m3},
    {"decode 1 x 4096, 32x128", mha, 1, 1, 4096},
    {"decode 1 x 4096, 32x128 fp8", mha, 1, 1, 4096, DType::f8_e4m3},
    {"decode 1 x 178, 32x128", mha, 1, 1, 178},
    {"decode 1 x 16384, 32/8x128", gqa, 1, 1, 16384},
    {"decode 1 x 4096, 32/8x128", gqa, 1, 1, 4096},
    {"decode 1 x 4096, 32/8x128 fp8", gqa, 1, 1, 4096, DType::f8_e4m3},
    {"decode 1 x 16384, 32/8x128 window 4096", gqa, 1, 1, 16384, DType::f16, 4096},
    {"decode 16 x 178, 32x128", mha, 16, 1, 178},
    {"decode 64 x 178, 32x128", mha, 64, 1, 178},
    {"decode 64 x 1024, 32x128", mha, 64, 1, 1024},
    {"decode 64 x 1024, 32/8x128", gqa, 64, 1, 1024},
    {"decode 256 x 178, 32x128", mha, 256, 1, 178},
    {"decode 256 x 178, 32x128 fp8", mha, 256, 1, 178, DType::f8_e4m3},
    {"decode 256 x 178, 32/8x128", gqa, 256, 1, 178},
    {"decode 8 x 2048, 9/3x64", {9, 3, 64}, 8, 1, 2048},
    {"decode 8 x 2048, 12/2x128", {12, 2, 128}, 8, 1, 2048},
    {"decode 8 x 2048, 8/4x256", {8, 4, 256}, 8, 1, 2048},
    {"prefill 2048, 32x128", mha, 1, 2048, 2048},
    {"prefill 2048, 32x128 fp8", mha, 1, 2048, 2048, DType::f8_e4m3},
    {"prefill 2048, 32/8x128", gqa, 1, 2048, 2048},
    {"prefill 8192, 32/8x128", gqa, 1, 8192, 8192},
    {"prefill 4 x 512, 32x128", mha, 4, 512, 512},
    {"prefill 2048, 9/3x64", {9, 3, 64}, 1, 2048, 2048},
    {"prefill 2048, 8/4x256", {8, 4, 256}, 1, 2048, 2048},
    {"prefill 256 at 16384, 32/8x128", gqa, 1, 256, 16384},
};

class AttentionRun {
  public:
    AttentionRun(Backend& backend, const AttentionBench& b) : backend_(backend), b_(b) {
        const int blocks = (b.context + 15) / 16;
        KvShape shape;
        shape.blocks = b.sequences * blocks;
        shape.kv_heads = b.shape.kv_heads;
        shape.head_dim = b.shape.head_dim;
        shape.dtype = b.cache;
        shape.layers = 1;
        const double layer = double(shape.block_bytes()) * shape.blocks;
        layers_ = std::max(4, std::min(64, int(1.5e9 / layer)));
        shape.layers = layers_;
        kv_ = backend.make_kv(shape);
        fill();
        StepBatch step;
        step.max_blocks = blocks;
        step.query_start.push_back(0);
        for (int s = 0; s < b.sequences; ++s) {
            for (int i = 0; i < blocks; ++i)  // no two neighbours of a sequence lie together
                step.block_tables.push_back(i * b.sequences + (s * 7 + i * 3) % b.sequences);
            for (int r = 0; r < b.queries; ++r) {
                const int position = b.context - b.queries + r;
                step.token_ids.push_back(0);
                step.positions.push_back(position);
                step.row_sequence.push_back(s);
                step.slots.push_back(step.block_tables[std::size_t(s * blocks + position / 16)] * 16 +
                                     position % 16);
            }
            step.context_tokens.push_back(b.context);
            step.query_start.push_back(step.rows());
        }
        BatchLimits limits;
        limits.max_rows = step.rows();
        limits.max_sequences = b.sequences;
        limits.max_blocks = blocks;
        limits.heads = b.shape;
        batch_ = backend.make_batch(limits);
        backend.upload_batch(*batch_, step);
        rows_ = step.rows();
        qkv_ = tensor(rows_, (b.shape.heads + 2 * b.shape.kv_heads) * b.shape.head_dim, DType::f16);
        out_ = tensor(rows_, b.shape.heads * b.shape.head_dim, DType::f16);
        rope_ = tensor(rows_, b.shape.head_dim, DType::f32);
    }

    int layers() const { return layers_; }
    std::int64_t rows() const { return rows_; }

    double seconds_of_attention() {
        AttentionArgs args;
        args.shape = b_.shape;
        args.scale = 0.08F;
        args.window = b_.window;
        return seconds([&](int layer) {
            args.layer = layer;
            backend_.attention(*batch_, args, qkv_.columns(0, out_.cols), *kv_, out_);
        });
    }
    double seconds_of_rope_store() {
        RopeStoreArgs args;
        args.shape = b_.shape;
        args.rotary_dims = b_.shape.head_dim;
        return seconds([&](int layer) {
            args.layer = layer;
            backend_.rope_store(*batch_, args, rope_, qkv_, *kv_);
        });
    }

  private:
    template <typename F>
    double seconds(F&& one) {
        // A key that no step of an engine has, another for each timing: graphs are kept by their keys.
        static std::int32_t number = 0;
        const GraphKey key{-1, -1, ++number, b_.queries == 1};
        return time_of(backend_,
                       [&] {
                           backend_.run(key, [&] {
                               for (int layer = 0; layer < layers_; ++layer)
                                   one(layer);
                           });
                       }) /
               layers_;
    }
    void fill() {
        const std::size_t n = kv_->shape().block_bytes() / dtype_bytes(b_.cache);
        const std::vector<float> v = random_floats(n, 1.0F, 3);
        std::vector<std::uint8_t> block(kv_->shape().block_bytes());
        for (std::size_t i = 0; i < n; ++i) {
            if (b_.cache == DType::f8_e4m3)
                block[i] = f32_to_e4m3(v[i]);
            else
                reinterpret_cast<std::uint16_t*>(block.data())[i] = f32_to_f16(v[i]);
        }
        backend_.swap_in(*kv_, 0, block.data());
        for (int i = 1; i < kv_->shape().blocks; ++i)
            backend_.copy_block(*kv_, 0, i);
    }
    Tensor tensor(std::int64_t rows, std::int64_t cols, DType dtype) {
        const std::vector<float> v = random_floats(std::size_t(rows * cols), 1.0F, buffers_.size());
        std::vector<std::uint16_t> half(v.size());
        std::transform(v.begin(), v.end(), half.begin(), f32_to_f16);
        const void* from = dtype == DType::f16 ? static_cast<const void*>(half.data()) : v.data();
        const std::size_t bytes = v.size() * dtype_bytes(dtype);
        buffers_.push_back(backend_.allocate(bytes));
        backend_.upload(buffers_.back()->data(), from, bytes);
        return {buffers_.back()->data(), dtype, rows, cols, cols};
    }

    Backend& backend_;
    AttentionBench b_;
    int layers_ = 0;
    std::int64_t rows_ = 0;
    std::unique_ptr<KvCache> kv_;
    std::unique_ptr<DeviceBatch> batch_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    Tensor qkv_, out_, rope_;
};

}  // namespace

void bench_attention(Backend& backend, const std::string& filter, const Printer& print) {
    if (backend.device().kind == "cpu") return;  // whole steps are timed there, at a computer's sizes
    double copy = 0;
    for (const AttentionBench& b : benches) {
        const std::string name = std::string("attention ") + b.name;
        const std::string rope = std::string("rope_store ") + b.name;
        const auto wanted = [&](const std::string& n) {
            return filter.empty() || n.find(filter) != std::string::npos;
        };
        if (!wanted(name) && !wanted(rope)) continue;
        if (copy == 0) copy = copy_rate(backend);
        AttentionRun run(backend, b);
        const double q_width = double(b.shape.heads) * b.shape.head_dim;
        const double kv_width = 2.0 * b.shape.kv_heads * b.shape.head_dim * double(dtype_bytes(b.cache));
        const auto report = [&](const std::string& n, double t, double bytes, double ops) {
            std::ostringstream share;
            share << std::fixed << std::setprecision(0) << 100 * bytes / t / copy << " % of a copy's "
                  << copy * 1e-9 << " GB/s";
            print.line(n, t, bytes, ops, false, share.str());
        };
        if (wanted(name)) {
            const double seen = b.window > 0 ? b.window : b.context;
            const double keys = seen * b.queries - 0.5 * b.queries * (b.queries - 1.0);
            report(name, run.seconds_of_attention(),
                   b.sequences * (seen * kv_width + b.queries * 4.0 * q_width),
                   b.sequences * 4.0 * q_width * keys);
        }
        if (wanted(rope)) {
            const double read = 2.0 * q_width + 4.0 * b.shape.kv_heads * b.shape.head_dim;
            report(rope, run.seconds_of_rope_store(),
                   double(run.rows()) * (read + 2.0 * q_width + kv_width + 4.0 * b.shape.head_dim), 0);
        }
    }
}

}  // namespace recto
