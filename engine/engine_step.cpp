// Engine::step: plan, forward, sample, commit.
#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "engine/engine_state.h"

namespace recto {

namespace {

// What a step's failure says to the person.
std::string failure_of(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error))
        return "not enough memory to compute this step: end other programs or load the model with a shorter "
               "context";
    return error.what();
}

}  // namespace

// With overlap a call finds its step enqueued by the call before, enqueues the next one, and only then waits:
// the device goes from one to the other while tokens become text here.
std::vector<RequestEvent> Engine::State::step() {
    if (in_flight && plan.forgotten()) in_flight = false;
    if (!in_flight) {
        plan_started = now();
        const bool any = scheduler.plan(plan);
        note_plan(plan, plan_started);
        if (!any || !start(plan)) return std::exchange(events, {});
    }
    const bool followed = overlap && !plan.host_reads_logits && start_ahead();
    finish(followed);
    return std::exchange(events, {});
}

bool Engine::State::start(StepPlan& p) {
    request_draws(p);
    try {
        forward(p);
        return true;
    } catch (const std::exception& error) {
        StepPlan* const failed[] = {&p};
        fail_steps(failed, failure_of(error));
        return false;
    }
}

bool Engine::State::start_ahead() {
    ahead_started = now();
    if (!scheduler.plan_ahead(ahead)) return false;
    note_plan(ahead, ahead_started);
    return start(ahead);
}

// Waits for the step's tokens and gives them to their requests. `followed`: `ahead` is enqueued behind it.
void Engine::State::finish(bool followed) {
    in_flight = false;
    try {
        sample(followed);
    } catch (const std::exception& error) {
        StepPlan* const failed[] = {&ahead, &plan};  // the later one first
        fail_steps(std::span(failed).subspan(followed ? 0 : 1), failure_of(error));
        return;
    }
    const double time = now();
    last_step_s = time - std::max(plan_started, last_commit);
    last_commit = time;
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
    if (!followed) return;
    std::swap(plan, ahead);
    plan_started = ahead_started;
    in_flight = true;
}

void Engine::State::note_plan(const StepPlan& p, double time) {
    for (const Sequence* s : p.preempted) {
        RequestState& r = requests.at(s->request);
        ++r.metrics.preemptions;
        r.metrics.swaps += s->phase == SequencePhase::swapped;
        r.pause(r.outputs[std::size_t(s->output)], time);
    }
    for (const ScheduledSequence& item : p.scheduled) {
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

// Which tokens of the step the device draws, and how: those that need nothing but their row.
void Engine::State::request_draws(StepPlan& p) {
    p.host_reads_logits = false;
    if (!step_model->asynchronous()) return;
    p.batch.draws.assign(std::size_t(p.batch.outputs()), RowDraw{});
    for (const ScheduledSequence& item : p.scheduled) {
        if (item.outputs == 0) continue;
        const Sequence& s = *item.sequence;
        const RequestState& r = requests.at(item.request);
        const std::int32_t output_tokens = item.start + item.rows - s.prompt_tokens;
        const bool here = item.samples && item.outputs == 1 && item.draws == 1 &&
                          Sampler::needs_row_only(r.sampling, std::size_t(output_tokens));
        if (here)
            p.batch.draws[std::size_t(item.first_output)] = Sampler::row_draw(
                r.sampling, r.outputs[std::size_t(s.output)].seed, std::uint32_t(output_tokens));
        else
            p.host_reads_logits = true;
    }
}

void Engine::State::forward(const StepPlan& p) {
    const auto place = [this](std::int32_t n) { return swap_memory.get() + std::uint64_t(n) * block_bytes; };
    for (const BlockTransfer& t : p.transfers) {
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
    step_model->forward(p.batch);
}

void Engine::State::sample(bool followed) {
    tokens.clear();
    draws.clear();
    searching.clear();
    std::span<const std::int32_t> drawn;
    if (step_model->asynchronous()) drawn = step_model->drawn(followed ? 1 : 0);
    for (const ScheduledSequence& item : plan.scheduled) {
        if (item.outputs == 0) continue;
        const std::size_t first = draws.size();
        draws.resize(first + std::size_t(item.draws));
        if (item.sequence) {
            RequestState& r = requests.at(item.request);
            collect_prompt_logprobs(item, r);
            if (item.samples && item.sequence->beam) {
                propose(item, r);
            } else if (item.samples) {
                const auto row = std::size_t(item.first_output + item.outputs - 1);
                if (!plan.batch.draws.empty() && plan.batch.draws[row].kind != DrawKind::none)
                    draws[first].token = drawn[row];
                else
                    draw_on_host(item, r, first);
                if (draws[first].token < 0 && !draws[first].failure)
                    draws[first].failure = "the model's logits for this request are not finite";
            }
        }
        for (std::size_t d = first; d < draws.size(); ++d)
            tokens.push_back(draws[d].token);
    }
}

// Draws of one row whose logits, or their argmax, are fetched.
void Engine::State::draw_on_host(const ScheduledSequence& item, RequestState& r, std::size_t first) {
    const Sequence& s = *item.sequence;
    const int row = item.first_output + item.outputs - 1;
    const std::span all(s.tokens);
    const auto prompt = all.first(std::size_t(s.prompt_tokens));
    const auto output = all.subspan(std::size_t(s.prompt_tokens));
    if (Sampler::plain_greedy(r.sampling, output.size())) {
        draws[first].token = step_model->argmax(row, vocab);
        return;
    }
    seeds.clear();
    for (std::int32_t d = 0; d < item.draws; ++d)
        seeds.push_back(r.outputs[std::size_t(s.output + d)].seed);
    sampler.sample(step_model->logits(row), r.sampling, prompt, output, seeds,
                   std::span(draws).subspan(first, std::size_t(item.draws)));
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
void Engine::State::fail_steps(std::span<StepPlan* const> failed, const std::string& why) {
    std::vector<RequestId> ended;
    for (StepPlan* p : failed) {
        scheduler.withdraw(*p);
        for (const ScheduledSequence& item : p->scheduled)
            if (item.sequence && (ended.empty() || ended.back() != item.request)) ended.push_back(item.request);
    }
    for (RequestId id : ended)
        if (const auto it = requests.find(id); it != requests.end())
            end_request(it->second, FinishReason::error, why);
}

void Engine::State::remove(Sequence& s) {
    plan.forget(s);
    ahead.forget(s);
    scheduler.remove(s);
}

}  // namespace recto
