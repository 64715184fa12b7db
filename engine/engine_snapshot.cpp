// Pictures of the pool and the queue for the live panel.
#include <algorithm>

#include "engine/engine_state.h"

namespace recto {
namespace {

SequenceState state_of(const Sequence& s) {
    switch (s.phase) {
        case SequencePhase::waiting:
            return SequenceState::waiting;
        case SequencePhase::preempted:
            return SequenceState::preempted;
        case SequencePhase::swapped:
            return SequenceState::swapped;
        case SequencePhase::running:
            break;
    }
    return s.output_tokens() > 0 && s.total() - s.computed <= 1 ? SequenceState::decode
                                                                : SequenceState::prefill;
}

SequenceSnapshot picture(const Sequence& s) {
    SequenceSnapshot p;
    p.request = s.request;
    p.sequence = s.id;
    p.owner = s.owner;
    p.state = state_of(s);
    p.tokens = s.total();
    p.computed = std::min(s.computed, s.total());  // a token that nobody has seen may be fed already
    p.prompt_tokens = s.prompt_tokens;
    p.cached_tokens = s.cached_tokens;
    p.output_tokens = s.output_tokens();
    p.blocks = s.table.size();
    return p;
}

BlockSnapshot picture(const BlockPool::Block& b, int block_size) {
    BlockSnapshot p;
    p.owner = b.owner;
    p.ref_count = std::uint16_t(std::min(b.ref_count, 65535));
    if (b.ref_count > 0) {
        p.state = BlockState::used;
    } else if (b.key_hash != 0) {
        p.state = BlockState::cached;
        p.fill = std::uint8_t(std::min(block_size, 255));
    }
    return p;
}

// Tokens of the sequence whose K and V are in its block `index`.
int fill_of(const Sequence& s, std::int32_t index, int block_size) {
    return std::clamp(std::min(s.computed, s.total()) - index * block_size, 0, block_size);
}

}  // namespace

EngineSnapshot Engine::snapshot() const {
    const State& e = *state_;
    const Scheduler& scheduler = e.scheduler;
    const BlockPool& pool = scheduler.pool();
    const SchedulerStats& stats = scheduler.stats();
    const int size = pool.block_size();
    EngineSnapshot p;
    p.step = scheduler.step();
    p.time = e.now();
    p.counts = pool.counts();
    p.block_size = size;
    p.block_bytes = e.block_bytes;
    p.running = int(scheduler.running().size());
    p.waiting = int(scheduler.waiting().size());
    p.tokens_prefilled = stats.tokens_prefilled;
    p.tokens_decoded = stats.tokens_decoded;
    p.preemptions = stats.preemptions;
    p.swaps = stats.swaps;
    p.blocks_out = stats.blocks_out;
    p.blocks_in = stats.blocks_in;
    p.swap_total = scheduler.swap_space().total();
    p.swap_used = scheduler.swap_space().copied();
    p.resumed_queries = stats.resumed_queries;
    p.resumed_hits = stats.resumed_hits;
    p.prefix_queries = stats.prefix_queries;
    p.prefix_hits = stats.prefix_hits;
    p.last_step_s = e.last_step_s;
    p.last_step_rows = e.last_step_rows;

    p.blocks.reserve(std::size_t(p.counts.touched));
    for (BlockId id = 0; id < p.counts.touched; ++id)
        p.blocks.push_back(picture(pool.block(id), size));
    std::uint64_t filled = 0;
    for (const Sequence* s : scheduler.running()) {
        p.sequences.push_back(picture(*s));
        for (std::int32_t i = 0; i < s->table.size(); ++i) {
            BlockSnapshot& b = p.blocks[std::size_t(s->table.blocks[std::size_t(i)])];
            const int fill = std::min(fill_of(*s, i, size), 255);
            if (fill <= b.fill) continue;  // a shared block is counted once
            filled += std::uint64_t(fill - b.fill);
            b.fill = std::uint8_t(fill);
        }
    }
    int position = 0;
    for (const Sequence* s : scheduler.waiting()) {
        SequenceSnapshot w = picture(*s);
        w.queue_position = ++position;
        // Only the first was tried; the others need at least what is not there for them alone.
        w.blocks_missing =
            position == 1 ? s->blocks_missing : std::max(0, blocks_for(s->total(), size) - pool.available());
        p.sequences.push_back(w);
    }
    for (const Sequence* s : scheduler.parked())
        p.sequences.push_back(picture(*s));
    p.allocated_slots = std::uint64_t(p.counts.used) * std::uint64_t(size);
    p.empty_slots = p.allocated_slots - filled;
    p.contiguous_slots = std::uint64_t(p.running) * std::uint64_t(scheduler.options().max_model_len);
    return p;
}

BlockDetail Engine::describe_block(BlockId id) const {
    const BlockPool& pool = state_->scheduler.pool();
    BlockDetail d;
    if (id < 0 || id >= pool.total()) return d;
    const BlockPool::Block& block = pool.block(id);
    const int size = pool.block_size();
    d.block = id;
    d.state = picture(block, size);
    d.tokens = block.tokens;
    for (const Sequence* s : state_->scheduler.running()) {
        const auto at = std::ranges::find(s->table.blocks, id);
        if (at == s->table.blocks.end()) continue;
        const auto index = std::int32_t(at - s->table.blocks.begin());
        d.places.push_back({s->owner, s->request, index});
        const int fill = fill_of(*s, index, size);
        if (fill <= int(d.tokens.size())) continue;
        const auto first = s->tokens.begin() + std::ptrdiff_t(index) * size;
        d.tokens.assign(first, first + fill);
    }
    d.state.fill = std::uint8_t(std::min(int(d.tokens.size()), 255));
    return d;
}

}  // namespace recto
