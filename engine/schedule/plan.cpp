// Scheduler::plan and what it needs: the token budget, blocks, preemption, admission, names.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "engine/schedule/scheduler.h"

namespace recto {

bool Scheduler::plan(StepPlan& plan) {
    plan.clear();
    pool_.set_step(++step_);
    plan.step = step_;
    make_way(plan);
    const std::size_t made_way = plan.preempted.size();
    Allowance left = allowance();
    plan_running(plan, left);
    if (plan.preempted.size() == made_way) plan_waiting(plan, left);
    // Only beams that wait for their siblings run, and hold the blocks that these need.
    while (plan.scheduled.empty() && !running_.empty() && !waiting_.empty()) {
        preempt_last(plan);
        plan_waiting(plan, left);
    }
    fill_batch(plan);
    assert(!plan.scheduled.empty() || !has_work());
    return !plan.scheduled.empty();
}

bool Scheduler::plan_ahead(StepPlan& plan) {
    plan.clear();
    if (may_preempt()) return false;
    pool_.set_step(++step_);
    plan.step = step_;
    Allowance left = allowance();
    plan_running(plan, left);
    plan_waiting(plan, left);
    assert(plan.preempted.empty());
    if (plan.scheduled.empty()) {
        pool_.set_step(--step_);
        return false;
    }
    fill_batch(plan);
    return true;
}

// Never false when plan() would preempt now.
bool Scheduler::may_preempt() const {
    if (!running_.empty() && !waiting_.empty() && running_.back()->priority < waiting_.front()->priority)
        return true;
    const Allowance left = allowance();
    std::int64_t needed = 0;
    for (const Sequence* s : running_)
        if (const std::int32_t rows = chunk(*s, left); rows > 0) needed += std::max(0, new_blocks(*s, rows));
    return needed > pool_.available();
}

Scheduler::Allowance Scheduler::allowance() const {
    const auto decoding =
        std::int32_t(std::ranges::count_if(running_, [](const Sequence* s) { return s->decoding(); }));
    Allowance a;
    a.total = options_.max_num_batched_tokens;
    a.prefill = a.total - decoding;
    if (decoding > 0 && options_.fixed_chunk_tokens == 0)
        a.prefill = std::min(a.prefill, chunks_.rows_beside(decoding));
    a.extra_logits = prompt_logit_slice;
    return a;
}

void Scheduler::plan_running(StepPlan& plan, Allowance& left) {
    for (std::size_t i = 0; i < running_.size(); ++i) {  // preemption shortens it from the back
        Sequence& s = *running_[i];
        const std::int32_t rows = chunk(s, left);
        if (rows == 0) continue;
        if (!make_room(s, rows, plan)) break;
        take_blocks(s, rows, plan);
        schedule(s, rows, plan, left);
    }
}

// Blocks that the running ones still need for the tokens they have.
std::int32_t Scheduler::promised_blocks() const {
    std::int32_t promised = 0;
    for (const Sequence* s : running_)
        promised += blocks_for(std::max(s->total(), s->computed), options_.block_size) - s->table.size();
    return promised;
}

std::int32_t Scheduler::free_places() const {
    std::int32_t places = options_.max_num_seqs;
    for (const Sequence* s : running_)
        places -= s->forks;
    return places;
}

std::int32_t Scheduler::spare_blocks(std::size_t running) const {
    return running == 0 ? 0 : std::int32_t(std::ceil(options_.watermark * pool_.total()));
}

Scheduler::Demand Scheduler::demand(const Sequence& s) const {
    Demand d;
    d.blocks = blocks_for(s.total(), options_.block_size);
    const auto in_use = [this](BlockId id) { return id >= 0 && pool_.block(id).ref_count > 0; };
    if (s.phase != SequencePhase::swapped) {
        d.hit = find_prefix(s);
        d.blocks -= std::int32_t(std::ranges::count_if(d.hit, in_use));
        return d;
    }
    for (SavedId id : s.saved)
        d.blocks -= in_use(swap_.saved(id).block);
    const bool partial = s.computed % options_.block_size != 0;
    if (partial && in_use(swap_.saved(s.saved.back()).block)) ++d.blocks;  // it will be copied when written
    return d;
}

// Preempts running sequences of a lower priority than the first of the waiting, if it fits then.
void Scheduler::make_way(StepPlan& plan) {
    if (waiting_.empty() || running_.empty()) return;
    const Sequence& s = *waiting_.front();
    if (running_.back()->priority >= s.priority) return;
    const std::int32_t wanted_places = std::min(s.forks, options_.max_num_seqs);
    const std::int32_t wanted = demand(s).blocks;
    std::int32_t places = free_places();
    std::int32_t room = pool_.available() - promised_blocks();
    std::size_t keep = running_.size();
    const auto fits = [&] { return places >= wanted_places && room - spare_blocks(keep) >= wanted; };
    while (!fits() && keep > 0 && running_[keep - 1]->priority < s.priority) {
        const Sequence& victim = *running_[--keep];
        places += victim.forks;
        room += blocks_for(victim.total(), options_.block_size) - victim.table.size();
        for (BlockId id : victim.table.blocks)
            room += pool_.block(id).ref_count == 1;
    }
    if (!fits()) return;
    while (running_.size() > keep) {
        running_.back()->passed_step = step_;
        preempt_last(plan);
    }
}

void Scheduler::plan_waiting(StepPlan& plan, Allowance& left) {
    std::int32_t promised = promised_blocks();
    std::int32_t places = free_places();
    while (!waiting_.empty() && std::min(left.total, left.prefill) > 0) {
        Sequence& s = *waiting_.front();
        if (s.passed_step == step_) break;
        if (places < std::min(s.forks, options_.max_num_seqs)) break;
        const Demand d = demand(s);
        const std::int32_t room = pool_.available() - promised - spare_blocks(running_.size());
        s.blocks_missing = std::max(0, d.blocks - room);
        if (d.blocks > room) break;  // no overtaking

        waiting_.pop_front();
        places -= s.forks;
        admit(s, d.hit, plan);
        const std::int32_t rows = chunk(s, left);
        take_blocks(s, rows, plan);
        schedule(s, rows, plan, left);
        promised += blocks_for(s.total(), options_.block_size) - s.table.size();
    }
}

void Scheduler::admit(Sequence& s, const std::vector<BlockId>& hit, StepPlan& plan) {
    if (s.phase == SequencePhase::swapped) {
        take_back(s, plan);
        start(s);
        return;
    }
    for (BlockId id : hit)
        pool_.share(id, s.owner, s.id);
    s.table.blocks = hit;
    s.table.named = s.table.size();
    if (!hit.empty()) s.table.chain = pool_.block(hit.back()).chain;
    s.computed = s.table.size() * options_.block_size;
    if (s.phase == SequencePhase::waiting) {
        s.cached_tokens = s.computed;
        stats_.prefix_queries += s.tokens.size();
        stats_.prefix_hits += std::uint64_t(s.computed);
    } else {
        s.resumed_queries += s.total();
        s.resumed_hits += s.computed;
        stats_.resumed_queries += s.tokens.size();
        stats_.resumed_hits += std::uint64_t(s.computed);
    }
    start(s);
}

// The blocks of a swapped sequence: those still in the pool first, before one of them is handed out for
// another.
void Scheduler::take_back(Sequence& s, StepPlan& plan) {
    s.table.blocks.assign(s.saved.size(), -1);
    for (std::size_t i = 0; i < s.saved.size(); ++i) {
        const BlockId id = swap_.saved(s.saved[i]).block;
        if (id < 0) continue;
        // A sibling may have gone on writing behind this one's tokens; it is gone, and so is its name.
        const bool own_name = std::int32_t(i) < s.table.named;
        if (!own_name && pool_.block(id).ref_count == 0) pool_.withdraw_key(id);
        pool_.share(id, s.owner, s.id);
        s.table.blocks[i] = id;
    }
    for (std::size_t i = 0; i < s.saved.size(); ++i) {
        if (s.table.blocks[i] >= 0) continue;
        const std::int32_t place = swap_.saved(s.saved[i]).place;
        const BlockId id = take_block(s, plan);
        plan.transfers.push_back({TransferKind::swap_in, place, id});
        pool_.record({.kind = PoolEventKind::swap_in,
                      .block = id,
                      .other = place,
                      .owner = s.owner,
                      .sequence = s.id});
        ++stats_.blocks_in;
        s.table.blocks[i] = id;
    }
    swap_.drop(s.saved);
    s.saved.clear();

    const std::int32_t named = s.table.named;
    s.table.named = 0;
    s.table.chain = prefix_root;
    for (; s.table.named < named; ++s.table.named) {
        const BlockId id = s.table.blocks[std::size_t(s.table.named)];
        if (pool_.block(id).key_hash == 0) name_block(s, &plan.named);
        s.table.chain = pool_.block(id).chain;
    }
}

std::int32_t Scheduler::chunk(const Sequence& s, const Allowance& left) const {
    if (s.held || s.surely_ends()) return 0;
    std::int32_t rows = s.expected() - s.computed;
    if (s.decoding()) return std::min(rows, left.total);
    rows = std::min({rows, left.total, left.prefill});
    if (options_.fixed_chunk_tokens > 0) rows = std::min(rows, options_.fixed_chunk_tokens);
    if (s.prompt_logits) {
        const std::int32_t silent = std::max(0, s.prompt_logits_done - s.computed);
        rows = std::min(rows, silent + 1 + left.extra_logits);
    }
    return rows;
}

void Scheduler::schedule(Sequence& s, std::int32_t rows, StepPlan& plan, Allowance& left) {
    ScheduledSequence item;
    item.sequence = &s;
    item.request = s.request;
    item.start = s.computed;
    item.rows = rows;
    item.decode = s.decoding();
    s.computed += rows;
    item.samples = s.computed == s.expected();
    item.draws = item.samples && !s.beam ? s.forks : 0;
    item.outputs = item.samples ? 1 : 0;
    if (s.prompt_logits) {
        const std::int32_t from = std::max(item.start, s.prompt_logits_done);
        const std::int32_t to = std::min(s.computed, s.prompt_tokens - 1);
        item.outputs += std::max(0, to - from);
    }
    item.first_output_position = s.computed - item.outputs;
    if (s.prompt_logits && !item.samples)
        item.first_output_position = std::max(item.start, s.prompt_logits_done);
    if (item.samples) ++s.pending;
    left.total -= rows;
    if (!item.decode) left.prefill -= rows;
    left.extra_logits -= std::max(0, item.outputs - 1);
    name_blocks(s, std::min(s.computed, s.prompt_tokens), &plan.named);
    plan.scheduled.push_back(item);
}

bool Scheduler::writes_shared_block(const Sequence& s) const {
    if (s.computed % options_.block_size == 0) return false;
    return pool_.block(s.table.blocks[std::size_t(s.computed / options_.block_size)]).ref_count > 1;
}

std::int32_t Scheduler::new_blocks(const Sequence& s, std::int32_t rows) const {
    return blocks_for(s.computed + rows, options_.block_size) - s.table.size() +
           (writes_shared_block(s) ? 1 : 0);
}

// Preempts from the back of the running until the rows have blocks; false when that was the sequence itself.
bool Scheduler::make_room(Sequence& s, std::int32_t rows, StepPlan& plan) {
    while (new_blocks(s, rows) > pool_.available()) {
        const bool itself = running_.back() == &s;
        preempt_last(plan);
        if (itself) return false;
    }
    return true;
}

BlockId Scheduler::take_block(const Sequence& s, StepPlan& plan) {
    const BlockId id = pool_.allocate(s.owner, s.id);
    assert(id >= 0);
    save_before_writing(id, 0, plan);
    return id;
}

// What a paused sequence wants of the slots from `first` on goes to host memory.
void Scheduler::save_before_writing(BlockId id, std::int32_t first, StepPlan& plan) {
    const SwapSpace::Saved* saved = swap_.give_place(id, first);
    if (!saved) return;
    plan.transfers.push_back({TransferKind::swap_out, id, saved->place});
    pool_.record({.kind = PoolEventKind::swap_out,
                  .block = id,
                  .other = saved->place,
                  .owner = saved->owner,
                  .sequence = saved->sequence});
    ++stats_.blocks_out;
}

void Scheduler::take_blocks(Sequence& s, std::int32_t rows, StepPlan& plan) {
    if (writes_shared_block(s)) {
        BlockId& entry = s.table.blocks[std::size_t(s.computed / options_.block_size)];
        const BlockId copy = take_block(s, plan);
        plan.transfers.push_back({TransferKind::copy, entry, copy});
        pool_.record(
            {.kind = PoolEventKind::copy, .block = copy, .other = entry, .owner = s.owner, .sequence = s.id});
        pool_.release(entry, s.owner, s.id);
        entry = copy;
    } else if (const std::int32_t slot = s.computed % options_.block_size; slot != 0) {
        save_before_writing(s.table.blocks[std::size_t(s.computed / options_.block_size)], slot, plan);
    }
    while (s.table.size() * options_.block_size < s.computed + rows)
        s.table.blocks.push_back(take_block(s, plan));
}

void Scheduler::preempt_last(StepPlan& plan) {
    Sequence& s = *running_.back();
    running_.pop_back();
    pool_.record(
        {.kind = PoolEventKind::preempt, .owner = s.owner, .sequence = s.id, .count = s.table.size()});
    const std::vector<BlockId> table = s.table.blocks;
    give_up_blocks(s);
    pool_.release_all(table, s.owner, s.id);
    ++s.preemptions;
    ++stats_.preemptions;
    if (s.phase == SequencePhase::swapped) {
        ++s.swaps;
        ++stats_.swaps;
    }
    plan.preempted.push_back(&s);
    enqueue(s);
}

void Scheduler::give_up_blocks(Sequence& s) {
    if (swap_.has_room(s.table.blocks)) {
        s.saved = swap_.keep(s.table.blocks, s.computed, s.owner, s.id);
        s.table.blocks.clear();
        s.phase = SequencePhase::swapped;
    } else {
        s.table = {};
        s.computed = 0;
        s.phase = SequencePhase::preempted;
    }
}

void Scheduler::forget_saved(Sequence& s) {
    swap_.drop(s.saved);
    s.saved.clear();
    s.table = {};
    s.computed = 0;
    s.phase = SequencePhase::preempted;
}

PrefixKey Scheduler::key_of(std::uint64_t chain, std::span<const std::int32_t> tokens) const {
    PrefixKey key = prefix_key(chain, tokens);
    key.hash = std::max<std::uint64_t>(1, key.hash & options_.prefix_hash_mask);
    return key;
}

// The last token must be computed to get logits, so the hit ends before it.
std::vector<BlockId> Scheduler::find_prefix(const Sequence& s) const {
    std::vector<BlockId> hit;
    if (!options_.prefix_caching || !s.read_prefix_cache) return hit;
    const auto size = std::size_t(options_.block_size);
    const std::size_t longest = (s.tokens.size() - 1) / size;
    std::uint64_t chain = prefix_root;
    for (std::size_t i = 0; i < longest; ++i) {
        const std::span tokens = std::span(s.tokens).subspan(i * size, size);
        const BlockId id = pool_.find(key_of(chain, tokens), tokens);
        if (id < 0) break;
        chain = pool_.block(id).chain;
        hit.push_back(id);
    }
    return hit;
}

// Names the first block without a name.
void Scheduler::name_block(const Sequence& s, std::vector<BlockId>* named) {
    const std::int32_t size = options_.block_size;
    const BlockId id = s.table.blocks[std::size_t(s.table.named)];
    const std::span content =
        std::span<const std::int32_t>(s.tokens).subspan(std::size_t(s.table.named * size), std::size_t(size));
    pool_.set_key(id, key_of(s.table.chain, content), content);
    if (named) named->push_back(id);
}

void Scheduler::name_blocks(Sequence& s, std::int32_t tokens, std::vector<BlockId>* named) {
    if (!options_.prefix_caching) return;
    for (; (s.table.named + 1) * options_.block_size <= tokens; ++s.table.named) {
        name_block(s, named);
        s.table.chain = pool_.block(s.table.blocks[std::size_t(s.table.named)]).chain;
    }
}

void Scheduler::fill_batch(StepPlan& plan) const {
    StepBatch& b = plan.batch;
    for (auto* v : {&b.token_ids, &b.positions, &b.row_sequence, &b.slots, &b.query_start, &b.context_tokens,
                    &b.block_tables, &b.logit_rows, &b.token_from})
        v->clear();
    b.draws.clear();
    b.sequence_ids.clear();
    b.max_blocks = 0;
    for (const ScheduledSequence& item : plan.scheduled)
        b.max_blocks = std::max(b.max_blocks, item.sequence->table.size());
    b.block_tables.assign(plan.scheduled.size() * std::size_t(b.max_blocks), -1);
    for (std::size_t i = 0; i < plan.scheduled.size(); ++i) {
        ScheduledSequence& item = plan.scheduled[i];
        Sequence& s = *item.sequence;
        const std::int32_t first_row = b.rows();
        b.sequence_ids.push_back(s.id);
        b.query_start.push_back(first_row);
        for (std::int32_t p = item.start; p < item.start + item.rows; ++p) {
            const bool known = p < s.total();
            b.token_ids.push_back(known ? s.tokens[std::size_t(p)] : 0);
            b.token_from.push_back(known ? -1 : s.drawn_by);
            b.positions.push_back(p);
            b.row_sequence.push_back(std::int32_t(i));
            b.slots.push_back(s.table.slot(p, options_.block_size));
        }
        b.context_tokens.push_back(item.start + item.rows);
        std::ranges::copy(s.table.blocks, b.block_tables.begin() + std::ptrdiff_t(i) * b.max_blocks);
        item.first_output = b.outputs();
        for (std::int32_t k = 0; k < item.outputs; ++k)
            b.logit_rows.push_back(first_row + item.first_output_position - item.start + k);
        if (item.samples) s.drawn_by = b.outputs() - 1;
    }
    b.query_start.push_back(b.rows());
}

}  // namespace recto
