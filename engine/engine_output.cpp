// What a committed token means for its output: text, end, events.
#include <algorithm>
#include <cassert>

#include "engine/engine_state.h"

namespace recto {
namespace {

bool contains(std::span<const std::int32_t> ids, std::int32_t id) {
    return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

// The order of vLLM V1 (core/sched/utils.py): nothing before min_tokens, then EOS, stop ids, length. An
// answer that ended by itself with its last allowed token is not "cut".
void find_end(const RequestState& r, std::int32_t output_tokens, std::int32_t total, std::int32_t token,
              RequestEvent& e) {
    const SamplingParams& p = r.sampling.params;
    if (output_tokens >= p.min_tokens) {
        const bool is_eos = contains(r.sampling.eos, token);
        if (is_eos || contains(p.stop_token_ids, token)) {
            e.finish = FinishReason::stop;
            if (!is_eos || token != r.sampling.eos.front()) e.stop_token = token;
            return;
        }
    }
    if (total >= r.max_total_tokens) e.finish = FinishReason::length;
}

void append_text(const RequestState& r, TextState& text, std::int32_t output_tokens, std::int32_t token,
                 RequestEvent& e) {
    if (!text.detokenizer) return;
    const SamplingParams& p = r.sampling.params;
    if (e.finish == FinishReason::stop) {
        if (!p.include_stop_str_in_output) return;
        e.text += text.stop_text.append(text.detokenizer->append(token), false).text;
        return;
    }
    const StopText::Result result =
        text.stop_text.append(text.detokenizer->append(token), output_tokens > p.min_tokens);
    e.text += result.text;
    if (!result.match) return;
    e.finish = FinishReason::stop;
    e.stop_string = *result.match;
}

void flush_text(TextState& text, RequestEvent& e) {
    if (!text.detokenizer || !e.stop_string.empty()) return;
    e.text += text.stop_text.append(text.detokenizer->flush(), false).text;
    e.text += text.stop_text.flush();
}

void Engine::State::deliver(const CommittedToken& committed, double time) {
    // A request that failed with an earlier draw of this step is gone, its sequences with it.
    const ScheduledSequence& item = plan.scheduled[std::size_t(committed.scheduled)];
    const auto found = requests.find(item.request);
    if (found == requests.end()) return;
    RequestState& r = found->second;
    Sequence& s = *committed.sequence;
    OutputState& o = r.outputs[std::size_t(s.output)];
    Draw& draw = draws[std::size_t(committed.draw)];
    if (draw.token < 0) {
        scheduler.distrust(s);
        end_request(r, FinishReason::error, draw.failure);
        return;
    }

    if (r.metrics.output_tokens == 0) r.metrics.t_first = time;
    ++r.metrics.output_tokens;
    r.metrics.t_last = time;
    if (s.output == 0) {
        ++r.metrics.output0_tokens;
        r.metrics.t_output0_last = time;
        r.token_times.push_back(time);
    }

    RequestEvent e;
    e.token_ids.push_back(draw.token);
    if (r.sampling.params.logprobs) e.logprobs.push_back(std::move(draw.logprobs));
    o.cumulative_logprob += draw.logprob;
    e.prompt_logprobs = std::exchange(r.prompt_logprobs, {});
    find_end(r, s.output_tokens(), s.total(), draw.token, e);
    append_text(r, o.text, s.output_tokens(), draw.token, e);
    if (e.finish != FinishReason::none) finish_output(r, o, e);
    emit(r, std::move(e), o);
}

// The rest of the text goes out, the blocks go back.
void Engine::State::finish_output(RequestState& r, OutputState& o, RequestEvent& e) {
    flush_text(o.text, e);
    if (o.sequence) remove(*o.sequence);
    o.sequence = nullptr;
    r.resume(o, now());
    o.finish = e.finish;
    --r.live;
}

void Engine::State::end_request(RequestState& r, FinishReason reason, const std::string& why) {
    if (r.search) return end_beams(r, reason, why);
    for (OutputState& o : r.outputs) {
        if (o.finish != FinishReason::none) continue;
        RequestEvent e;
        e.finish = reason;
        e.error = why;
        finish_output(r, o, e);
        const bool last = r.live == 0;
        emit(r, std::move(e), o);
        if (last) return;  // the request is gone
    }
}

// Ends with erasing the request when its last output has ended: `r` is gone then.
void Engine::State::emit(RequestState& r, RequestEvent e, OutputState& o) {
    e.request = r.id;
    e.output = int(&o - r.outputs.data());
    e.cumulative_logprob = o.cumulative_logprob;
    if (r.ranks()) {
        hold(o, std::move(e));
        if (r.live == 0) emit_ranked(r);
    } else {
        e.request_finished = r.live == 0;
        e.metrics = r.metrics_now();
        events.push_back(std::move(e));
    }
    if (r.live > 0) return;
    const RequestId id = r.id;
    requests.erase(id);
}

void Engine::State::hold(OutputState& o, RequestEvent e) {
    if (!o.held) {
        o.held = std::move(e);
        return;
    }
    RequestEvent& all = *o.held;
    all.text += e.text;
    all.token_ids.insert(all.token_ids.end(), e.token_ids.begin(), e.token_ids.end());
    std::ranges::move(e.logprobs, std::back_inserter(all.logprobs));
    e.text = std::move(all.text);
    e.token_ids = std::move(all.token_ids);
    e.logprobs = std::move(all.logprobs);
    if (e.prompt_logprobs.empty()) e.prompt_logprobs = std::move(all.prompt_logprobs);
    all = std::move(e);
}

// best_of: the n outputs of the highest cumulative log probability, best first, as outputs 0 … n − 1.
void Engine::State::emit_ranked(RequestState& r) {
    std::ranges::stable_sort(r.outputs, [](const OutputState& a, const OutputState& b) {
        return a.cumulative_logprob > b.cumulative_logprob;
    });
    for (int i = 0; i < r.sampling.params.n; ++i) {
        RequestEvent e = std::move(*r.outputs[std::size_t(i)].held);
        e.output = i;
        e.request_finished = i + 1 == r.sampling.params.n;
        e.metrics = e.request_finished ? r.metrics_now() : r.metrics;
        events.push_back(std::move(e));
    }
}

}  // namespace recto
