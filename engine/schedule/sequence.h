// One output of one request, as the scheduler sees it: tokens, how many of them are in the KV cache, and
// where.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/kv/block_table.h"
#include "engine/kv/swap_space.h"

namespace recto {

enum class SequencePhase : std::uint8_t {
    waiting,    // not started
    running,    // owns blocks
    preempted,  // started, lost its blocks, waits to be computed again
    swapped,    // started, its blocks are kept in the pool or in host memory, waits to take them back
};

struct Sequence {
    std::uint64_t id = 0;
    std::uint64_t request = 0;
    std::int32_t output = 0;  // 0 … n − 1
    OwnerId owner = 0;
    std::int32_t priority = 0;
    std::uint64_t arrival = 0;  // of the request

    std::vector<std::int32_t> tokens;  // prompt, then output
    std::int32_t prompt_tokens = 0;
    std::int32_t max_total_tokens = 0;  // prompt + output: with so many it ends
    std::int32_t computed = 0;       // tokens whose K and V are cached once the planned steps have run
    // Tokens that planned steps draw and nobody has seen yet: behind `tokens`, and one of them may be fed back
    // already. At most two, and none between commit and plan.
    std::int32_t pending = 0;
    std::int32_t drawn_by = -1;      // with pending tokens: the output of the last planned step that draws one
    std::int32_t cached_tokens = 0;  // found in the prefix cache when it was first admitted
    std::int32_t forks = 1;  // outputs to draw when the prompt is computed; the others then share its blocks
    bool read_prefix_cache = true;
    bool prompt_logits = false;           // logits of every prompt token are wanted
    std::int32_t prompt_logits_done = 0;  // prompt positions whose logits were delivered

    // Beam search: when the sequence has sampled, somebody else chooses its next token (Scheduler::choose).
    bool beam = false;
    bool held = false;  // has sampled, and its next token is not chosen: nothing to compute

    std::vector<SavedId> saved;  // swapped: one a block
    BlockTable table;  // layers of another attention window will have a table of their own beside it
    SequencePhase phase = SequencePhase::waiting;
    std::int32_t preemptions = 0;
    std::int32_t swaps = 0;           // of the preemptions, those that kept the blocks
    std::uint64_t passed_step = 0;    // when it last made way for a higher priority
    std::int32_t blocks_missing = 0;  // at the last failed admission
    // Tokens looked up in the prefix cache and found there, when it came back after a preemption.
    std::int32_t resumed_queries = 0, resumed_hits = 0;

    std::int32_t total() const { return std::int32_t(tokens.size()); }
    std::int32_t output_tokens() const { return total() - prompt_tokens; }
    std::int32_t expected() const { return total() + pending; }
    // One token to feed back, as opposed to a prompt (or a preempted text) to compute.
    bool decoding() const { return expected() > prompt_tokens && expected() - computed == 1; }
    // Whatever the pending token will be, it is the last.
    bool surely_ends() const { return pending > 0 && expected() >= max_total_tokens; }
};

}  // namespace recto
