// One run of a workload on an engine: every prompt submitted at once, greedy, to a fixed length; and what its
// times say (DESIGN §9).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/bench/compare.h"
#include "engine/bench/prompts.h"

namespace recto {

struct RunResult {
    BenchRun run;                                    // steps, requests, steady share, void_reason
    std::vector<RequestMetrics> requests;            // per prompt
    std::vector<std::vector<std::int32_t>> outputs;  // per prompt
};

// Error(cancelled) once `cancelled` says so, with the engine empty again; Error(runtime) for a failed
// request.
RunResult run_once(Engine& engine, const Prompts& prompts, int output_tokens,
                   const std::function<bool()>& cancelled);

double total_tok_s(const RunResult& result);
// Tokens committed between the last t_1 and the first t_n ÷ that span; 0 if there is no such span.
double steady_tok_s(const RunResult& result);

// Adds the run's figures to the row, one sample each, and its gaps between tokens to `gaps`; the steady rate
// only if its steady part holds at least half of the steps. `characters` per prompt, or empty; `tokenizer`
// for the characters of the outputs.
void record(BenchRow& row, const RunResult& result, std::vector<double>& gaps,
            const std::vector<std::int64_t>& characters, const Tokenizer* tokenizer);

}  // namespace recto
