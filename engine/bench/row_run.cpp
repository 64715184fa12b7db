#include "engine/bench/row_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "kernels/error.h"

namespace recto {
namespace {

constexpr double settled = 0.02;  // two runs that differ by less are warm
constexpr double longest_auto_pause_s = 2;

double wall_s(const RunResult& r) {
    return r.run.step_s.empty() ? 0 : r.run.step_s.back();
}

}  // namespace

std::vector<char> run_order(int sides, int repeats) {
    std::vector<char> order;
    for (int i = 0; i < sides * repeats; ++i)
        order.push_back(sides == 1 || i % 4 == 0 || i % 4 == 3 ? 'A' : 'B');
    return order;
}

std::vector<int> slot_lengths(const std::vector<char>& order) {
    std::vector<int> lengths;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || order[i] != order[i - 1]) lengths.push_back(0);
        ++lengths.back();
    }
    return lengths;
}

double RowRunner::pause_s(const RowState& state) const {
    return fixed_pause_s >= 0 ? fixed_pause_s : std::clamp(state.first_run_s, 0.0, longest_auto_pause_s);
}

void RowRunner::rest(double seconds) const {
    using clock = std::chrono::steady_clock;
    const auto end =
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
    do {
        if (cancelled && cancelled()) throw Error(ErrorKind::cancelled, "the benchmark was stopped");
        const auto left = end - clock::now();
        if (left <= clock::duration::zero()) return;
        std::this_thread::sleep_for(std::min<clock::duration>(left, std::chrono::milliseconds(50)));
    } while (true);
}

int RowRunner::warm_up(Engine& engine, std::size_t side, RowState& state) {
    for (int done = 0; done < options.max_warmups;) {
        report("warm-up " + std::to_string(done + 1));
        const RunResult r = run_once(engine, state.prompts.ids[side], options.output_tokens, cancelled);
        if (state.first_run_s < 0) state.first_run_s = wall_s(r);
        const double rate = total_tok_s(r);
        const double before = std::exchange(state.last_rate[side], rate);
        ++done;
        if (before > 0 && std::abs(rate / before - 1) < settled) return done;
    }
    return options.max_warmups;
}

RunResult RowRunner::watched_run(Engine& engine, const Prompts& prompts) {
    const double started = elapsed_s();
    watch.begin();
    RunResult r = run_once(engine, prompts, options.output_tokens, cancelled);
    const DeviceWatch::Seen seen = watch.end();
    r.run.started_s = started;
    r.run.clock_mhz = seen.clock_mhz;
    r.run.memory_clock_mhz = seen.memory_clock_mhz;
    r.run.temperature_c = seen.temperature_c;
    r.run.power_w = seen.power_w;
    r.run.energy_j = seen.energy_j;
    r.run.other_load = seen.other_load;
    r.run.held_back = seen.held_back;
    if (r.run.void_reason.empty() && !seen.held_back.empty())
        r.run.void_reason = "held back: " + seen.held_back;
    return r;
}

void RowRunner::timed_run(Engine& engine, std::size_t side, RowState& state, BenchRow& row,
                          const Tokenizer* tokenizer) {
    rest(pause_s(state));  // nothing before the very first run of a row on the CPU: it says how long
    for (int attempt = 0;; ++attempt) {
        const int warmups = warm_up(engine, side, state);
        report("run " + std::to_string(row.ttft_s.samples.size() + 1) + " of " +
               std::to_string(options.repeats));
        RunResult r = watched_run(engine, state.prompts.ids[side]);
        r.run.place = state.place;
        r.run.warmups = warmups;
        row.warmups += warmups;
        state.last_rate[side] = total_tok_s(r);
        const bool heat_only =
            !r.run.held_back.empty() && r.run.void_reason == "held back: " + r.run.held_back;
        if (!r.run.void_reason.empty() && attempt < options.max_retries) {
            row.runs.push_back(std::move(r.run));
            ++row.voided;
            rest(heat_only ? std::max(options.cool_s, pause_s(state)) : pause_s(state));
            continue;
        }
        if (!r.run.void_reason.empty() && !heat_only)
            throw Error(ErrorKind::runtime,
                        "the benchmark's runs are void: expected " + std::to_string(options.output_tokens) +
                            " tokens from every sequence, no cache hit and no preemption, "
                            "found that " +
                            r.run.void_reason + "; give a larger --kv-blocks");
        row.throttled = row.throttled || heat_only;  // and it counts: without a bound nothing would be left
        r.run.void_reason.clear();
        record(row, r, state.gaps[side], state.prompts.characters, tokenizer);
        if (state.outputs[side].empty()) state.outputs[side] = std::move(r.outputs);
        row.runs.push_back(std::move(r.run));
        ++state.place;
        return;
    }
}

}  // namespace recto
