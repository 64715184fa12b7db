// Beam search inside the engine: its beams are sequences of one request that share blocks. A step may compute
// some of them and not others (a chunk, a preemption); the search advances when every one has proposed. The
// rules are in sample/beam_search.h.
#include <algorithm>
#include <cassert>

#include "engine/engine_state.h"

namespace recto {
namespace {

// What the score counts: not the EOS at the end.
std::int64_t scored_length(const RequestState& r, std::int64_t total, std::int32_t last) {
    return total - std::int64_t(std::ranges::find(r.sampling.eos, last) != r.sampling.eos.end());
}

double score_of(const RequestState& r, double cumulative, std::int64_t total, std::int32_t last) {
    return beam_score(cumulative, scored_length(r, total, last), r.sampling.params.length_penalty);
}

void keep_answer(BeamSearch& search, BeamAnswer answer, std::size_t width) {
    const auto at =
        std::ranges::upper_bound(search.finished, answer.score, std::greater<>(), &BeamAnswer::score);
    search.finished.insert(at, std::move(answer));
    if (search.finished.size() > width) search.finished.pop_back();
}

// Everything that the beam has said, as the event that will end its output.
RequestEvent whole(const Beam& beam) {
    RequestEvent e;
    const Sequence& s = *beam.sequence;
    e.text = beam.text;
    e.token_ids.assign(s.tokens.begin() + s.prompt_tokens, s.tokens.end());
    e.logprobs = beam.logprobs;
    e.cumulative_logprob = beam.cumulative;
    return e;
}

}  // namespace

void Engine::State::propose(const ScheduledSequence& item, RequestState& r) {
    const Sequence& s = *item.sequence;
    BeamSearch& search = *r.search;
    const auto beam = std::ranges::find(search.beams, &s, &Beam::sequence);
    assert(beam != search.beams.end());
    const std::span all(s.tokens);
    const char* failure =
        sampler.propose(step_model->logits(item.first_output + item.outputs - 1), r.sampling,
                        all.first(std::size_t(s.prompt_tokens)), all.subspan(std::size_t(s.prompt_tokens)),
                        2 * r.sampling.params.width(), beam->proposals);
    if (failure) {
        search.failure = failure;
        scheduler.distrust(s);
    }
    if (std::ranges::find(searching, r.id) == searching.end()) searching.push_back(r.id);
}

void Engine::State::advance_beams(RequestState& r, double time) {
    BeamSearch& search = *r.search;
    if (search.failure) return end_request(r, FinishReason::error, search.failure);
    if (!std::ranges::all_of(search.beams, [](const Beam& b) { return b.sequence->held; })) return;
    std::vector<BeamProposals> proposals;
    for (const Beam& b : search.beams)
        proposals.push_back({b.cumulative, b.proposals});
    if (r.token_times.empty()) r.metrics.t_first = time;
    r.metrics.t_last = time;
    r.token_times.push_back(time);
    take_candidates(r, best_candidates(proposals, 2 * std::size_t(r.sampling.params.width())), time);
}

// Candidates that end join the finished answers; the best of the others go on, unless the search is over.
void Engine::State::take_candidates(RequestState& r, std::span<const BeamCandidate> candidates, double time) {
    BeamSearch& search = *r.search;
    const auto width = std::size_t(r.sampling.params.width());
    std::vector<BeamCandidate> chosen;
    std::vector<Beam> next;  // sequences follow
    std::int64_t total = 0;
    for (const BeamCandidate& c : candidates) {
        const Beam& parent = search.beams[c.beam];
        const BeamProposal& proposal = parent.proposals[c.proposal];
        const std::int32_t output_tokens = parent.sequence->output_tokens() + 1;
        total = parent.sequence->total() + 1;
        RequestEvent e;
        TextState text = parent.text_state;
        find_end(r, output_tokens, std::int32_t(total), proposal.token, e);
        append_text(r, text, output_tokens, proposal.token, e);
        if (e.finish == FinishReason::none) {
            if (chosen.size() == width) continue;
            chosen.push_back(c);
            next.push_back(
                {.cumulative = c.cumulative, .text_state = std::move(text), .text = parent.text + e.text});
            continue;
        }
        const double score = score_of(r, c.cumulative, total, proposal.token);
        if (search.finished.size() == width && search.finished.back().score >= score) continue;
        flush_text(text, e);
        BeamAnswer answer{score, whole(parent)};
        RequestEvent& all = answer.event;
        all.text += e.text;
        all.token_ids.push_back(proposal.token);
        if (r.sampling.params.logprobs) all.logprobs.push_back(proposal.reported);
        all.cumulative_logprob = c.cumulative;
        all.finish = e.finish;
        all.stop_token = e.stop_token;
        all.stop_string = std::move(e.stop_string);
        keep_answer(search, std::move(answer), width);
    }
    if (chosen.empty() || (search.finished.size() == width &&
                           beam_search_ends(r.sampling.params, search.finished.back().score,
                                            chosen.front().cumulative, total, r.max_total_tokens)))
        return end_beams(r, FinishReason::none, {});
    continue_beams(r, next, chosen, time);
}

// The chosen children take their parents' sequences, or branches of them; parents without one go first, so
// that their places are free.
void Engine::State::continue_beams(RequestState& r, std::vector<Beam>& next,
                                   std::span<const BeamCandidate> chosen, double time) {
    BeamSearch& search = *r.search;
    std::vector<int> children(search.beams.size(), 0);
    for (const BeamCandidate& c : chosen)
        ++children[c.beam];
    for (std::size_t b = 0; b < search.beams.size(); ++b) {
        if (children[b] > 0) continue;
        Sequence& s = *search.beams[b].sequence;
        OutputState& place = r.outputs[std::size_t(s.output)];
        r.resume(place, time);
        place.sequence = nullptr;
        remove(s);
        search.beams[b].sequence = nullptr;
    }
    std::vector<bool> taken(search.beams.size(), false);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const BeamCandidate& c = chosen[i];
        const Beam& parent = search.beams[c.beam];
        next[i].sequence = parent.sequence;
        if (r.sampling.params.logprobs) {
            next[i].logprobs = parent.logprobs;
            next[i].logprobs.push_back(parent.proposals[c.proposal].reported);
        }
        if (!taken[c.beam]) {
            taken[c.beam] = true;
            continue;
        }
        const auto place = std::ranges::find(r.outputs, nullptr, &OutputState::sequence);
        assert(place != r.outputs.end());
        next[i].sequence = &scheduler.branch(*parent.sequence, std::int32_t(place - r.outputs.begin()));
        place->sequence = next[i].sequence;
        if (r.outputs[std::size_t(parent.sequence->output)].paused) r.pause(*place, time);
    }
    for (std::size_t i = 0; i < chosen.size(); ++i)
        scheduler.choose(*next[i].sequence, search.beams[chosen[i].beam].proposals[chosen[i].proposal].token);
    search.beams = std::move(next);
}

// `reason` none: the search is over. Otherwise it is broken off: beams that still ran end so, after an error
// without anything that had finished before. Every output is reported, and the request is gone.
void Engine::State::end_beams(RequestState& r, FinishReason reason, const std::string& why) {
    BeamSearch& search = *r.search;
    const SamplingParams& p = r.sampling.params;
    if (reason == FinishReason::error) search.finished.clear();
    for (Beam& beam : search.beams) {
        Sequence& s = *beam.sequence;
        if (reason != FinishReason::none) {
            BeamAnswer answer{score_of(r, beam.cumulative, s.total(), s.tokens.back()), whole(beam)};
            answer.event.finish = reason;
            answer.event.error = why;
            flush_text(beam.text_state, answer.event);
            keep_answer(search, std::move(answer), std::size_t(p.width()));
        }
        r.resume(r.outputs[std::size_t(s.output)], now());
        remove(s);
    }
    if (reason != FinishReason::none)
        while (search.finished.size() < std::size_t(p.n)) {
            search.finished.emplace_back();
            search.finished.back().event.finish = reason;
            search.finished.back().event.error = why;
        }
    const std::size_t outputs = std::min(search.finished.size(), std::size_t(p.n));
    for (std::size_t i = 0; i < outputs; ++i)
        r.metrics.output_tokens += int(search.finished[i].event.token_ids.size());
    // An answer may have ended before the search did.
    r.metrics.output0_tokens = int(search.finished.front().event.token_ids.size());
    if (r.token_times.size() > std::size_t(r.metrics.output0_tokens))
        r.token_times.resize(std::size_t(r.metrics.output0_tokens));
    if (!r.token_times.empty()) r.metrics.t_output0_last = r.token_times.back();
    r.live = 0;
    for (std::size_t i = 0; i < outputs; ++i) {
        RequestEvent e = std::move(search.finished[i].event);
        e.request = r.id;
        e.output = int(i);
        if (i == 0) e.prompt_logprobs = std::move(r.prompt_logprobs);
        e.request_finished = i + 1 == outputs;
        e.metrics = e.request_finished ? r.metrics_now() : r.metrics;
        events.push_back(std::move(e));
    }
    const RequestId id = r.id;
    requests.erase(id);
}

}  // namespace recto
