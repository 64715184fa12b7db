// Opens a model, packs its weights into the backend's memory and times the stages.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "engine/load/rope_scaling.h"
#include "engine/model/model.h"
#include "engine/model/transformer.h"
#include "kernels/error.h"

namespace recto {
namespace {

using Clock = std::chrono::steady_clock;

// Stages follow each other without a gap, so that they sum to the whole.
class StageTimer {
  public:
    void end_stage(const char* name) {
        const auto now = Clock::now();
        stages_.push_back({name, std::chrono::duration<double>(now - last_).count()});
        last_ = now;
    }
    // Stages that overlap share the time since the last one ended, in the ratio of `parts`.
    void end_stages(std::initializer_list<LoadStage> parts) {
        const auto now = Clock::now();
        const double seconds = std::chrono::duration<double>(now - last_).count();
        double sum = 0;
        for (const LoadStage& part : parts)
            sum += part.seconds;
        for (const LoadStage& part : parts)
            stages_.push_back(
                {part.name, sum > 0 ? seconds * part.seconds / sum : seconds / double(parts.size())});
        last_ = now;
    }
    double total() const { return std::chrono::duration<double>(last_ - start_).count(); }
    std::vector<LoadStage> take() { return std::move(stages_); }

  private:
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
    std::vector<LoadStage> stages_;
};

bool role_of_expert(TensorRole role) {
    return role == TensorRole::expert_gate || role == TensorRole::expert_up ||
           role == TensorRole::expert_down;
}

class Loader {
  public:
    Loader(const ModelSource& source, Model& model, const std::function<void(const LoadProgress&)>& progress,
           const CancelFlag& cancel)
        : source_(source), model_(model), progress_(progress), cancel_(cancel) {
        total_bytes_ = std::max<std::uint64_t>(source.file_bytes(), 1);
    }

    // `host_layers` stay in host memory.
    void load_weights(std::vector<int> host_layers, StageTimer& timer) {
        // Whatever ends this function early gives up what is under way before the weights that it is for go.
        load_ = model_.backend->begin_load({std::move(host_layers)});
        pack_all();
        if (!load_) {
            timer.end_stage("repack");
            return;
        }
        model_.weight_stream = load_->finish();
        if (model_.weight_stream) {
            model_.host_weight_bytes = model_.weight_stream->host_bytes();
            model_.weight_bytes += model_.weight_stream->device_bytes() - model_.host_weight_bytes;
        }
        const LoadTimes times = load_->times();
        load_.reset();
        timer.end_stages({{"read", times.read_s}, {"repack", times.repack_s}, {"upload", times.upload_s}});
    }

    void report(const char* stage, double fraction) const {
        if (cancel_ && cancel_->load())
            throw Error(ErrorKind::cancelled, source_.path().string() + ": loading was cancelled");
        if (progress_) progress_({stage, fraction});
    }

  private:
    void pack_all() {
        const ModelConfig& c = model_.config;
        // A card's prefill makes logits of few rows: rounding them gains nothing.
        const Activations mode = model_.activations;
        const bool on_card = mode == Activations::token_fp8 || mode == Activations::token_int8;
        const Activations logits = on_card ? Activations::floating : sensitive();
        model_.embedding = pack({TensorRole::embedding}, 0, logits);
        if (!c.tied_embedding) model_.lm_head = pack({TensorRole::lm_head}, 0, logits);
        model_.output_norm = norm(TensorRole::output_norm, 0, true);
        model_.layers.resize(std::size_t(c.layers));
        for (int i = 0; i < c.layers; ++i)
            load_layer(i);
    }

    void load_layer(int i) {
        if (load_) load_->begin_layer(i);
        const ModelConfig& c = model_.config;
        LayerWeights& w = model_.layers[std::size_t(i)];
        if (c.pre_norms) {
            w.attn_norm = norm(TensorRole::attn_norm, i, true);
            w.ffn_norm = norm(TensorRole::ffn_norm, i, true);
        }
        w.qkv = pack({TensorRole::attn_q, TensorRole::attn_k, TensorRole::attn_v}, i, sensitive());
        if (c.qk_norm != QkNorm::none) {
            w.q_norm = norm(TensorRole::attn_q_norm, i, true);
            w.k_norm = norm(TensorRole::attn_k_norm, i, true);
        }
        w.o = pack({TensorRole::attn_o}, i, model_.activations);
        if (c.is_mixture(i)) {
            // Scores pick experts, so a rounding of the router's input can change whole rows: it has none.
            w.router = pack({TensorRole::ffn_router}, i, Activations::floating);
            w.experts_gate_up = pack_experts({TensorRole::expert_gate, TensorRole::expert_up}, i, true);
            w.experts_down = pack_experts({TensorRole::expert_down}, i, false);
        } else {
            w.gate_up = pack({TensorRole::ffn_gate, TensorRole::ffn_up}, i, model_.activations, 0, true);
            w.down = pack({TensorRole::ffn_down}, i, model_.activations);
        }
        if (c.post_norms) {
            w.attn_post_norm = norm(TensorRole::attn_post_norm, i, true);
            w.ffn_post_norm = norm(TensorRole::ffn_post_norm, i, true);
        }
        // While another thread reads them, pages that go would only come again.
        if (!load_) source_.release_pages();
    }

    // Attention's inputs and the logits feel int8 rounding most: on SmolLM2-135M they hold 57 % of the
    // divergence from float32 (0.00086 and 0.00079 of 0.00295 nats over 619 tokens) and, alone, 15 % of the
    // products of a layer.
    Activations sensitive() const {
        return model_.activations == Activations::int8 ? Activations::int8_twice : model_.activations;
    }

    std::unique_ptr<PackedExperts> pack_experts(std::initializer_list<TensorRole> roles, int layer,
                                                bool gated) {
        std::vector<std::unique_ptr<PackedWeight>> experts;
        for (int e = 0; e < model_.config.experts.count; ++e)
            experts.push_back(pack(roles, layer, model_.activations, e, gated));
        return model_.backend->stack_experts(std::move(experts));
    }

    std::unique_ptr<PackedWeight> pack(std::initializer_list<TensorRole> roles, int layer, Activations mode,
                                       int expert = 0, bool gated = false) {
        std::vector<std::unique_ptr<WeightRows>> owned;
        std::vector<const WeightRows*> parts;
        for (const TensorRole role : roles) {
            owned.push_back(source_.weight(role, layer, expert));
            if (!owned.back()) throw missing(role, layer, expert);
            parts.push_back(owned.back().get());
        }
        PackOptions options(mode, model_.activation_dtype, gated);
        options.expert = role_of_expert(*roles.begin());
        auto packed = model_.backend->pack(parts, options);
        model_.weight_bytes += packed->bytes();
        report("repack", std::min(1.0, double(model_.weight_bytes) / double(total_bytes_)));
        return packed;
    }

    std::unique_ptr<Buffer> norm(TensorRole role, int layer, bool required) {
        const std::vector<float> values = source_.norm(role, layer);
        if (values.empty()) {
            if (required) throw missing(role, layer);
            return nullptr;
        }
        auto buffer = model_.backend->allocate(values.size() * sizeof(float));
        model_.backend->upload(buffer->data(), values.data(), values.size() * sizeof(float));
        model_.weight_bytes += values.size() * sizeof(float);
        return buffer;
    }

    Error missing(TensorRole role, int layer, int expert = 0) const {
        return Error(ErrorKind::input, source_.path().string() + ": expected the tensor " +
                                           source_.tensor_name(role, layer, expert) + " of a " +
                                           model_.config.family +
                                           " model, found none; the file is incomplete");
    }

    const ModelSource& source_;
    Model& model_;
    const std::function<void(const LoadProgress&)>& progress_;
    const CancelFlag& cancel_;
    std::unique_ptr<WeightLoad> load_;  // null where the backend packs at once
    std::uint64_t total_bytes_ = 1;
};

// Weights as stored: bfloat16 weights meet bfloat16 activations. Gemma's activations leave FP16's range
// (arXiv 2408.00118's models were trained in bfloat16; FP16 gives infinities in their residual branches).
DType wanted_dtype(const ModelSource& source, ModelDType asked) {
    switch (asked) {
        case ModelDType::f32:
            return DType::f32;
        case ModelDType::f16:
            return DType::f16;
        case ModelDType::bf16:
            return DType::bf16;
        case ModelDType::automatic:
            break;
    }
    if (source.config().family.starts_with("Gemma")) return DType::bf16;
    const auto sample = source.weight(TensorRole::attn_q);
    if (!sample) return DType::f16;
    const WeightForm& form = sample->form();
    const bool bf16 = form.grouped ? form.scale == ScaleForm::bf16 : form.dense == DType::bf16;
    return bf16 ? DType::bf16 : DType::f16;
}

std::string mib(std::uint64_t bytes) {
    return std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB";
}

// Rounded up, so that the value can be given as it is printed.
std::string gib(std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", std::ceil(double(bytes) / double(1 << 30) * 100) / 100);
    return text;
}

// What may be used, and why it is not more.
std::string free_memory(const MemoryEstimate& need) {
    if (need.budget_bytes == need.free_bytes) return mib(need.free_bytes) + " of memory are free";
    return mib(need.budget_bytes) + " of the " + mib(need.free_bytes) +
           " free on the card may be used (--gpu-memory-utilization)";
}

// Error(memory) where the weights do not fit; a sentence where less than the full context does.
std::string check_memory(const ModelSource& source, const DeviceInfo& device, const LoadOptions& options,
                         const MemoryEstimate& need) {
    if (need.fits || device.memory_free == 0) return {};
    const std::string path = source.path().string();
    if (need.longest_context > 0) {  // the engine sizes its pool by what is left
        const bool asked_less = options.context > 0 && options.context <= need.longest_context;
        if (device.kind == "cpu" || asked_less) return {};
        return path + ": of the model's context of " + std::to_string(source.config().max_position) +
               " tokens, " + std::to_string(need.longest_context) + " fit: " + free_memory(need);
    }
    const std::string advice =
        need.needed_offload_bytes > 0 ? "keep part of the weights in host memory with --cpu-offload-gib " +
                                            gib(need.needed_offload_bytes)
        : device.kind == "cuda" ? "choose a smaller model, a stronger quantization or --device cpu"
                                : "choose a smaller model or a stronger quantization";
    throw Error(ErrorKind::memory, path + ": needs " + mib(need.weight_bytes) + " for weights and " +
                                       mib(need.workspace_bytes) + " of workspace, but only " +
                                       free_memory(need) + "; " + advice);
}

// Two tokens through the whole model: a card's first launches load their kernels, and libraries make their
// plans.
void warm_up(const std::shared_ptr<const Model>& model) {
    constexpr int block_size = 16;
    BatchLimits limits;
    limits.max_rows = 2;
    limits.max_sequences = limits.max_outputs = limits.max_blocks = 1;
    const auto transformer =
        make_transformer(model, kv_shape_for(model->config, model->kv_dtype, 1, block_size), limits);
    StepBatch step;  // of a prompt: graphs are kept for steps that only decode, and this one's memory goes
    step.token_ids = {0, 0};
    step.positions = {0, 1};
    step.row_sequence = {0, 0};
    step.slots = {0, 1};
    step.query_start = {0, 2};
    step.context_tokens = {2};
    step.block_tables = {0};
    step.max_blocks = 1;
    step.logit_rows = {1};
    transformer->forward(step);
    model->backend->synchronize();
}

}  // namespace

Activations settle_activations(const DeviceInfo& device, const LoadOptions& options) {
    if (options.dtype == ModelDType::f32 || options.activations == ActivationMode::floating)
        return Activations::floating;
    if (options.activations == ActivationMode::automatic && device.kind != "cpu")
        return Activations::floating;
    if (!device.eight_bit)
        throw Error(ErrorKind::argument,
                    "--activations 8 needs a card whose 8-bit tensor-core products this build "
                    "has, found " +
                        device.name + " (" + device.kernels + "); use --activations 16");
    return *device.eight_bit;
}

Activations settle_activations(const DeviceInfo& device, const LoadOptions& options,
                               const ModelSource& source) {
    const Activations asked = settle_activations(device, options);
    return has_quantized_weights(source) ? asked : Activations::floating;
}

std::shared_ptr<const Model> load_model(const std::filesystem::path& path, std::shared_ptr<Backend> backend,
                                        const LoadOptions& options,
                                        const std::function<void(const LoadProgress&)>& progress,
                                        const CancelFlag& cancel) {
    StageTimer timer;
    const auto source = open_model(path);
    auto model = std::make_shared<Model>();
    model->backend = std::move(backend);
    model->path = source->path();
    model->format = source->format();
    model->quantization = source->quantization();
    model->warnings = source->warnings();
    model->config = source->config();
    settle_rope(model->config, options.context);
    model->generation_defaults = source->generation_defaults();
    const bool exact = options.dtype == ModelDType::f32;
    const DeviceInfo device = model->backend->device();
    const bool on_cpu = device.kind == "cpu";
    model->activations = settle_activations(device, options, *source);
    model->activation_dtype = model->backend->activation_dtype(wanted_dtype(*source, options.dtype));
    model->kv_dtype = exact    ? DType::f32
                      : on_cpu ? options.dtype == ModelDType::bf16 ? DType::bf16 : DType::f16
                               : model->activation_dtype;
    MemoryEstimate need = estimate_memory(*source, device, options);
    if (std::string less = check_memory(*source, device, options, need); !less.empty())
        model->warnings.push_back(std::move(less));
    if (on_cpu) source->prefetch();  // a card's readers touch every page at once themselves
    timer.end_stage("map");

    Loader loader(*source, *model, progress, cancel);
    loader.report("map", 0.0);
    if (source->has_tokenizer()) {
        const TokenizerFiles files = source->tokenizer_files();
        model->tokenizer = make_tokenizer(files);
        if (!files.chat_template.empty()) {
            try {
                model->chat_template = std::make_unique<ChatTemplate>(files.chat_template);
            } catch (const Error& e) {
                model->chat_template_error = e.what();
            }
        }
    }
    timer.end_stage("tokenizer");
    loader.load_weights(std::move(need.host_layers), timer);
    model->backend->synchronize();
    if (!on_cpu) {
        loader.report("warm-up", 1.0);
        warm_up(model);
        timer.end_stage("warm-up");
    }
    loader.report("ready", 1.0);
    model->load_seconds = timer.total();
    model->load_stages = timer.take();
    return model;
}

}  // namespace recto
