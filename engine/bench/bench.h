// The benchmark: one model under fixed workloads. The command line and the window run this same code, and the
// numbers are the engine's own (DESIGN §9), stamped when a step's tokens are committed.
//
// Protocol: distinct random prompts, prefix cache off (c = 0 is checked), greedy, EOS ignored, output length
// checked: a run that breaks one of these is void and repeated. A full-shape warm-up precedes each row and is
// repeated, at most `max_warmups` times, until two of them differ by less than 2 %.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/bench/statistics.h"
#include "engine/engine.h"

namespace recto {

struct BenchOptions {
    int prompt_tokens = 128;
    int output_tokens = 100;
    std::vector<int> sequences = {1, 8, 64};
    std::vector<int> depths = {0};  // tokens in the context before the prompt; computed, like the prompt
    int repeats = 6;
    int max_warmups = 4;
    std::uint64_t seed = 1;  // of the prompts
    EngineOptions engine;    // kv_blocks 0: what the largest row needs
};

struct BenchRow {
    char side = 'A';
    int sequences = 0, prompt_tokens = 0, output_tokens = 0, depth = 0;
    TimedFigure ttft_s, prefill_tok_s, decode_tok_s,
        tpot_s;                                          // medians over a run's requests, one sample a run
    TimedFigure itl_s;                                   // median gap of a run; the pooled tail stands beside
    double itl_p95_s = 0, itl_p99_s = 0, itl_max_s = 0;  // over all gaps of all runs
    TimedFigure total_tok_s;                             // Σn ÷ (max t_n − min t_req)
    TimedFigure total_decode_tok_s;  // tokens committed between the last t_1 and the first t_n ÷ that span
    double steady_share = 0;  // of the run's decode span; under 0.5 total_decode_tok_s is not to be trusted
    int warmups = 0, voided = 0;
    std::uint64_t kv_tokens = 0;
    std::uint64_t peak_bytes = 0;  // of the process, so far
};

struct BenchReport {
    std::string model_path, model_name, quantization, device, kernels;
    TimedFigure load_s;
    std::vector<LoadStage> load_stages;
    std::uint64_t weight_bytes = 0;
    std::uint64_t prompt_ids_hash = 0;  // FNV-1a of all prompt ids, for comparing workloads
    int threads = 0, block_size = 0, max_num_batched_tokens = 0;
    std::string kv_dtype, activations;
    BenchOptions options;
    std::int64_t started_unix_s = 0, ended_unix_s = 0;
    std::vector<BenchRow> rows;
};

struct BenchProgress {
    std::string what;  // "8 sequences, depth 0: run 3 of 6"
    double fraction = 0;
};

// `cancelled` is asked between steps; Error(cancelled) then. Error(argument) for a shape that cannot fit.
BenchReport run_bench(const std::shared_ptr<const Model>& model, const BenchOptions& options,
                      const std::function<void(const BenchProgress&)>& progress,
                      const std::function<bool()>& cancelled);

std::uint64_t process_peak_bytes();  // the largest resident size so far

}  // namespace recto
