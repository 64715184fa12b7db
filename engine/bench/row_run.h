// The protocol of one row: prompts for both sides, warm-ups, timed runs, void runs and their repetition.
#pragma once
#include <array>
#include <functional>
#include <vector>

#include "engine/bench/compare.h"
#include "engine/bench/device_watch.h"
#include "engine/bench/prompts.h"
#include "engine/bench/run.h"

namespace recto {

// Timed runs of two sides in the order A B B A A B B A…, `repeats` a side; of one side: A A A….
std::vector<char> run_order(int sides, int repeats);
// Consecutive runs of one side, which a load in turn serves: {1, 2, 2, 1} for ABBAAB.
std::vector<int> slot_lengths(const std::vector<char>& order);

struct RowState {
    int sequences = 0, depth = 0;
    BenchPrompts prompts;
    std::array<std::size_t, 2> row{};  // index in the report, per side
    std::array<std::vector<double>, 2> gaps;
    std::array<double, 2> last_rate{};  // total tok/s of the side's last run in this row; 0: none yet
    std::array<std::vector<std::vector<std::int32_t>>, 2> outputs;  // of the first run that counts
    double first_run_s = -1;                                        // how long the row's first run took
    int place = 0;                                                  // of the next timed run
    bool done = false;
};

// What a timed run needs from around it. Tests give an engine without a model.
struct RowRunner {
    const BenchOptions& options;
    double fixed_pause_s;  // < 0: as the row's first run, at most 2 s
    std::function<bool()> cancelled;
    std::function<double()> elapsed_s;                    // since the benchmark's start
    std::function<void(const std::string& what)> report;  // "warm-up 1", "run 3 of 6"
    DeviceWatch& watch;

    // Warm-ups, then one timed run of `side` on `engine`, recorded in `row`. Error(runtime) if it stays void
    // for a reason that is not heat.
    void timed_run(Engine& engine, std::size_t side, RowState& state, BenchRow& row,
                   const Tokenizer* tokenizer);
    double pause_s(const RowState& state) const;
    void rest(double seconds) const;  // Error(cancelled)

  private:
    int warm_up(Engine& engine, std::size_t side, RowState& state);
    RunResult watched_run(Engine& engine, const Prompts& prompts);
};

}  // namespace recto
