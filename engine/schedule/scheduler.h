// Who runs in the next step, with how many tokens, in which blocks. Bookkeeping only.
//
// There is no prefill mode and no decode mode: every sequence has tokens and computed tokens, and a step
// gives it some of the difference, under one token budget. Decoding sequences always have their token;
// prompts get what is left, in chunks. The scheme is vLLM V1's (core/sched/scheduler.py): running first, then
// waiting; first come first served within a priority, no overtaking; when blocks run out the youngest is
// preempted: its blocks go back, and it is computed again later, or, where host memory was given for it,
// takes them back (kv/swap_space.h); nothing is admitted in a step with a preemption. A waiting sequence of a
// higher priority preempts running ones of a lower (vLLM V0's rule), if that makes it fit. Unlike there, the
// running are ordered by (priority, arrival), so that a victim is never already part of the step, and
// parallel outputs share the prompt's blocks, the partly filled one being copied when first written.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv/block_pool.h"
#include "engine/schedule/chunk_policy.h"
#include "engine/schedule/sequence.h"
#include "engine/schedule/step_plan.h"

namespace recto {

// Rows beyond one a sequence whose logits a step may ask for, for prompt_logprobs.
constexpr std::int32_t prompt_logit_slice = 16;

struct SchedulerOptions {
    std::int32_t block_size = 16;
    std::int32_t kv_blocks = 0;
    std::int32_t max_model_len = 0;
    std::int32_t max_num_seqs = 0;
    std::int32_t max_num_batched_tokens = 0;  // at least max_num_seqs, so that no decode waits
    bool prefix_caching = true;
    double chunk_target_seconds = 0.1;
    std::int32_t fixed_chunk_tokens = 0;
    // Share of the pool left free when a sequence is admitted beside others, so that they can grow a little
    // before they must preempt it again (vLLM V0's value).
    double watermark = 0.01;
    std::int32_t swap_blocks = 0;  // places in host memory for the blocks of preempted sequences
    std::uint64_t prefix_hash_mask = ~std::uint64_t(0);  // tests force collisions with a short one
};

struct NewSequence {
    std::uint64_t request = 0;
    OwnerId owner = 0;
    std::int32_t priority = 0;
    std::vector<std::int32_t> prompt;
    std::int32_t forks = 1;             // with beam: the places that the search needs
    bool beam = false;                  // see Sequence::beam
    std::int32_t max_total_tokens = 0;  // prompt + output at most
    bool read_prefix_cache = true;
    bool prompt_logits = false;
};

// A token that was appended: one for each draw of a sequence that sampled.
struct CommittedToken {
    Sequence* sequence = nullptr;
    std::int32_t token = -1;     // -1: the draw failed, nothing was appended
    std::int32_t scheduled = 0;  // index into StepPlan::scheduled
    std::int32_t draw = 0;       // index of the draw over the whole step
};

struct SchedulerStats {
    std::uint64_t tokens_prefilled = 0;
    std::uint64_t tokens_decoded = 0;
    std::uint64_t preemptions = 0;
    std::uint64_t swaps = 0;                              // of them, those that kept their blocks
    std::uint64_t blocks_out = 0, blocks_in = 0;          // copied to host memory and back
    std::uint64_t prefix_queries = 0, prefix_hits = 0;    // tokens, at first admission
    std::uint64_t resumed_queries = 0, resumed_hits = 0;  // tokens, when computed again after a preemption
};

class Scheduler {
  public:
    explicit Scheduler(const SchedulerOptions& options);  // Error(argument)

    // Error(argument) with the numbers when it can never fit. The reference stays valid until remove().
    Sequence& add(NewSequence sequence);
    // Ended or cancelled: its blocks are back when this returns.
    void remove(Sequence& sequence);

    // False when there is nothing to compute. Computed counts advance here, not at commit.
    bool plan(StepPlan& plan);
    // The step after one that was planned and is not committed: tokens that it draws are fed back by number
    // (StepBatch::token_from), sequences that surely end with them are left out. False, with nothing changed,
    // when there is nothing to compute so, or when it might take a preemption: that waits for the commit.
    // Every sequence that samples in the step before must draw one token there.
    bool plan_ahead(StepPlan& plan);
    // `tokens`: the draws of the sampling sequences in order (ScheduledSequence::draws each), -1 for a failed
    // one. Creates the parallel outputs. Valid until the next call.
    std::span<const CommittedToken> commit(const StepPlan& plan, std::span<const std::int32_t> tokens);
    // Beam search, between commit and the next plan. `parent` is held; the copy is too, and shares its
    // blocks.
    Sequence& branch(Sequence& parent, std::int32_t output);
    void choose(Sequence& held, std::int32_t token);  // it goes on with this token
    // The step failed: counts go back and its names are withdrawn. Blocks stay with their sequences; what was
    // to be swapped out in it is lost, and will be computed again.
    void withdraw(const StepPlan& plan);
    // Drops the names of blocks that this sequence alone holds (their content is suspect).
    void distrust(const Sequence& sequence);

    void observe_step(std::int32_t rows, double seconds) { chunks_.observe(rows, seconds); }
    void set_fixed_chunk(std::int32_t tokens) { options_.fixed_chunk_tokens = tokens; }

    bool has_work() const { return !running_.empty() || !waiting_.empty(); }
    const std::vector<Sequence*>& running() const { return running_; }
    const std::deque<Sequence*>& waiting() const { return waiting_; }
    const std::vector<Sequence*>& parked() const { return parked_; }
    std::uint64_t step() const { return step_; }
    const SchedulerOptions& options() const { return options_; }
    const SchedulerStats& stats() const { return stats_; }
    BlockPool& pool() { return pool_; }
    const BlockPool& pool() const { return pool_; }
    const SwapSpace& swap_space() const { return swap_; }

  private:
    struct Allowance {             // what is left of the step
        std::int32_t total = 0;    // rows
        std::int32_t prefill = 0;  // rows that do not decode
        std::int32_t extra_logits = 0;
    };
    Allowance allowance() const;
    struct Demand {                // what admitting a sequence takes
        std::vector<BlockId> hit;  // blocks of the prefix cache
        std::int32_t blocks = 0;   // of the available ones, for all its tokens
    };
    Demand demand(const Sequence& s) const;
    std::int32_t promised_blocks() const;
    std::int32_t free_places() const;
    std::int32_t spare_blocks(std::size_t running) const;
    bool may_preempt() const;
    void make_way(StepPlan& plan);
    void plan_running(StepPlan& plan, Allowance& left);
    void plan_waiting(StepPlan& plan, Allowance& left);
    void admit(Sequence& s, const std::vector<BlockId>& hit, StepPlan& plan);
    void take_back(Sequence& s, StepPlan& plan);
    void give_up_blocks(Sequence& s);  // swapped where there is room, else to be computed again
    void forget_saved(Sequence& s);
    BlockId take_block(const Sequence& s, StepPlan& plan);  // to write into
    void save_before_writing(BlockId id, std::int32_t first, StepPlan& plan);
    std::int32_t chunk(const Sequence& s, const Allowance& left) const;
    void schedule(Sequence& s, std::int32_t rows, StepPlan& plan, Allowance& left);
    bool make_room(Sequence& s, std::int32_t rows, StepPlan& plan);
    std::int32_t new_blocks(const Sequence& s, std::int32_t rows) const;
    bool writes_shared_block(const Sequence& s) const;
    void take_blocks(Sequence& s, std::int32_t rows, StepPlan& plan);
    void preempt_last(StepPlan& plan);
    std::vector<BlockId> find_prefix(const Sequence& s) const;
    PrefixKey key_of(std::uint64_t chain, std::span<const std::int32_t> tokens) const;
    void name_block(const Sequence& s, std::vector<BlockId>* named);
    // Names the blocks that lie wholly in the first `tokens` tokens.
    void name_blocks(Sequence& s, std::int32_t tokens, std::vector<BlockId>* named);
    void fill_batch(StepPlan& plan) const;
    Sequence& fork(const Sequence& parent, std::int32_t output);
    void enqueue(Sequence& s);  // into waiting_, or parked_
    void start(Sequence& s);    // into running_

    SchedulerOptions options_;
    BlockPool pool_;
    SwapSpace swap_;
    ChunkPolicy chunks_;
    SchedulerStats stats_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Sequence>> sequences_;
    std::vector<Sequence*> running_;  // oldest of the highest priority first
    std::deque<Sequence*> waiting_;   // in the same order
    std::vector<Sequence*> parked_;   // held, and without blocks
    std::vector<CommittedToken> committed_;
    std::uint64_t step_ = 0;
    std::uint64_t next_sequence_ = 1;
    std::uint64_t next_arrival_ = 1;
};

}  // namespace recto
