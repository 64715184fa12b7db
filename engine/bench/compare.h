// The benchmark: one model, or A against B, under fixed workloads. The command line and the window run this
// same code, and the numbers are the engine's own (DESIGN §9), stamped when a step's tokens are committed.
//
// Protocol (users.md §5):
//   - Both sides get the same prompt token ids; where their tokenizers differ, the same text, and then
//     characters a second stand beside tokens a second. Greedy, EOS ignored, prefix cache off.
//   - A run is void if a sequence did not give exactly `output_tokens` tokens, had a cache hit or was
//     preempted, or if the driver says that heat or a power brake held the device back. It is repeated at
//     most `max_retries` times; each void run stays in the report with its reason.
//   - Timed runs go A B B A A B B A…, each right after full-shape warm-ups on its own side: at least one, and
//     until two runs differ by less than 2 %, at most `max_warmups`. Before each timed run's warm-ups the
//     device rests for `pause_s`, equally for both sides.
//   - The device is initialised before anything is loaded and counts into neither load.
//   - Both models stay loaded, one of them idle, if both fit; otherwise the order A | B B | A A | B … is a
//     load each, and every row runs in each slot. The header says which.
//   - total_decode_tok_s of a run is void if its steady part (every sequence decoding) holds under half of
//     the steps that gave tokens.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/bench/statistics.h"
#include "engine/engine.h"
#include "kernels/error.h"
#include "kernels/monitor.h"

namespace recto {

struct BenchOptions {
    int prompt_tokens = 128;
    int output_tokens = 100;
    std::vector<int> sequences = {1, 8, 64};
    std::vector<int> depths = {0};  // tokens in the context before the prompt; computed, like the prompt
    int repeats = 6;                // timed runs a side and row
    int max_warmups = 4;            // before one timed run
    int max_retries = 3;            // of one timed run that was void
    int loads = 1;                  // timed loads a side, where both stay loaded
    double cool_s = 10;             // rest after a run that was held back, before it is repeated
    // Rest between timed runs, equal for both sides. < 0: 2 s on a card; on the CPU as long as the row's
    // first run took, at most 2 s.
    double pause_s = -1;
    std::uint64_t seed = 1;  // of the prompts
};

struct BenchSide {
    std::filesystem::path model;  // a file or folder that exists (resolve_model)
    LoadOptions load;
    // kv_blocks and kv_cache_bytes 0: what the largest row needs. Prefix caching is always off.
    EngineOptions engine;
};

struct CompareOptions {
    BenchSide a;
    std::optional<BenchSide> b;
    BenchOptions workload;
    // Called once, on the thread of run_compare(), before anything is loaded. Both sides share the backend.
    std::function<std::shared_ptr<Backend>()> make_backend;
    int cuda_ordinal = 0;  // which card to watch, if the backend turns out to be one
    // What watches the device; empty: the one of the backend's kind.
    std::function<std::unique_ptr<DeviceMonitor>()> make_monitor;
    std::string command_line;  // that repeats it: repeat_command()
    bool stay_loaded = true;   // false: load in turn even if both fit
};

// One timed run of one side, kept whole. Times in seconds since the run's first request.
struct BenchRun {
    struct Request {
        double t_request = 0, t_start = 0;
        std::vector<int> steps;  // indices into step_s: t_1 … t_n
    };
    int place = 0;  // in the row's order of timed runs, from 0
    int warmups = 0;
    double started_s = 0;        // since the benchmark's start
    std::string void_reason;     // empty: it counts
    double steady_share = 0;     // of the steps that gave tokens, those with every sequence decoding
    std::vector<double> step_s;  // when each step that gave tokens committed them
    std::vector<Request> requests;
    // Medians (temperature: the highest) of what the driver told each second; absent: not told.
    std::optional<double> clock_mhz, memory_clock_mhz, temperature_c, power_w, energy_j;
    std::optional<double> other_load;  // share of all cores that other processes used meanwhile
    std::string held_back;             // by heat or a power brake, as the driver says; empty: it was not
};

struct BenchRow {
    char side = 'A';
    std::string model;  // a name without the path above it
    int sequences = 0, prompt_tokens = 0, output_tokens = 0, depth = 0;
    double input_tokens_mean = 0;  // of its prompts, depth included: differs where the tokenizers do
    TimedFigure load_s;            // one sample a load; the same in all rows of a side
    std::uint64_t weight_bytes = 0;
    std::uint64_t kv_tokens = 0;       // that fit beside the weights: header "kv_tokens_definition"
    std::uint64_t kv_pool_tokens = 0;  // in the pool that was measured
    std::uint64_t peak_bytes = 0;      // header "peak_bytes_definition"
    // Medians over a run's requests, one sample a run.
    TimedFigure ttft_s, prefill_tok_s, decode_tok_s, tpot_s;
    TimedFigure itl_s;                                   // median gap of a run; the pooled tail stands beside
    double itl_p95_s = 0, itl_p99_s = 0, itl_max_s = 0;  // over all gaps of all runs
    std::uint64_t itl_gaps = 0;
    TimedFigure total_tok_s;         // Σn ÷ (max t_n − min t_req)
    TimedFigure total_decode_tok_s;  // tokens committed between the last t_1 and the first t_n ÷ that span
    TimedFigure prefill_char_s, decode_char_s;  // only where the tokenizers differ
    TimedFigure energy_j_token;                 // only where the driver counts energy
    std::vector<BenchRun> runs;                 // in order, void ones included
    int warmups = 0;                            // of all runs
    int voided = 0;
    int steady_voided = 0;   // runs whose total_decode_tok_s is void
    bool throttled = false;  // held back in every retry: the figures are of a throttled device
};

// One timed figure of one row, A against B.
struct Verdict {
    std::string figure;  // "decode_tok_s"; "load_s" has sequences 0
    int sequences = 0, prompt_tokens = 0, output_tokens = 0, depth = 0;
    double a = 0, b = 0;  // medians
    double ratio = 0;     // b ÷ a
    double floor = 0.01;  // ratios nearer to 1 are noise: max(1 %, what A's own runs differ by)
    double p = 1;         // two-sided, exact rank test
    std::string word;     // "clear", "likely", "within noise", "too few runs"
    char better = ' ';    // 'A', 'B'; ' ' where the word is neither clear nor likely
    int runs_a = 0, runs_b = 0;
};

// Free-running greedy outputs of both sides on equal ids; absent where the tokenizers differ.
struct FirstDifference {
    int sequences = 0, depth = 0;
    std::vector<int> first;  // per prompt: tokens before the first that differs; output_tokens: none differs
    double median = 0;
    int identical = 0;  // prompts
};

struct CompareReport {
    nlohmann::ordered_json header;  // everything a repetition needs (users.md §5, last paragraph)
    std::vector<BenchRow> rows;     // A and B of one shape side by side: A, B, A, B …
    std::vector<Verdict> verdicts;  // empty with one side
    std::vector<FirstDifference> first_differences;
};

struct CompareProgress {
    std::string what;  // "A, 8 sequences, depth 0: run 3 of 6", for people
    double fraction = 0;
    double seconds_left = 0;  // 0: not known yet
    char side = 'A';
    // So far: header from the loads on, rows with the samples that they have, verdicts of rows that are done.
    // Valid during the call.
    const CompareReport* report = nullptr;
};

// Error(cancelled) of a benchmark that had timed at least one run: what it measured is not lost.
class CompareStopped : public Error {
  public:
    // As CompareProgress::report, with a whole header; header["interrupted"] says how far it came.
    explicit CompareStopped(CompareReport report);
    const std::shared_ptr<const CompareReport> so_far;
};

// `cancelled` is asked between steps, during pauses and while loading; Error(cancelled) then, CompareStopped
// once there is something to tell. Error(argument) for a shape that cannot fit the context. Runs wholly on
// the calling thread, but for a sampler that asks the driver.
CompareReport run_compare(const CompareOptions& options,
                          const std::function<void(const CompareProgress&)>& progress,
                          const std::function<bool()>& cancelled);

// What to type to run it again: `device` and `threads` as for --device and --threads (0: left out).
std::string repeat_command(const CompareOptions& options, const std::string& device, int threads);

// A model's name for reports: the file or folder, org/name out of a Hugging Face cache; no path above it.
std::string model_label(const std::filesystem::path& model);

}  // namespace recto
