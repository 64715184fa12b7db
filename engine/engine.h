// The engine: one loop over everything that is in flight.
//     Scheduler::plan() → Transformer::forward(batch) → Sampler → Scheduler::commit(tokens)
//
// An Engine belongs to one thread: all calls come from it. It holds no lock and starts no thread of its own
// (the backend has its workers). Requests never harm each other: a full pool makes them wait or be preempted.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/kv/block_pool.h"
#include "engine/model/model.h"
#include "engine/model/step_model.h"
#include "engine/sample/sampling_params.h"
#include "engine/sample/token_logprob.h"

namespace recto {

using RequestId = std::uint64_t;

struct EngineOptions {
    int max_model_len = 0;  // 0: the model's, or the largest that the pool holds
    int block_size = 16;
    // 0: from kv_cache_bytes, or on the CPU four full contexts, at most a quarter of free memory; on a card
    // what gpu_memory_utilization leaves, at most a full context for every sequence of a step.
    int kv_blocks = 0;
    std::uint64_t kv_cache_bytes = 0;
    double gpu_memory_utilization = 0.9;  // see LoadOptions
    int max_num_seqs = 0;                 // 0: default_step_limits (CPU 16, card 256)
    int max_num_batched_tokens = 0;       // 0: default_step_limits (CPU 512, card 8,192)
    int max_waiting = 0;                  // requests that may wait to be started; 0: no bound
    // Host memory for the blocks of preempted sequences, which then resume without being computed again;
    // where it is used up, and with 0, they are recomputed.
    std::uint64_t swap_space_bytes = 0;
    bool prefix_caching = true;
    // On a device that computes while the host goes on, a step is planned and enqueued before the tokens of
    // the one before it are looked at, where nothing needs them first. An answer depends on it only as far as
    // a row's bits depend on its neighbours in a step.
    bool overlap = true;
    std::optional<DType> kv_dtype;      // default: the model's
    double chunk_target_seconds = 0.1;  // while others decode, prefill chunks are cut to about this step time
    int fixed_chunk_tokens =
        0;  // > 0: chunks of exactly this many tokens, for stepping through by hand and for tests
    std::uint64_t seed = 0;                              // of requests without one; 0: from the clock
    std::uint64_t prefix_hash_mask = ~std::uint64_t(0);  // tests force collisions with a short one
};
// Of such an engine, for estimate_memory().
MemoryUse memory_use(const EngineOptions& options);

struct Request {
    std::vector<std::int32_t> prompt;
    SamplingParams sampling;
    OwnerId owner = 0;  // opaque: the chat, for the block map
    int priority = 0;   // higher first; equal: first come, first served
    bool keep_default_eos = true;
};

enum class FinishReason : std::uint8_t { none, stop, length, abort, error };
const char* finish_reason_name(FinishReason r);

// Times by the steady clock, in seconds since the engine was made (DESIGN §9).
struct RequestMetrics {
    double t_request = 0, t_start = 0, t_first = 0, t_last = 0;
    double paused_s = 0;    // preempted or waiting again after the first start
    int prompt_tokens = 0;  // p
    int cached_tokens = 0;  // c
    int output_tokens = 0;  // n, over all outputs
    int preemptions = 0;
    int swaps = 0;  // of the preemptions, those that kept their blocks (EngineOptions::swap_space_bytes)
    int prefix_queries = 0,
        prefix_hits = 0;  // tokens looked up in the prefix cache and found, when it started
    int resumed_queries = 0, resumed_hits = 0;  // the same, when computed again after preemptions
    int output0_tokens = 0;                     // of output 0: n
    double t_output0_last = 0;                  // of output 0: t_n; its t_1 is t_first
    std::vector<double> token_times;  // t_1 … t_n of output 0; only with the event that ends the request

    double queue_s() const;        // t_start − t_request; 0 when it never started
    double ttft_s() const;         // t_first − t_request; 0 when no token came
    double prefill_tok_s() const;  // (p − c) ÷ (t_1 − t_start); 0 when nothing was computed
    double decode_tok_s() const;   // (n − 1) ÷ (t_n − t_1); 0 when n < 2
    double tpot_s() const;
};

// What a step brought for one output of one request. Deltas of one output arrive in order.
struct RequestEvent {
    RequestId request = 0;
    int output = 0;    // 0 … n − 1
    std::string text;  // became certain in this step; valid UTF-8
    std::vector<std::int32_t> token_ids;
    std::vector<std::vector<TokenLogprob>> logprobs;  // per token: the sampled one first, then the best k
    std::vector<std::vector<TokenLogprob>> prompt_logprobs;  // once, with the first token
    double cumulative_logprob = 0;
    FinishReason finish = FinishReason::none;  // not none: the output has ended
    std::optional<std::int32_t> stop_token;    // stop_reason as an id
    std::string stop_string;                   // stop_reason as a string; empty otherwise
    std::string error;                         // FinishReason::error: one sentence
    bool request_finished = false;             // the last output has ended; metrics are final
    RequestMetrics metrics;                    // valid so far
};

enum class SequenceState : std::uint8_t { waiting, prefill, decode, preempted, swapped };

struct SequenceSnapshot {
    RequestId request = 0;
    std::uint64_t sequence = 0;
    OwnerId owner = 0;
    SequenceState state{};
    int tokens = 0;    // prompt + output
    int computed = 0;  // in the KV cache
    int prompt_tokens = 0;
    int cached_tokens = 0;
    int output_tokens = 0;
    int blocks = 0;
    int blocks_missing = 0;  // waiting: how many more it needs to go on
    int queue_position = 0;  // waiting: 1 = next
};

enum class BlockState : std::uint8_t { free, used, cached };

struct BlockSnapshot {
    BlockState state{};
    std::uint8_t fill = 0;  // tokens in it
    std::uint16_t ref_count = 0;
    OwnerId owner = 0;  // last to take it
};

// Serializable picture of the pool for the live panel.
struct EngineSnapshot {
    std::uint64_t step = 0;
    double time = 0;  // seconds since the engine was made
    BlockPool::Counts counts;
    int block_size = 0;
    std::uint64_t block_bytes = 0;
    std::vector<BlockSnapshot> blocks;  // the touched ones: 0 … counts.touched − 1
    std::vector<SequenceSnapshot> sequences;
    int running = 0, waiting = 0;
    std::uint64_t tokens_prefilled =
        0;  // computed so far, all requests (counters: the panel takes differences)
    std::uint64_t tokens_decoded = 0;
    std::uint64_t preemptions = 0;
    std::uint64_t swaps = 0;                      // of them, those that kept their blocks
    std::uint64_t blocks_out = 0, blocks_in = 0;  // copied to host memory and back so far
    int swap_total = 0, swap_used = 0;            // blocks of host memory, and those that hold something now
    std::uint64_t prefix_queries = 0, prefix_hits = 0;    // tokens
    std::uint64_t resumed_queries = 0, resumed_hits = 0;  // tokens, computed again after preemptions
    std::uint64_t empty_slots = 0;  // allocated without a token; waste = empty ÷ allocated
    std::uint64_t allocated_slots = 0;
    std::uint64_t contiguous_slots =
        0;  // what a contiguous cache would have reserved: Σ max_model_len of running
    double last_step_s = 0;
    int last_step_rows = 0;
};

struct BlockDetail {  // for hover
    BlockId block = -1;
    BlockSnapshot state;
    struct Place {
        OwnerId owner = 0;
        RequestId request = 0;
        int logical_index = 0;  // in the sequence's table
    };
    std::vector<Place> places;  // every sequence that has it in its table
    std::vector<std::int32_t> tokens;
};

class Engine {
  public:
    Engine(std::shared_ptr<const Model> model,
           const EngineOptions& options);  // Error(memory), Error(argument)
    // For tests and tools: any step model; `options` must name kv_blocks, max_model_len, max_num_seqs and
    // max_num_batched_tokens. `tokenizer` may be null: events then carry ids only, and stop strings are
    // refused.
    Engine(std::unique_ptr<StepModel> step_model, const Tokenizer* tokenizer,
           std::vector<std::int32_t> eos_ids, const EngineOptions& options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Error(argument) with the numbers when it can never fit, or when a parameter is out of range;
    // Error(runtime) when max_waiting requests wait already.
    RequestId submit(Request request);
    // The blocks are back in the pool when this returns. The next step() reports FinishReason::abort with the
    // text so far flushed. False if the request is not in flight.
    bool cancel(RequestId id);
    bool has_work() const;             // something runs, waits, or has an event to report
    std::vector<RequestEvent> step();  // one step; a failed request ends alone with FinishReason::error

    EngineSnapshot snapshot() const;
    BlockDetail describe_block(BlockId id) const;
    std::vector<PoolEvent> take_pool_events();
    void set_fixed_chunk(int tokens);  // EngineOptions::fixed_chunk_tokens, changed while running
    double now() const;                // the clock of metrics and snapshots

    const Model& model() const;
    int max_model_len() const;
    int kv_blocks() const;
    int block_size() const;
    int max_num_seqs() const;            // in use, also where the options left it open
    int max_num_batched_tokens() const;  // the same
    std::uint64_t kv_bytes() const;
    std::uint64_t workspace_bytes() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace recto
