#include "engine/engine.h"

#include <algorithm>
#include <cassert>
#include <new>

#include "engine/engine_state.h"
#include "kernels/error.h"

namespace recto {
namespace {

SchedulerOptions scheduler_options(const EngineOptions& o, std::uint64_t block_bytes) {
    SchedulerOptions s;
    s.block_size = o.block_size;
    s.kv_blocks = o.kv_blocks;
    s.max_model_len = o.max_model_len;
    s.max_num_seqs = o.max_num_seqs;
    s.max_num_batched_tokens = o.max_num_batched_tokens;
    s.prefix_caching = o.prefix_caching;
    s.chunk_target_seconds = o.chunk_target_seconds;
    s.fixed_chunk_tokens = o.fixed_chunk_tokens;
    s.prefix_hash_mask = o.prefix_hash_mask;
    s.swap_blocks = std::int32_t(std::min<std::uint64_t>(o.swap_space_bytes / block_bytes, 1U << 30));
    return s;
}

std::uint64_t clock_seed() {
    return std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count());
}

// Touched only where blocks are copied to.
std::unique_ptr<std::byte[]> host_memory(std::uint64_t bytes) {
    if (bytes == 0) return nullptr;
    try {
        return std::make_unique_for_overwrite<std::byte[]>(bytes);
    } catch (const std::bad_alloc&) {
        throw Error(ErrorKind::memory,
                    "the swap space of " + std::to_string(bytes >> 20) +
                        " MiB was asked of the system, and it has not so much: choose less");
    }
}

int drawable_ids(const StepModel& model, const Tokenizer* tokenizer) {
    return tokenizer ? std::min(model.vocab(), tokenizer->size()) : model.vocab();
}

}  // namespace

const char* finish_reason_name(FinishReason r) {
    switch (r) {
        case FinishReason::none:
            return "none";
        case FinishReason::stop:
            return "stop";
        case FinishReason::length:
            return "length";
        case FinishReason::abort:
            return "abort";
        case FinishReason::error:
            return "error";
    }
    return "?";
}

double RequestMetrics::queue_s() const {
    return std::max(0.0, t_start - t_request);  // t_start stays 0 until the first start
}

double RequestMetrics::ttft_s() const {
    return std::max(0.0, t_first - t_request);
}

double RequestMetrics::prefill_tok_s() const {
    const double seconds = t_first - t_start;
    return seconds > 0 && prompt_tokens > cached_tokens ? (prompt_tokens - cached_tokens) / seconds : 0;
}

double RequestMetrics::decode_tok_s() const {
    const double tpot = tpot_s();
    return tpot > 0 ? 1 / tpot : 0;
}

double RequestMetrics::tpot_s() const {
    return output0_tokens < 2 ? 0 : (t_output0_last - t_first) / (output0_tokens - 1);
}

Engine::State::State(std::shared_ptr<const Model> model_, std::unique_ptr<StepModel> step_model_,
                     const Tokenizer* tokenizer_, std::vector<std::int32_t> eos_ids_,
                     const EngineOptions& options)
    : model(std::move(model_)),
      step_model(std::move(step_model_)),
      tokenizer(tokenizer_),
      eos_ids(std::move(eos_ids_)),
      seed(options.seed != 0 ? options.seed : clock_seed()),
      max_waiting(options.max_waiting),
      block_bytes(step_model->block_bytes()),
      vocab(drawable_ids(*step_model, tokenizer)),
      scheduler(scheduler_options(options, block_bytes)),
      sampler(step_model->vocab(), vocab) {
    if (max_waiting < 0)
        throw Error(ErrorKind::argument,
                    "max_waiting must be at least 0, got " + std::to_string(max_waiting));
    swap_memory = host_memory(std::uint64_t(scheduler.options().swap_blocks) * block_bytes);
    std::erase_if(eos_ids, [this](std::int32_t id) { return id < 0 || id >= vocab; });
}

Engine::Engine(std::unique_ptr<StepModel> step_model, const Tokenizer* tokenizer,
               std::vector<std::int32_t> eos_ids, const EngineOptions& options)
    : state_(
          std::make_unique<State>(nullptr, std::move(step_model), tokenizer, std::move(eos_ids), options)) {}

Engine::~Engine() = default;

RequestId Engine::submit(Request request) {
    return state_->submit(std::move(request));
}

bool Engine::cancel(RequestId id) {
    const auto it = state_->requests.find(id);
    if (it == state_->requests.end()) return false;
    state_->end_request(it->second, FinishReason::abort, {});
    return true;
}

bool Engine::has_work() const {
    return state_->scheduler.has_work() || !state_->events.empty();
}

std::vector<RequestEvent> Engine::step() {
    return state_->step();
}

std::vector<PoolEvent> Engine::take_pool_events() {
    return state_->scheduler.pool().take_events();
}

void Engine::set_fixed_chunk(int tokens) {
    state_->scheduler.set_fixed_chunk(tokens);
}

double Engine::now() const {
    return state_->now();
}

const Model& Engine::model() const {
    assert(state_->model);
    return *state_->model;
}

int Engine::max_model_len() const {
    return state_->scheduler.options().max_model_len;
}
int Engine::kv_blocks() const {
    return state_->scheduler.pool().total();
}
int Engine::block_size() const {
    return state_->scheduler.options().block_size;
}
int Engine::max_num_seqs() const {
    return state_->scheduler.options().max_num_seqs;
}
int Engine::max_num_batched_tokens() const {
    return state_->scheduler.options().max_num_batched_tokens;
}
std::uint64_t Engine::kv_bytes() const {
    return state_->block_bytes * std::uint64_t(kv_blocks());
}
std::uint64_t Engine::workspace_bytes() const {
    return state_->workspace_bytes;
}

}  // namespace recto
