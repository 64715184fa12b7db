#include "engine/bench/side.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "engine/bench/machine.h"
#include "engine/bench/page_cache.h"
#include "engine/bench/sha256.h"
#include "engine/text/make_tokenizer.h"
#include "kernels/error.h"

namespace recto {
namespace {

using Json = nlohmann::ordered_json;

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string vocabulary_hash(const Tokenizer& tokenizer) {
    Sha256 hash;
    for (int id = 0; id < tokenizer.size(); ++id) {
        const std::string_view bytes = tokenizer.bytes(id);
        hash.add(bytes.data(), bytes.size());
        hash.add("\n", 1);
    }
    return hash.hex();
}

// What the backend made of the weights, each form once: "u4 g32 f16 scale+min, int8 activations,
// avx512-vnni".
std::vector<std::string> weight_forms(const Model& model) {
    std::set<std::string> forms;
    const auto add = [&forms](const auto& weight) {
        if (weight) forms.insert(weight->describe());
    };
    for (const LayerWeights& layer : model.layers) {
        add(layer.qkv);
        add(layer.o);
        add(layer.gate_up);
        add(layer.down);
        add(layer.experts_gate_up);
        add(layer.experts_down);
    }
    add(model.embedding);
    add(model.lm_head);
    return {forms.begin(), forms.end()};
}

const char* dtype_option(ModelDType dtype) {
    switch (dtype) {
        case ModelDType::f32:
            return "float32";
        case ModelDType::f16:
            return "float16";
        case ModelDType::bf16:
            return "bfloat16";
        case ModelDType::automatic:
            break;
    }
    return "auto";
}

}  // namespace

LoadedSide::LoadedSide(char name, const BenchSide& options, const BenchOptions& workload)
    : name_(name), options_(options), workload_(workload), files_(model_files(options.model)) {
    const auto source = open_model(options.model);
    max_position_ = source->config().max_position;
    vocab_ = source->config().vocab;
    if (source->has_tokenizer()) tokenizer_ = make_tokenizer(source->tokenizer_files());
}

void LoadedSide::set_longest_input(int tokens) {
    longest_input_ = tokens;
    const int longest = tokens + workload_.output_tokens;
    if (max_position_ > 0 && longest > max_position_)
        throw Error(ErrorKind::argument,
                    "depth + prompt tokens + output tokens must be at most the context of " +
                        std::to_string(max_position_) + " tokens of " + model_label(options_.model) +
                        ", got " + std::to_string(longest));
}

// A pool that holds the largest row without preemption, and nothing more.
EngineOptions LoadedSide::sized_engine() const {
    EngineOptions e = options_.engine;
    e.prefix_caching = false;
    const int widest = *std::max_element(workload_.sequences.begin(), workload_.sequences.end());
    int longest = longest_input_ + workload_.output_tokens + 1;
    if (max_position_ > 0) longest = std::min(longest, max_position_);
    const std::int64_t blocks =
        std::int64_t(widest) * ((longest + e.block_size - 1) / std::max(e.block_size, 1) + 1);
    e.max_num_seqs = std::max(e.max_num_seqs, widest);
    if (e.max_model_len == 0) e.max_model_len = longest;
    if (e.kv_blocks == 0 && e.kv_cache_bytes == 0) e.kv_blocks = int(std::min<std::int64_t>(blocks, 1 << 26));
    return e;
}

std::uint64_t LoadedSide::needed_bytes(const DeviceInfo& device) const {
    const EngineOptions sized = sized_engine();
    const MemoryEstimate e =
        estimate_memory(*open_model(options_.model), device, options_.load, memory_use(sized));
    const std::uint64_t pool =
        sized.kv_blocks > 0
            ? std::uint64_t(sized.kv_blocks) * std::uint64_t(sized.block_size) * e.kv_bytes_per_token
            : sized.kv_cache_bytes;
    return e.weight_bytes + e.workspace_bytes + pool;
}

std::string LoadedSide::page_cache() const {
    return page_cache_state(files_.weights).describe();
}

void LoadedSide::load(const std::shared_ptr<Backend>& backend, std::uint64_t other_resident_bytes,
                      const std::function<void(const LoadProgress&)>& progress,
                      const std::function<bool()>& cancelled) {
    LoadRecord record;
    record.page_cache = page_cache();
    const DeviceInfo before = backend->device();
    const std::uint64_t resident_before = process_resident_bytes();
    begin_memory(*backend);
    const auto cancel = std::make_shared<std::atomic<bool>>(false);
    const auto watch = [&](const LoadProgress& p) {
        if (cancelled && cancelled()) cancel->store(true);
        if (progress) progress(p);
    };
    const auto begin = std::chrono::steady_clock::now();
    model_ = load_model(options_.model, backend, options_.load, watch, cancel);
    const double model_s = seconds_since(begin);
    engine_ = std::make_unique<Engine>(model_, sized_engine());
    record.seconds = seconds_since(begin);
    record.stages = model_->load_stages;
    record.stages.push_back({"pool", record.seconds - model_s});
    loads_.push_back(std::move(record));

    const std::uint64_t resident = process_resident_bytes();
    resident_bytes_ = resident > resident_before ? resident - resident_before : 0;
    device_bytes_ = 0;
    end_memory(*backend, other_resident_bytes);
    weight_bytes_ = model_->weight_bytes;
    const auto block = std::uint64_t(engine_->block_size());
    pool_tokens_ = std::uint64_t(engine_->kv_blocks()) * block;
    const std::uint64_t block_bytes = engine_->kv_bytes() / std::uint64_t(std::max(engine_->kv_blocks(), 1));
    const std::uint64_t fixed = weight_bytes_ + engine_->workspace_bytes();
    const std::uint64_t usable = memory_budget(before, options_.load.gpu_memory_utilization);
    const bool pool_given = options_.engine.kv_blocks > 0 || options_.engine.kv_cache_bytes > 0;
    if (pool_given || before.memory_free == 0 || block_bytes == 0)
        fitting_tokens_ = pool_tokens_;
    else if (loads_.size() == 1)
        fitting_tokens_ = usable > fixed ? (usable - fixed) / block_bytes * block : 0;
    if (description_.is_null()) describe();
}

void LoadedSide::unload() {
    engine_.reset();
    model_.reset();
    resident_bytes_ = 0;
}

void LoadedSide::begin_memory(const Backend& backend) {
    free_before_ = backend.device().memory_free;
    reset_process_peak();
}

void LoadedSide::end_memory(const Backend& backend, std::uint64_t other_resident_bytes) {
    const DeviceInfo device = backend.device();
    if (device.kind == "cpu") {
        const std::uint64_t peak = process_peak_bytes();
        peak_bytes_ = std::max(peak_bytes_, peak > other_resident_bytes ? peak - other_resident_bytes : 0);
        return;
    }
    // Free memory may also rise: what a step took for a while and gave back.
    if (device.memory_free < free_before_) device_bytes_ += free_before_ - device.memory_free;
    peak_bytes_ = std::max(peak_bytes_, device_bytes_);
}

TimedFigure LoadedSide::load_s() const {
    TimedFigure f;
    for (const LoadRecord& r : loads_)
        f.samples.push_back(r.seconds);
    return f;
}

void LoadedSide::describe() {
    const Model& m = *model_;
    description_ = {{"model", model_label(options_.model)},
                    {"model_name", m.config.name},
                    {"format", m.format},
                    {"family", m.config.architecture},
                    {"quantization", m.quantization},
                    {"weight_forms", weight_forms(m)},
                    {"weight_bytes", m.weight_bytes},
                    {"host_weight_bytes", m.host_weight_bytes},
                    {"gpu_memory_utilization", options_.load.gpu_memory_utilization},
                    {"overlap", options_.engine.overlap},
                    {"dtype", dtype_option(options_.load.dtype)},
                    {"activations", activations_name(m.activations)},
                    {"kv_cache_dtype", dtype_name(options_.engine.kv_dtype.value_or(m.kv_dtype))},
                    {"block_size", engine_->block_size()},
                    {"kv_blocks", engine_->kv_blocks()},
                    {"kv_pool_bytes", engine_->kv_bytes()},
                    {"workspace_bytes", engine_->workspace_bytes()},
                    {"max_model_len", engine_->max_model_len()},
                    {"max_num_seqs", engine_->max_num_seqs()},
                    {"max_num_batched_tokens", engine_->max_num_batched_tokens()},
                    {"file_system", file_system_of(options_.model)},
                    {"tokenizer", m.tokenizer ? Json(m.tokenizer->describe()) : Json()}};
    if (m.tokenizer) description_["vocabulary_sha256"] = vocabulary_hash(*m.tokenizer);
    if (m.chat_template) {
        Sha256 hash;
        hash.add(m.chat_template->source().data(), m.chat_template->source().size());
        description_["template_sha256"] = hash.hex();
    }
    if (!m.warnings.empty()) description_["warnings"] = m.warnings;
}

}  // namespace recto
