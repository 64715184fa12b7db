// Engine::step: plan, forward, sample, commit.
#include <algorithm>
#include <cassert>
#include <new>

#include "engine/engine_state.h"

namespace recto {

std::vector<RequestEvent> Engine::State::step() {
    const double begin = now();
    if (!scheduler.plan(plan)) {
        note_plan(begin);
        return std::exchange(events, {});
    }
    note_plan(begin);
    try {
        forward();
        sample();
    } catch (const std::bad_alloc&) {
        fail_step(
            "not enough memory to compute this step: end other programs or load the model with a shorter "
            "context");
        return std::exchange(events, {});
    } catch (const std::exception& error) {
        fail_step(error.what());
        return std::exchange(events, {});
    }
    const double time = now();
    last_step_s = time - begin;
    last_step_rows = plan.batch.rows();
    scheduler.observe_step(last_step_rows, last_step_s);
    const auto committed = scheduler.commit(plan, tokens);
    // First, because a failed draw ends all outputs of its request, those that were just forked included.
    for (const CommittedToken& c : committed) {
        const Sequence& s = *c.sequence;
        requests.at(s.request).outputs[std::size_t(s.output)].sequence = c.sequence;
    }
    for (const CommittedToken& c : committed)
        deliver(c, time);
    for (RequestId id : searching)
        if (const auto it = requests.find(id); it != requests.end()) advance_beams(it->second, time);
    return std::exchange(events, {});
}

void Engine::State::note_plan(double time) {
    for (const Sequence* s : plan.preempted) {
        RequestState& r = requests.at(s->request);
        ++r.metrics.preemptions;
        r.metrics.swaps += s->phase == SequencePhase::swapped;
        r.pause(r.outputs[std::size_t(s->output)], time);
    }
    for (const ScheduledSequence& item : plan.scheduled) {
        const Sequence& s = *item.sequence;
        RequestState& r = requests.at(item.request);
        if (!r.started) {
            r.started = true;
            r.metrics.t_start = time;
            r.metrics.cached_tokens = r.metrics.prefix_hits = s.cached_tokens;
            r.metrics.prefix_queries =
                s.read_prefix_cache && scheduler.options().prefix_caching ? s.prompt_tokens : 0;
        }
        r.metrics.resumed_queries += std::exchange(item.sequence->resumed_queries, 0);
        r.metrics.resumed_hits += std::exchange(item.sequence->resumed_hits, 0);
        r.resume(r.outputs[std::size_t(s.output)], time);
    }
}

void Engine::State::forward() {
    const auto place = [this](std::int32_t n) { return swap_memory.get() + std::uint64_t(n) * block_bytes; };
    for (const BlockTransfer& t : plan.transfers) {
        switch (t.kind) {
            case TransferKind::copy:
                step_model->copy_block(t.from, t.to);
                break;
            case TransferKind::swap_out:
                step_model->swap_out(t.from, place(t.to));
                break;
            case TransferKind::swap_in:
                step_model->swap_in(t.to, place(t.from));
                break;
        }
    }
    step_model->forward(plan.batch);
}

void Engine::State::sample() {
    tokens.clear();
    draws.clear();
    searching.clear();
    for (const ScheduledSequence& item : plan.scheduled) {
        if (item.outputs == 0) continue;
        const Sequence& s = *item.sequence;
        RequestState& r = requests.at(s.request);
        collect_prompt_logprobs(item, r);
        if (!item.samples) continue;
        if (s.beam) {
            propose(item, r);
            continue;
        }
        const std::size_t first = draws.size();
        draws.resize(first + std::size_t(item.draws));
        const int row = item.first_output + item.outputs - 1;
        const std::span all(s.tokens);
        const auto prompt = all.first(std::size_t(s.prompt_tokens));
        const auto output = all.subspan(std::size_t(s.prompt_tokens));
        if (Sampler::plain_greedy(r.sampling, output.size())) {
            draws[first].token = step_model->argmax(row, vocab);
            if (draws[first].token < 0)
                draws[first].failure = "the model's logits for this request are not finite";
        } else {
            seeds.clear();
            for (std::int32_t d = 0; d < item.draws; ++d)
                seeds.push_back(r.outputs[std::size_t(s.output + d)].seed);
            sampler.sample(step_model->logits(row), r.sampling, prompt, output, seeds,
                           std::span(draws).subspan(first));
        }
        for (std::size_t d = first; d < draws.size(); ++d)
            tokens.push_back(draws[d].token);
    }
}

void Engine::State::collect_prompt_logprobs(const ScheduledSequence& item, RequestState& r) {
    const Sequence& s = *item.sequence;
    if (!s.prompt_logits) return;
    for (int k = 0; k < item.outputs; ++k) {
        const std::int32_t next = item.first_output_position + k + 1;
        if (next >= s.prompt_tokens) break;
        assert(std::size_t(next) == r.prompt_logprobs.size());
        r.prompt_logprobs.push_back(sampler.logprobs(step_model->logits(item.first_output + k),
                                                     s.tokens[std::size_t(next)],
                                                     *r.sampling.params.prompt_logprobs));
    }
}

// A step fails as a whole: nobody knows whose row it was, and running it again would fail again.
void Engine::State::fail_step(const std::string& why) {
    scheduler.withdraw(plan);
    std::vector<RequestId> failed;
    for (const ScheduledSequence& item : plan.scheduled)
        if (failed.empty() || failed.back() != item.sequence->request)
            failed.push_back(item.sequence->request);
    for (RequestId id : failed)
        if (const auto it = requests.find(id); it != requests.end())
            end_request(it->second, FinishReason::error, why);
}

}  // namespace recto
