// What an Engine keeps, shared by its source files. Not part of the public interface.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/sample/beam_search.h"
#include "engine/sample/sampler.h"
#include "engine/sample/stop_text.h"
#include "engine/schedule/scheduler.h"

namespace recto {

// An answer's tokens on their way to text.
struct TextState {
    std::optional<Detokenizer> detokenizer;  // none: ids only
    StopText stop_text;
};

// One of a request's n (or best_of) outputs; in a beam search a place for one of its beams.
struct OutputState {
    Sequence* sequence = nullptr;  // null before it is forked and after it has ended
    std::uint64_t seed = 0;
    TextState text;
    bool paused = false;  // preempted, not yet scheduled again
    double cumulative_logprob = 0;
    FinishReason finish = FinishReason::none;
    std::optional<RequestEvent> held;  // best_of: everything so far, delivered when all have ended
};

// A running beam.
struct Beam {
    Sequence* sequence = nullptr;
    double cumulative = 0;
    TextState text_state;
    std::string text;
    std::vector<std::vector<TokenLogprob>> logprobs;  // of its output tokens, where asked for
    std::vector<BeamProposal> proposals;              // once the sequence is held
};

struct BeamAnswer {
    double score = 0;
    RequestEvent event;  // everything of the output
};

struct BeamSearch {
    std::vector<Beam> beams;           // best first
    std::vector<BeamAnswer> finished;  // best first, at most the width
    const char* failure = nullptr;     // of a draw in this step
};

struct RequestState {
    RequestId id = 0;
    ResolvedSampling sampling;
    std::int32_t max_total_tokens = 0;
    std::vector<OutputState> outputs;
    std::optional<BeamSearch> search;
    std::int32_t live = 0;  // outputs that have not ended; a beam search is one
    bool started = false;
    std::int32_t paused = 0;  // outputs that are preempted now
    double paused_since = 0;  // when the first of them was
    std::vector<std::vector<TokenLogprob>> prompt_logprobs;
    RequestMetrics metrics;
    std::vector<double> token_times;  // of output 0; kept apart so that an event copies it once

    void pause(OutputState& o, double time) {
        if (paused++ == 0) paused_since = time;
        o.paused = true;
    }
    void resume(OutputState& o, double time) {
        if (!o.paused) return;
        o.paused = false;
        if (--paused == 0) metrics.paused_s += time - paused_since;
    }
    RequestMetrics metrics_now() {
        RequestMetrics m = metrics;
        if (live == 0) m.token_times = std::move(token_times);
        return m;
    }
    bool ranks() const { return !search && sampling.params.best_of.value_or(0) > sampling.params.n; }
};

struct Engine::State {
    State(std::shared_ptr<const Model> model, std::unique_ptr<StepModel> step_model,
          const Tokenizer* tokenizer, std::vector<std::int32_t> eos_ids, const EngineOptions& options);

    // engine_submit.cpp
    RequestId submit(Request request);
    // engine_step.cpp
    std::vector<RequestEvent> step();
    bool start(StepPlan& p);  // plan() or plan_ahead() has filled it; false: it failed
    bool start_ahead();
    void finish(bool followed);
    void note_plan(const StepPlan& p, double time);
    void request_draws(StepPlan& p);
    void forward(const StepPlan& p);
    void sample(bool followed);
    void draw_on_host(const ScheduledSequence& item, RequestState& r, std::size_t first);
    void collect_prompt_logprobs(const ScheduledSequence& item, RequestState& r);
    void fail_steps(std::span<StepPlan* const> failed, const std::string& why);
    void remove(Sequence& s);  // from the scheduler and from the steps that are on their way
    // engine_beams.cpp
    void propose(const ScheduledSequence& item, RequestState& r);
    void advance_beams(RequestState& r, double time);
    void take_candidates(RequestState& r, std::span<const BeamCandidate> candidates, double time);
    void continue_beams(RequestState& r, std::vector<Beam>& next, std::span<const BeamCandidate> chosen,
                        double time);
    void end_beams(RequestState& r, FinishReason reason, const std::string& why);
    // engine_output.cpp
    void deliver(const CommittedToken& committed, double time);
    void finish_output(RequestState& r, OutputState& o, RequestEvent& e);
    void end_request(RequestState& r, FinishReason reason, const std::string& why);
    void emit(RequestState& r, RequestEvent e, OutputState& o);
    void hold(OutputState& o, RequestEvent e);
    void emit_ranked(RequestState& r);

    double now() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    }

    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    std::shared_ptr<const Model> model;  // null with a bare step model
    std::unique_ptr<StepModel> step_model;
    const Tokenizer* tokenizer;
    std::vector<std::int32_t> eos_ids;
    std::uint64_t seed;
    std::int32_t max_waiting;
    std::uint64_t block_bytes;
    std::uint64_t workspace_bytes = 0;
    std::int32_t vocab;  // ids that a request may name and a row may give
    Scheduler scheduler;
    Sampler sampler;
    std::shared_ptr<std::byte[]> swap_memory;  // [swap_blocks][block_bytes]

    std::unordered_map<RequestId, RequestState> requests;
    std::vector<RequestEvent> events;  // of the next return of step()
    RequestId next_request = 1;

    bool overlap;
    StepPlan plan;           // the step that is computed; reused, so that a step allocates little
    StepPlan ahead;          // the one enqueued behind it
    bool in_flight = false;  // between calls of step(): `plan` is enqueued and not committed
    double plan_started = 0, ahead_started = 0, last_commit = 0;
    std::vector<std::int32_t> tokens;
    std::vector<Draw> draws;
    std::vector<std::uint64_t> seeds;
    std::vector<RequestId> searching;  // beam searches that sampled in this step
    double last_step_s = 0;
    std::int32_t last_step_rows = 0;
};

// How an output ends with this token, its `output_tokens`-th; `total` counts the prompt too.
void find_end(const RequestState& r, std::int32_t output_tokens, std::int32_t total, std::int32_t token,
              RequestEvent& e);
// Appends the token's text to the event, up to a stop string, which ends it.
void append_text(const RequestState& r, TextState& text, std::int32_t output_tokens, std::int32_t token,
                 RequestEvent& e);
void flush_text(TextState& text, RequestEvent& e);  // what was held back, at the end

}  // namespace recto
