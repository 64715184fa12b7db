// One output of one request, as the scheduler sees it: tokens, how many of them are in the KV cache, and
// where.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/kv/block_table.h"

namespace recto {

enum class SequencePhase : std::uint8_t {
    waiting,    // not started
    running,    // owns blocks
    preempted,  // started, lost its blocks, waits to be computed again
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
    std::int32_t computed = 0;       // tokens whose K and V are cached once the planned step has run
    std::int32_t cached_tokens = 0;  // found in the prefix cache when it was first admitted
    std::int32_t forks = 1;  // outputs to draw when the prompt is computed; the others then share its blocks
    bool read_prefix_cache = true;
    bool prompt_logits = false;           // logits of every prompt token are wanted
    std::int32_t prompt_logits_done = 0;  // prompt positions whose logits were delivered

    BlockTable table;  // layers of another attention window will have a table of their own beside it
    SequencePhase phase = SequencePhase::waiting;
    std::int32_t preemptions = 0;
    std::int32_t blocks_missing = 0;  // at the last failed admission

    std::int32_t total() const { return std::int32_t(tokens.size()); }
    std::int32_t output_tokens() const { return total() - prompt_tokens; }
    // One token to feed back, as opposed to a prompt (or a preempted text) to compute.
    bool decoding() const { return output_tokens() > 0 && total() - computed == 1; }
};

}  // namespace recto
