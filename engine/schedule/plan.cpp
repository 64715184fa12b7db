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
    Allowance left = allowance();
    plan_running(plan, left);
    if (plan.preempted.empty()) plan_waiting(plan, left);
    fill_batch(plan);
    assert(!plan.scheduled.empty() || !has_work());
    return !plan.scheduled.empty();
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

void Scheduler::plan_waiting(StepPlan& plan, Allowance& left) {
    std::int32_t promised = 0;  // blocks that admitted sequences still need for the tokens they have
    std::int32_t places = options_.max_num_seqs;
    for (const Sequence* s : running_) {
        promised += blocks_for(s->total(), options_.block_size) - s->table.size();
        places -= s->forks;
    }
    while (!waiting_.empty() && std::min(left.total, left.prefill) > 0) {
        Sequence& s = *waiting_.front();
        if (places < std::min(s.forks, options_.max_num_seqs)) break;
        const std::vector<BlockId> hit = find_prefix(s);
        const auto revived = std::int32_t(
            std::ranges::count_if(hit, [this](BlockId id) { return pool_.block(id).ref_count == 0; }));
        const std::int32_t missing = blocks_for(s.total(), options_.block_size) - std::int32_t(hit.size());
        const auto spare = running_.empty() ? 0 : std::int32_t(std::ceil(options_.watermark * pool_.total()));
        const std::int32_t room = pool_.available() - revived - promised - spare;
        s.blocks_missing = std::max(0, missing - room);
        if (missing > room) break;  // no overtaking

        waiting_.pop_front();
        places -= s.forks;
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
        }
        start(s);
        const std::int32_t rows = chunk(s, left);
        take_blocks(s, rows, plan);
        schedule(s, rows, plan, left);
        promised += blocks_for(s.total(), options_.block_size) - s.table.size();
    }
}

std::int32_t Scheduler::chunk(const Sequence& s, const Allowance& left) const {
    std::int32_t rows = s.total() - s.computed;
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
    item.samples = s.computed == s.total();
    item.draws = item.samples ? s.forks : 0;
    item.outputs = item.samples ? 1 : 0;
    if (s.prompt_logits) {
        const std::int32_t from = std::max(item.start, s.prompt_logits_done);
        const std::int32_t to = std::min(s.computed, s.prompt_tokens - 1);
        item.outputs += std::max(0, to - from);
    }
    item.first_output_position = s.computed - item.outputs;
    if (s.prompt_logits && !item.samples)
        item.first_output_position = std::max(item.start, s.prompt_logits_done);
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
        Sequence& victim = *running_.back();
        preempt(victim, plan);
        if (&victim == &s) return false;
    }
    return true;
}

void Scheduler::take_blocks(Sequence& s, std::int32_t rows, StepPlan& plan) {
    if (writes_shared_block(s)) {
        BlockId& entry = s.table.blocks[std::size_t(s.computed / options_.block_size)];
        const BlockId copy = pool_.allocate(s.owner, s.id);
        assert(copy >= 0);
        plan.copies.push_back({entry, copy});
        pool_.record(
            {.kind = PoolEventKind::copy, .block = copy, .other = entry, .owner = s.owner, .sequence = s.id});
        pool_.release(entry, s.id);
        entry = copy;
    }
    while (s.table.size() * options_.block_size < s.computed + rows) {
        s.table.blocks.push_back(pool_.allocate(s.owner, s.id));
        assert(s.table.blocks.back() >= 0);
    }
}

void Scheduler::preempt(Sequence& s, StepPlan& plan) {
    assert(running_.back() == &s);
    running_.pop_back();
    pool_.record(
        {.kind = PoolEventKind::preempt, .owner = s.owner, .sequence = s.id, .count = s.table.size()});
    pool_.release_all(s.table.blocks, s.id);
    s.table = {};
    s.computed = 0;
    s.phase = SequencePhase::preempted;
    ++s.preemptions;
    ++stats_.preemptions;
    plan.preempted.push_back(&s);
    enqueue(s);
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

void Scheduler::name_blocks(Sequence& s, std::int32_t tokens, std::vector<BlockId>* named) {
    if (!options_.prefix_caching) return;
    const std::int32_t size = options_.block_size;
    for (; (s.table.named + 1) * size <= tokens; ++s.table.named) {
        const BlockId id = s.table.blocks[std::size_t(s.table.named)];
        const std::span content = std::span<const std::int32_t>(s.tokens).subspan(
            std::size_t(s.table.named * size), std::size_t(size));
        pool_.set_key(id, key_of(s.table.chain, content), content);
        s.table.chain = pool_.block(id).chain;
        if (named) named->push_back(id);
    }
}

void Scheduler::fill_batch(StepPlan& plan) const {
    StepBatch& b = plan.batch;
    for (auto* v : {&b.token_ids, &b.positions, &b.row_sequence, &b.slots, &b.query_start, &b.context_tokens,
                    &b.block_tables, &b.logit_rows})
        v->clear();
    b.max_blocks = 0;
    for (const ScheduledSequence& item : plan.scheduled)
        b.max_blocks = std::max(b.max_blocks, item.sequence->table.size());
    b.block_tables.assign(plan.scheduled.size() * std::size_t(b.max_blocks), -1);
    for (std::size_t i = 0; i < plan.scheduled.size(); ++i) {
        ScheduledSequence& item = plan.scheduled[i];
        const Sequence& s = *item.sequence;
        const std::int32_t first_row = b.rows();
        b.query_start.push_back(first_row);
        for (std::int32_t p = item.start; p < item.start + item.rows; ++p) {
            b.token_ids.push_back(s.tokens[std::size_t(p)]);
            b.positions.push_back(p);
            b.row_sequence.push_back(std::int32_t(i));
            b.slots.push_back(s.table.slot(p, options_.block_size));
        }
        b.context_tokens.push_back(item.start + item.rows);
        std::ranges::copy(s.table.blocks, b.block_tables.begin() + std::ptrdiff_t(i) * b.max_blocks);
        item.first_output = b.outputs();
        for (std::int32_t k = 0; k < item.outputs; ++k)
            b.logit_rows.push_back(first_row + item.first_output_position - item.start + k);
    }
    b.query_start.push_back(b.rows());
}

}  // namespace recto
