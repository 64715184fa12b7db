#include "engine/model/transformer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "engine/model/workspace.h"
#include "kernels/error.h"

namespace recto {
namespace {

const float* f32_data(const std::unique_ptr<Buffer>& buffer) {
    return buffer ? static_cast<const float*>(buffer->data()) : nullptr;
}

BatchLimits with_heads(BatchLimits limits, const ModelConfig& config) {
    limits.heads = {config.heads, config.kv_heads, config.head_dim};
    return limits;
}

class Transformer final : public StepModel {
  public:
    Transformer(std::shared_ptr<const Model> model, const KvShape& kv_shape, const BatchLimits& limits)
        : model_(std::move(model)),
          config_(model_->config),
          backend_(*model_->backend),
          workspace_(backend_, config_, model_->activation_dtype, limits),
          batch_(backend_.make_batch(with_heads(limits, config_))),
          limits_(limits),
          spare_block_(kv_shape.blocks),
          kv_(backend_.make_kv(with_spare_block(kv_shape, backend_))) {
        // x + s·branch is computed as s·(x/s + branch): the residual stream holds x/s, and a norm over it is
        // the norm over x if its epsilon is divided by s² as well.
        stream_scale_ = config_.residual_scale;
        stream_eps_ = config_.norm_eps / (stream_scale_ * stream_scale_);
        shape_ = {config_.heads, config_.kv_heads, config_.head_dim};
        attention_scale_ = config_.attention_scale != 0.0F ? config_.attention_scale
                                                           : 1.0F / std::sqrt(float(config_.head_dim));
        drawable_ = config_.vocab;
        host_logits_.resize(std::size_t(limits.max_outputs));
        host_ids_.resize(std::size_t(limits.max_outputs));
    }

    int vocab() const override { return config_.vocab; }

    void forward(const StepBatch& step) override {
        assert(step.rows() > 0);
        const StepBatch& full = filled_up(step);
        backend_.upload_batch(*batch_, full);
        const bool decode_only = full.rows() == full.sequences() && full.rows() == full.outputs();
        const GraphKey key{full.rows(), full.sequences(), full.outputs(), decode_only};
        backend_.run(key, [&] { enqueue(full.rows(), full.outputs()); });
        if (backend_.asynchronous()) backend_.fetch_drawn(*batch_);
        outputs_ = step.outputs();
        for (auto& row : host_logits_)
            row.clear();
        ids_valid_ = -1;
    }

    bool asynchronous() const override { return backend_.asynchronous(); }
    void draw_below(std::int32_t ids) override { drawable_ = ids; }
    std::span<const std::int32_t> drawn(int steps_ago) override { return backend_.drawn(*batch_, steps_ago); }

    std::span<float> logits(int output) override {
        assert(output >= 0 && output < outputs_);
        auto& row = host_logits_[std::size_t(output)];
        if (row.empty()) {
            row.resize(std::size_t(config_.vocab));
            backend_.download(row.data(),
                              workspace_.logits.f32() + std::int64_t(output) * workspace_.logits.row_stride,
                              row.size() * sizeof(float));
            if (config_.logits_scale != 1.0F)
                for (float& v : row)
                    v *= config_.logits_scale;
            if (config_.logits_softcap > 0.0F)
                for (float& v : row)
                    v = config_.logits_softcap * std::tanh(v / config_.logits_softcap);
        }
        return row;
    }

    // The scale is positive and the soft cap monotone, so the raw logits' argmax is the answer.
    std::int32_t argmax(int output, int valid) override {
        assert(output >= 0 && output < outputs_);
        if (ids_valid_ != valid) {
            backend_.argmax(workspace_.logits.first_rows(outputs_), valid, workspace_.ids);
            backend_.download(host_ids_.data(), workspace_.ids, std::size_t(outputs_) * sizeof(std::int32_t));
            ids_valid_ = valid;
        }
        return host_ids_[std::size_t(output)];
    }

    std::size_t block_bytes() const override { return kv_->shape().block_bytes(); }
    void copy_block(std::int32_t from, std::int32_t to) override { backend_.copy_block(*kv_, from, to); }
    void swap_out(std::int32_t block, void* host) override { backend_.swap_out(*kv_, block, host); }
    void swap_in(std::int32_t block, const void* host) override { backend_.swap_in(*kv_, block, host); }

  private:
    // A cache has one block more where decode steps are filled up: what their rows without a sequence write.
    static KvShape with_spare_block(KvShape shape, const Backend& backend) {
        shape.blocks += backend.asynchronous() ? 1 : 0;
        return shape;
    }

    // The step, or a copy of it with rows of one token each, alone in the spare block, up to its bucket.
    const StepBatch& filled_up(const StepBatch& step) {
        const std::int32_t rows = step.rows();
        if (!backend_.asynchronous() || rows != step.sequences() || rows != step.outputs()) return step;
        const std::int32_t bucket =
            std::min({decode_bucket(rows), limits_.max_rows, limits_.max_sequences, limits_.max_outputs});
        if (bucket <= rows) return step;
        StepBatch& full = filled_up_;
        full = step;
        const std::int32_t slot = spare_block_ * kv_->shape().block_size;
        for (std::int32_t r = rows; r < bucket; ++r) {
            full.token_ids.push_back(0);
            full.positions.push_back(0);
            full.row_sequence.push_back(r);
            full.slots.push_back(slot);
            full.query_start.push_back(r + 1);
            full.context_tokens.push_back(1);
            full.block_tables.push_back(spare_block_);
            full.block_tables.insert(full.block_tables.end(), std::size_t(full.max_blocks - 1), -1);
            full.logit_rows.push_back(r);
            if (!full.draws.empty()) full.draws.emplace_back();
            if (!full.token_from.empty()) full.token_from.push_back(-1);
            if (!full.sequence_ids.empty()) full.sequence_ids.push_back(~std::uint64_t(r));
        }
        return full;
    }

    // Everything below is one fixed sequence of operations per (rows, outputs): what a captured graph holds.
    void enqueue(int rows, int outputs) {
        const Tensor x = workspace_.residual.first_rows(rows);  // [rows, hidden]
        backend_.embed(*batch_, *model_->embedding, config_.embedding_scale / stream_scale_, x);
        fill_rope(config_.rope, workspace_.rope.first_rows(rows));
        if (config_.rope_local.rotary_dims > 0)
            fill_rope(config_.rope_local, workspace_.rope_local.first_rows(rows));
        WeightStream* stream = model_->weight_stream.get();
        if (stream) stream->begin_step();
        for (int layer = 0; layer < config_.layers; ++layer) {
            if (stream) stream->enter_layer(layer);
            attention_block(layer, rows, x);
            mlp_block(layer, rows, x);
            if (stream) stream->leave_layer(layer);
        }
        if (outputs == 0) return;
        const Tensor wanted = workspace_.gathered.first_rows(outputs);  // [outputs, hidden]
        const Tensor normed = workspace_.normed.first_rows(outputs);
        backend_.gather_rows(*batch_, x, wanted);
        backend_.rms_norm(wanted, f32_data(model_->output_norm), stream_eps_, normed);
        const PackedWeight& head = model_->lm_head ? *model_->lm_head : *model_->embedding;
        const Tensor logits = workspace_.logits.first_rows(outputs);
        backend_.linear(normed, head, Epilogue::store, logits);
        if (backend_.asynchronous())
            backend_.draw(*batch_, {drawable_, config_.logits_scale, config_.logits_softcap}, logits);
    }

    void fill_rope(const RopeConfig& rope, Tensor table) {
        backend_.rope_table(*batch_, {rope.rotary_dims, rope.inverse_frequency, rope.attention_factor},
                            table);
    }

    void attention_block(int layer, int rows, Tensor x) {
        const LayerWeights& w = model_->layers[std::size_t(layer)];
        const Tensor qkv = workspace_.qkv.first_rows(rows);          // [rows, (heads + 2 kv_heads) head_dim]
        const Tensor mixed = workspace_.attention.first_rows(rows);  // [rows, heads head_dim]
        const int window = config_.window.empty() ? 0 : config_.window[std::size_t(layer)];
        const bool local = window > 0 && config_.rope_local.rotary_dims > 0;
        const RopeConfig& rope = local ? config_.rope_local : config_.rope;

        backend_.linear(branch_input(x, w.attn_norm), *w.qkv, Epilogue::store, qkv);
        if (config_.qk_norm == QkNorm::all_heads) norm_all_heads(w, qkv);
        RopeStoreArgs store;
        store.shape = shape_;
        if (config_.qk_norm == QkNorm::per_head) {
            store.q_norm = f32_data(w.q_norm);
            store.k_norm = f32_data(w.k_norm);
        }
        store.norm_eps = config_.norm_eps;
        const bool unrotated = !config_.unrotated.empty() && config_.unrotated[std::size_t(layer)] != 0;
        store.rotary_dims = unrotated ? 0 : rope.rotary_dims;
        store.layer = layer;
        backend_.rope_store(*batch_, store,
                            (local ? workspace_.rope_local : workspace_.rope).first_rows(rows), qkv, *kv_);
        AttentionArgs args;
        args.shape = shape_;
        args.scale = attention_scale_;
        args.window = window;
        args.softcap = config_.attention_softcap;
        args.layer = layer;
        backend_.attention(*batch_, args, qkv.columns(0, std::int64_t(config_.heads) * config_.head_dim),
                           *kv_, mixed);
        add_branch(mixed, *w.o, w.attn_post_norm, x);
    }

    void mlp_block(int layer, int rows, Tensor x) {
        const LayerWeights& w = model_->layers[std::size_t(layer)];
        const Tensor gated = workspace_.gated.first_rows(rows);  // [rows, intermediate]
        const Epilogue gate =
            config_.activation == Activation::silu ? Epilogue::silu_mul : Epilogue::gelu_mul;
        if (config_.is_mixture(layer)) {
            mixture(w, gate, branch_input(x, w.ffn_norm), x);
            return;
        }
        backend_.linear(branch_input(x, w.ffn_norm), *w.gate_up, gate, gated);
        add_branch(gated, *w.down, w.ffn_post_norm, x);
    }

    // x += the weighted answers of the experts that the router chose for each row.
    void mixture(const LayerWeights& w, Epilogue gate, Tensor normed, Tensor x) {
        const Tensor scores = workspace_.router_logits.first_rows(x.rows);  // [rows, experts]
        ExpertChoice choice = workspace_.choice;                            // [rows, k]
        choice.rows = x.rows;
        const Tensor gated = workspace_.expert_gated.first_rows(x.rows * choice.per_row);
        backend_.linear(normed, *w.router, Epilogue::store, scores);
        backend_.route(scores, config_.experts.renormalize, choice);
        backend_.expert_gate_up(normed, choice, *w.experts_gate_up, gate, gated);
        backend_.expert_down(gated, choice, *w.experts_down, x);
    }

    // What attention and MLP read: the stream, normalized where the family has a norm there.
    Tensor branch_input(Tensor x, const std::unique_ptr<Buffer>& norm) {
        if (!norm) return x;
        const Tensor normed = workspace_.normed.first_rows(x.rows);  // [rows, hidden]
        backend_.rms_norm(x, f32_data(norm), stream_eps_, normed);
        return normed;
    }

    void norm_all_heads(const LayerWeights& w, Tensor qkv) {
        const std::int64_t q_cols = std::int64_t(config_.heads) * config_.head_dim;
        const Tensor q = qkv.columns(0, q_cols);
        const Tensor k = qkv.columns(q_cols, std::int64_t(config_.kv_heads) * config_.head_dim);
        backend_.rms_norm(q, f32_data(w.q_norm), config_.norm_eps, q);
        backend_.rms_norm(k, f32_data(w.k_norm), config_.norm_eps, k);
    }

    // x += W·branch, with the norm on the branch where the family has one.
    void add_branch(Tensor branch, const PackedWeight& weight, const std::unique_ptr<Buffer>& post_norm,
                    Tensor x) {
        if (!post_norm) {
            backend_.linear(branch, weight, Epilogue::add, x);
            return;
        }
        const Tensor delta = workspace_.delta.first_rows(x.rows);
        const Tensor normed = workspace_.normed.first_rows(x.rows);
        backend_.linear(branch, weight, Epilogue::store, delta);
        backend_.rms_norm(delta, f32_data(post_norm), config_.norm_eps, normed);
        backend_.add(x, normed);
    }

    std::shared_ptr<const Model> model_;
    const ModelConfig& config_;
    Backend& backend_;
    Workspace workspace_;
    std::unique_ptr<DeviceBatch> batch_;
    BatchLimits limits_;
    std::int32_t spare_block_;  // the block behind those that sequences get
    StepBatch filled_up_;
    std::unique_ptr<KvCache> kv_;
    HeadShape shape_;
    float attention_scale_ = 0;
    float stream_scale_ = 1, stream_eps_ = 0;
    std::int32_t drawable_ = 0;                    // ids below it can be drawn
    int outputs_ = 0;                              // of the last step
    std::vector<std::vector<float>> host_logits_;  // [max_outputs][vocab], filled when asked for
    std::vector<std::int32_t> host_ids_;           // [max_outputs]
    int ids_valid_ = -1;                           // the `valid` that host_ids_ were made for; -1: none
};

}  // namespace

std::unique_ptr<StepModel> make_transformer(std::shared_ptr<const Model> model, const KvShape& kv_shape,
                                            const BatchLimits& limits) {
    return std::make_unique<Transformer>(std::move(model), kv_shape, limits);
}

KvShape kv_shape_for(const ModelConfig& config, DType dtype, int blocks, int block_size) {
    KvShape shape;
    shape.blocks = blocks;
    shape.layers = config.layers;
    shape.kv_heads = config.kv_heads;
    shape.block_size = block_size;
    shape.head_dim = config.head_dim;
    shape.dtype = dtype;
    return shape;
}

}  // namespace recto
