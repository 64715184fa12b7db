#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "kernels/error.h"

namespace recto {
namespace {

bool goes_before(const Sequence* a, const Sequence* b) {
    return std::tuple(-std::int64_t(a->priority), a->arrival, a->output) <
           std::tuple(-std::int64_t(b->priority), b->arrival, b->output);
}

template <class Queue>
void insert_ordered(Queue& queue, Sequence* s) {
    queue.insert(std::upper_bound(queue.begin(), queue.end(), s, goes_before), s);
}

template <class Queue>
void erase_from(Queue& queue, const Sequence* s) {
    const auto it = std::find(queue.begin(), queue.end(), s);
    assert(it != queue.end());
    queue.erase(it);
}

std::string number(std::int64_t value) {
    return std::to_string(value);
}

SchedulerOptions checked(const SchedulerOptions& o) {
    if (o.block_size < 1)
        throw Error(ErrorKind::argument, "block_size must be at least 1, got " + number(o.block_size));
    if (o.kv_blocks < 1)
        throw Error(ErrorKind::argument, "kv_blocks must be at least 1, got " + number(o.kv_blocks));
    if (o.max_model_len < 2)
        throw Error(ErrorKind::argument, "max_model_len must be at least 2, got " + number(o.max_model_len));
    if (o.max_num_seqs < 1)
        throw Error(ErrorKind::argument, "max_num_seqs must be at least 1, got " + number(o.max_num_seqs));
    if (o.swap_blocks < 0)
        throw Error(ErrorKind::argument, "swap_blocks must be at least 0, got " + number(o.swap_blocks));
    if (o.max_num_batched_tokens < o.max_num_seqs)
        throw Error(ErrorKind::argument, "max_num_batched_tokens must be at least max_num_seqs (" +
                                             number(o.max_num_seqs) + "), got " +
                                             number(o.max_num_batched_tokens));
    return o;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(checked(options)),
      pool_(options.kv_blocks, options.block_size),
      swap_(options.swap_blocks, options.block_size),
      chunks_(options.chunk_target_seconds, options.block_size) {}

Sequence& Scheduler::add(NewSequence n) {
    const auto prompt_tokens = std::int64_t(n.prompt.size());
    if (prompt_tokens == 0) throw Error(ErrorKind::argument, "the prompt must have at least one token");
    if (prompt_tokens >= options_.max_model_len)
        throw Error(ErrorKind::argument,
                    "the prompt has " + number(prompt_tokens) + " tokens, but the context holds " +
                        number(options_.max_model_len) +
                        " and needs room for an answer: shorten it, or give a longer context (max_model_len, "
                        "and a pool of kv_blocks that holds it)");
    // The last sampled token is never fed back, so it needs no slot.
    const auto need = blocks_for(n.max_total_tokens - 1, options_.block_size);
    if (need > pool_.total())
        throw Error(ErrorKind::argument,
                    "the request can grow to " + number(n.max_total_tokens) + " tokens and then needs " +
                        number(need) + " blocks of " + number(options_.block_size) + ", but the pool has " +
                        number(pool_.total()) + ": lower max_tokens or make the pool larger");
    if (n.beam && n.forks > options_.max_num_seqs)
        throw Error(ErrorKind::argument, "a beam search of width " + number(n.forks) +
                                             " needs as many places in a step, and max_num_seqs is " +
                                             number(options_.max_num_seqs) +
                                             ": choose fewer beams or raise max_num_seqs");
    auto s = std::make_unique<Sequence>();
    s->id = next_sequence_++;
    s->arrival = next_arrival_++;
    s->request = n.request;
    s->owner = n.owner;
    s->priority = n.priority;
    s->tokens = std::move(n.prompt);
    s->prompt_tokens = std::int32_t(prompt_tokens);
    s->max_total_tokens = n.max_total_tokens;
    s->forks = n.forks;
    s->beam = n.beam;
    s->read_prefix_cache = n.read_prefix_cache;
    s->prompt_logits = n.prompt_logits;
    Sequence& added = *s;
    sequences_.emplace(added.id, std::move(s));
    enqueue(added);
    return added;
}

void Scheduler::remove(Sequence& s) {
    if (s.phase == SequencePhase::running) {
        erase_from(running_, &s);
    } else if (s.held) {
        erase_from(parked_, &s);
    } else {
        erase_from(waiting_, &s);
    }
    pool_.release_all(s.table.blocks, s.owner, s.id);
    swap_.drop(s.saved);
    sequences_.erase(s.id);
}

void Scheduler::enqueue(Sequence& s) {
    if (s.held) {
        parked_.push_back(&s);
    } else {
        insert_ordered(waiting_, &s);
    }
}

void Scheduler::start(Sequence& s) {
    s.phase = SequencePhase::running;
    insert_ordered(running_, &s);
}

std::span<const CommittedToken> Scheduler::commit(const StepPlan& plan,
                                                  std::span<const std::int32_t> tokens) {
    committed_.clear();
    std::size_t draw = 0;
    for (std::size_t i = 0; i < plan.scheduled.size(); ++i) {
        const ScheduledSequence& item = plan.scheduled[i];
        if (!item.sequence) {
            draw += std::size_t(item.draws);
            continue;
        }
        Sequence& s = *item.sequence;
        (item.decode ? stats_.tokens_decoded : stats_.tokens_prefilled) += std::uint64_t(item.rows);
        if (s.prompt_logits)
            s.prompt_logits_done =
                std::max(s.prompt_logits_done, std::min(item.start + item.rows, s.prompt_tokens - 1));
        name_blocks(s, item.start + item.rows, nullptr);
        if (!item.samples) continue;
        --s.pending;
        s.held = s.beam;
        if (s.held) s.forks = 1;
        const std::size_t first = committed_.size();
        for (std::int32_t d = 0; d < item.draws; ++d, ++draw) {
            Sequence& target = d == 0 ? s : fork(s, d);
            committed_.push_back({&target, tokens[draw], std::int32_t(i), std::int32_t(draw)});
        }
        s.forks = 1;
        for (std::size_t c = first; c < committed_.size(); ++c)
            if (committed_[c].token >= 0) committed_[c].sequence->tokens.push_back(committed_[c].token);
    }
    assert(draw == tokens.size());
    return committed_;
}

Sequence& Scheduler::fork(const Sequence& parent, std::int32_t output) {
    auto owned = std::make_unique<Sequence>(parent);
    Sequence& s = *owned;
    s.id = next_sequence_++;
    s.output = output;
    s.forks = 1;
    s.prompt_logits = false;
    s.preemptions = 0;
    s.swaps = 0;
    s.resumed_queries = s.resumed_hits = 0;
    sequences_.emplace(s.id, std::move(owned));
    if (parent.phase != SequencePhase::running) {
        swap_.share(s.saved);
        enqueue(s);
    } else if (std::int32_t(running_.size()) < options_.max_num_seqs) {
        for (BlockId id : s.table.blocks)
            pool_.share(id, s.owner, s.id);
        start(s);
    } else {  // more outputs than places
        give_up_blocks(s);
        enqueue(s);
    }
    return s;
}

Sequence& Scheduler::branch(Sequence& parent, std::int32_t output) {
    assert(parent.held);
    return fork(parent, output);
}

void Scheduler::choose(Sequence& s, std::int32_t token) {
    assert(s.held);
    if (s.phase != SequencePhase::running) erase_from(parked_, &s);
    s.held = false;
    s.tokens.push_back(token);
    if (s.phase != SequencePhase::running) enqueue(s);
}

void Scheduler::withdraw(const StepPlan& plan) {
    for (BlockId id : plan.named)
        pool_.withdraw_key(id);
    for (const ScheduledSequence& item : plan.scheduled) {
        if (!item.sequence) continue;
        item.sequence->computed = item.start;
        if (item.samples) --item.sequence->pending;
    }
    std::set<std::int32_t> lost;
    for (const BlockTransfer& t : plan.transfers)
        if (t.kind == TransferKind::swap_out) lost.insert(t.to);
    if (lost.empty()) return;
    for (const auto& [id, s] : sequences_)
        if (std::ranges::any_of(s->saved,
                                [&](SavedId saved) { return lost.contains(swap_.saved(saved).place); }))
            forget_saved(*s);
}

void Scheduler::distrust(const Sequence& s) {
    for (BlockId id : s.table.blocks)
        if (pool_.block(id).ref_count == 1) pool_.withdraw_key(id);
}

}  // namespace recto
