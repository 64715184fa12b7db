// The transformer on a device that goes on while the host does: decode steps filled up to their bucket,
// tokens drawn behind the logits and fed to the next step by number. The device is the CPU's backend under
// another name, which computes at once and draws by the scalar reference; what the answers must be comes from
// the CPU's backend itself and the host's sampler.
#include "engine/engine.h"
#include "engine/model/transformer.h"
#include "kernels/draw_cases.h"
#include "kernels/synthetic.h"
// Qt comes after them.
#include <QTest>
#include <cmath>
#include <map>
#include <utility>

#include "support/registry.h"

using namespace recto;

namespace {

class LateBackend final : public Backend {
  public:
    LateBackend() {
        CpuOptions options;
        options.threads = 1;
        cpu_ = make_cpu_backend(options);
    }

    bool asynchronous() const override { return true; }
    void upload_batch(DeviceBatch& batch, const StepBatch& step) override {
        StepBatch known = step;
        for (std::size_t r = 0; r < step.token_from.size(); ++r)
            if (step.token_from[r] >= 0) known.token_ids[r] = ids_[0].at(std::size_t(step.token_from[r]));
        cpu_->upload_batch(batch, known);
        if (step.rows() == step.sequences() && step.rows() == step.outputs()) ++decode_steps[step.rows()];
    }
    void draw(DeviceBatch& batch, const DrawArgs& args, Tensor logits) override {
        const auto& draws = batch.host().draws;
        fresh_.clear();
        for (std::int64_t i = 0; i < logits.rows; ++i)
            fresh_.push_back(draws.empty()
                                 ? -1
                                 : reference::draw(logits.f32() + i * logits.row_stride, int(args.valid_cols),
                                                   args, draws.at(std::size_t(i))));
    }
    void fetch_drawn(DeviceBatch&) override {
        ids_[1] = std::move(ids_[0]);
        ids_[0] = std::exchange(fresh_, {});
    }
    std::span<const std::int32_t> drawn(DeviceBatch&, int fetches_ago) override { return ids_[fetches_ago]; }

    DeviceInfo device() const override { return cpu_->device(); }
    DType activation_dtype(DType wanted) const override { return cpu_->activation_dtype(wanted); }
    std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
    std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override { return cpu_->allocate_host(bytes); }
    void upload(void* to, const void* from, std::size_t bytes) override { cpu_->upload(to, from, bytes); }
    void download(void* to, const void* from, std::size_t bytes) override { cpu_->download(to, from, bytes); }
    void synchronize() override {}
    std::unique_ptr<PackedWeight> pack(std::span<const WeightRows* const> parts,
                                       const PackOptions& options) override {
        return cpu_->pack(parts, options);
    }
    std::unique_ptr<PackedExperts> stack_experts(std::vector<std::unique_ptr<PackedWeight>> e) override {
        return cpu_->stack_experts(std::move(e));
    }
    std::unique_ptr<KvCache> make_kv(const KvShape& shape) override { return cpu_->make_kv(shape); }
    void copy_block(KvCache& kv, int from, int to) override { cpu_->copy_block(kv, from, to); }
    void swap_out(const KvCache& kv, int block, void* host) override { cpu_->swap_out(kv, block, host); }
    void swap_in(KvCache& kv, int block, const void* host) override { cpu_->swap_in(kv, block, host); }
    std::unique_ptr<DeviceBatch> make_batch(const BatchLimits& l) override { return cpu_->make_batch(l); }
    void run(const GraphKey& key, const std::function<void()>& enqueue) override { cpu_->run(key, enqueue); }
    void embed(const DeviceBatch& b, const PackedWeight& t, float scale, Tensor out) override {
        cpu_->embed(b, t, scale, out);
    }
    void rms_norm(Tensor x, const float* w, float eps, Tensor out) override {
        cpu_->rms_norm(x, w, eps, out);
    }
    void linear(Tensor x, const PackedWeight& w, Epilogue e, Tensor out) override {
        cpu_->linear(x, w, e, out);
    }
    void rope_table(const DeviceBatch& b, const RopeSpec& rope, Tensor out) override {
        cpu_->rope_table(b, rope, out);
    }
    void rope_store(const DeviceBatch& b, const RopeStoreArgs& a, Tensor table, Tensor qkv,
                    KvCache& kv) override {
        cpu_->rope_store(b, a, table, qkv, kv);
    }
    void attention(const DeviceBatch& b, const AttentionArgs& a, Tensor q, const KvCache& kv,
                   Tensor out) override {
        cpu_->attention(b, a, q, kv, out);
    }
    void gather_rows(const DeviceBatch& b, Tensor x, Tensor out) override { cpu_->gather_rows(b, x, out); }
    void argmax(Tensor logits, std::int64_t valid, std::int32_t* ids) override {
        cpu_->argmax(logits, valid, ids);
    }
    void add(Tensor x, Tensor delta) override { cpu_->add(x, delta); }
    void route(Tensor logits, bool renormalize, const ExpertChoice& choice) override {
        cpu_->route(logits, renormalize, choice);
    }
    void expert_gate_up(Tensor x, const ExpertChoice& choice, const PackedExperts& w, Epilogue e,
                        Tensor out) override {
        cpu_->expert_gate_up(x, choice, w, e, out);
    }
    void expert_down(Tensor x, const ExpertChoice& choice, const PackedExperts& w, Tensor out) override {
        cpu_->expert_down(x, choice, w, out);
    }

    std::map<std::int32_t, int> decode_steps;  // of so many rows

  private:
    std::unique_ptr<Backend> cpu_;
    std::vector<std::int32_t> ids_[2], fresh_;
};

std::shared_ptr<const Model> random_model(std::shared_ptr<Backend> backend) {
    auto model = std::make_shared<Model>();
    model->backend = backend;
    ModelConfig& c = model->config;
    c.hidden = 64;
    c.layers = 2;
    c.heads = 4;
    c.kv_heads = 2;
    c.head_dim = 16;
    c.intermediate = 96;
    c.vocab = 80;
    c.max_position = 128;
    c.logits_scale = 0.5F;
    c.logits_softcap = 20.0F;
    c.rope.rotary_dims = 16;
    for (int i = 0; i < 8; ++i)
        c.rope.inverse_frequency.push_back(std::pow(10000.0F, -float(i) / 8));
    std::uint64_t seed = 7;
    const auto pack = [&](std::initializer_list<std::int64_t> rows, std::int64_t cols) {
        std::vector<std::unique_ptr<WeightRows>> made;
        std::vector<const WeightRows*> parts;
        for (std::int64_t r : rows) {
            made.push_back(make_synthetic({r, cols, dense_form(DType::f32), seed++}));
            parts.push_back(made.back().get());
        }
        return backend->pack(parts, Activations::floating);
    };
    const auto ones = [&](int n) {
        const std::vector<float> values(std::size_t(n), 1.0F);
        auto buffer = backend->allocate(values.size() * sizeof(float));
        backend->upload(buffer->data(), values.data(), values.size() * sizeof(float));
        return buffer;
    };
    model->embedding = pack({c.vocab}, c.hidden);
    model->output_norm = ones(c.hidden);
    for (int i = 0; i < c.layers; ++i) {
        LayerWeights w;
        w.attn_norm = ones(c.hidden);
        w.ffn_norm = ones(c.hidden);
        w.qkv = pack({64, 32, 32}, c.hidden);
        w.o = pack({c.hidden}, 64);
        w.gate_up = pack({c.intermediate, c.intermediate}, c.hidden);
        w.down = pack({c.hidden}, c.intermediate);
        model->layers.push_back(std::move(w));
    }
    return model;
}

EngineOptions options() {
    EngineOptions o;
    o.kv_blocks = 60;
    o.block_size = 8;
    o.max_model_len = 64;
    o.max_num_seqs = 12;
    o.max_num_batched_tokens = 48;
    o.seed = 3;
    return o;
}

std::unique_ptr<Engine> make_engine(std::shared_ptr<Backend> backend) {
    const auto model = random_model(std::move(backend));
    const EngineOptions o = options();
    BatchLimits limits;
    limits.max_rows = o.max_num_batched_tokens;
    limits.max_sequences = o.max_num_seqs;
    limits.max_outputs = o.max_num_seqs + 16;
    limits.max_blocks = o.max_model_len / o.block_size;
    return std::make_unique<Engine>(
        make_transformer(model, kv_shape_for(model->config, DType::f32, o.kv_blocks, o.block_size), limits),
        nullptr, std::vector<std::int32_t>{}, o);
}

// Eleven requests of all lengths, some of them with what only the host can do.
std::map<RequestId, std::vector<std::int32_t>> answers(Engine& engine) {
    for (int i = 0; i < 11; ++i) {
        Request r;
        for (int t = 0; t < 2 + 3 * i; ++t)
            r.prompt.push_back((17 * i + 5 * t * t) % 80);
        r.sampling.temperature = i % 3 == 0 ? 0.0 : 1.0;
        r.sampling.top_p = i % 3 == 1 ? 0.9 : 1.0;
        r.sampling.top_k = i % 4 == 1 ? 12 : 0;
        r.sampling.seed = 100 + i;
        r.sampling.max_tokens = 8 + 2 * i;
        if (i == 5) r.sampling.repetition_penalty = 1.2;
        engine.submit(r);
    }
    std::map<RequestId, std::vector<std::int32_t>> ids;
    while (engine.has_work())
        for (const RequestEvent& e : engine.step()) {
            auto& answer = ids[e.request];
            answer.insert(answer.end(), e.token_ids.begin(), e.token_ids.end());
        }
    return ids;
}

}  // namespace

class TestAsynchronousModel : public QObject {
    Q_OBJECT
  private slots:
    void buckets() {
        const std::map<int, int> expected{{1, 1},  {2, 2},   {3, 4},     {4, 4},     {5, 8},    {8, 8},
                                          {9, 16}, {17, 24}, {249, 256}, {256, 256}, {257, 288}};
        for (const auto& [rows, bucket] : expected)
            QCOMPARE(decode_bucket(rows), bucket);
    }

    void answersAreThoseOfTheHost() {
        CpuOptions one;
        one.threads = 1;
        const auto expected = answers(*make_engine(make_cpu_backend(one)));
        const auto late = std::make_shared<LateBackend>();
        const auto found = answers(*make_engine(late));
        QCOMPARE(found.size(), std::size_t(11));
        QVERIFY(found == expected);
        for (const auto& [id, ids] : found)
            QCOMPARE(ids.size(), 8 + 2 * (std::size_t(id) - 1));
        // Decode steps of 11 or of 3 sequences come in no size of their own; 12 places bound the bucket
        // of 16.
        for (int rows : {3, 5, 6, 7, 9, 10, 11})
            QVERIFY(!late->decode_steps.contains(rows));
        QVERIFY(late->decode_steps[12] > 3);
    }
};

RECTO_TEST_CLASS(TestAsynchronousModel);
#include "test_asynchronous_model.moc"
