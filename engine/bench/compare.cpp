#include "engine/bench/compare.h"

#include <algorithm>
#include <chrono>

#include "engine/bench/compare_header.h"
#include "engine/bench/page_cache.h"
#include "engine/bench/row_run.h"
#include "engine/bench/side.h"
#include "engine/bench/verdict.h"
#include "kernels/check.h"
#include "kernels/error.h"
#include "kernels/synthetic.h"

namespace recto {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int most_tokens = 1 << 24;  // sums of them stay in 32 bits
constexpr int most_sequences = 4096;  // what --max-num-seqs may be
constexpr double card_pause_s = 2;
constexpr int wake_size = 256;      // of the products that wake a device
constexpr double free_share = 0.9;  // of the free memory that two models together may take

std::int64_t unix_now() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

void check(const BenchOptions& o) {
    const auto require = [](bool good, const std::string& sentence) {
        if (!good) throw Error(ErrorKind::argument, sentence);
    };
    const auto tokens = [&](const char* what, int least, int value) {
        require(value >= least && value <= most_tokens,
                std::string(what) + " must be in [" + std::to_string(least) + ", " +
                    std::to_string(most_tokens) + "], got " + std::to_string(value));
    };
    tokens("prompt tokens", 1, o.prompt_tokens);
    tokens("output tokens", 1, o.output_tokens);
    require(o.repeats >= 1, "repeats must be at least 1, got " + std::to_string(o.repeats));
    require(o.loads >= 1, "loads must be at least 1, got " + std::to_string(o.loads));
    require(o.max_warmups >= 1, "warm-ups must be at least 1, got " + std::to_string(o.max_warmups));
    require(o.max_retries >= 0, "retries must be at least 0, got " + std::to_string(o.max_retries));
    require(!o.sequences.empty() && !o.depths.empty(),
            "at least one number of sequences and one depth are needed");
    for (const int n : o.sequences)
        require(n >= 1 && n <= most_sequences,
                "sequences must be in [1, " + std::to_string(most_sequences) + "], got " + std::to_string(n));
    for (const int d : o.depths)
        tokens("depth", 0, d);
}

// Packs and multiplies small weights, so that threads are started and kernels fetched before a load is timed.
void wake(Backend& backend) {
    const Activations mode = backend.device().kind == "cpu" ? Activations::int8 : Activations::floating;
    for (const WeightForm& form : {dense_form(DType::f16), grouped_form(QuantInt::u4, 128, ScaleForm::f16,
                                                                        OffsetForm::zero_point, "AWQ")}) {
        LinearCase c;
        c.parts = {{wake_size, wake_size, form}};
        c.mode = mode;
        c.epilogue = Epilogue::store;
        for (const std::int64_t rows : {1, wake_size})
            run_linear(backend, c, linear_input(c, rows), 0, rows);
    }
    backend.synchronize();
}

class Comparison {
  public:
    Comparison(const CompareOptions& options, const std::function<void(const CompareProgress&)>& progress,
               const std::function<bool()>& cancelled)
        : options_(options), progress_(progress), cancelled_(cancelled) {}

    CompareReport run() {
        started_unix_s_ = unix_now();
        sides_.push_back(std::make_unique<LoadedSide>('A', options_.a, options_.workload));
        if (options_.b) sides_.push_back(std::make_unique<LoadedSide>('B', *options_.b, options_.workload));
        make_rows();
        open_device();
        together_ = sides_.size() == 1 || (options_.stay_loaded && fit_together());
        even_page_cache();
        order_ = run_order(int(sides_.size()), options_.workload.repeats);
        try {
            measure();
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::cancelled || timed_runs_ == 0) throw;
            interrupted_ = std::to_string(timed_runs_) + " of " +
                           std::to_string(states_.size() * order_.size()) + " timed runs were done";
        }
        for (const auto& side : sides_)
            side->unload();
        finish();
        if (!interrupted_.empty()) throw CompareStopped(std::move(report_));
        return std::move(report_);
    }

  private:
    void measure() {
        if (together_) load_all();
        begin_ = Clock::now();
        if (together_)
            run_row_by_row();
        else
            run_in_turn();
    }

    void make_rows() {
        std::vector<BenchVocabulary> vocabularies;
        for (const auto& side : sides_)
            vocabularies.push_back(side->vocabulary());
        const BenchOptions& w = options_.workload;
        const int deepest = *std::max_element(w.depths.begin(), w.depths.end());
        for (const auto& side : sides_)  // before prompts of any length are made
            side->set_longest_input(deepest + w.prompt_tokens);
        text_ = sides_.size() == 2 && !same_tokens(vocabularies[0], vocabularies[1]);
        std::array<std::size_t, 2> longest{};
        for (const int depth : w.depths) {
            for (const int sequences : w.sequences) {
                RowState state;
                state.sequences = sequences;
                state.depth = depth;
                const std::uint64_t seed = w.seed + states_.size();
                state.prompts = (text_ ? text_prompts : id_prompts)(vocabularies, sequences,
                                                                    depth + w.prompt_tokens, seed);
                for (const auto& side : sides_)
                    add_row(*side, state, longest[side->index()]);
                states_.push_back(std::move(state));
            }
        }
        for (const auto& side : sides_)
            side->set_longest_input(int(longest[side->index()]));
    }

    void add_row(LoadedSide& side, RowState& state, std::size_t& longest) {
        BenchRow row;
        row.side = side.name();
        row.model = model_label(side.options().model);
        row.sequences = state.sequences;
        row.depth = state.depth;
        row.prompt_tokens = options_.workload.prompt_tokens;
        row.output_tokens = options_.workload.output_tokens;
        const Prompts& prompts = state.prompts.ids[side.index()];
        for (const auto& prompt : prompts) {
            row.input_tokens_mean += double(prompt.size()) / double(prompts.size());
            longest = std::max(longest, prompt.size());
        }
        side.prompt_hash = hash_prompts(side.prompt_hash, prompts);
        state.row[side.index()] = report_.rows.size();
        report_.rows.push_back(std::move(row));
    }

    // Before any load, so that neither side pays for it.
    void open_device() {
        const auto begin = Clock::now();
        say("starting the device", 'A');
        backend_ = options_.make_backend();
        wake(*backend_);
        device_init_s_ = seconds_since(begin);
        device_ = backend_->device();
        std::unique_ptr<DeviceMonitor> monitor;
        if (options_.make_monitor)
            monitor = options_.make_monitor();
        else
            monitor = device_.kind == "cuda" ? make_cuda_monitor(options_.cuda_ordinal) : make_cpu_monitor();
        watch_ = std::make_unique<DeviceWatch>(std::move(monitor));
        if (options_.workload.pause_s >= 0)
            pause_s_ = options_.workload.pause_s;
        else
            pause_s_ = device_.kind == "cpu" ? -1 : card_pause_s;
    }

    bool fit_together() const {
        if (device_.memory_free == 0) return true;  // unknown: the second load says if not
        std::uint64_t needed = 0;
        for (const auto& side : sides_)
            needed += side->needed_bytes(device_);
        return double(needed) <= free_share * double(device_.memory_free);
    }

    // Loads are compared only if the page cache is alike before each. Later loads find it warm.
    void even_page_cache() {
        if (sides_.size() == 1 && options_.workload.loads == 1) return;
        bool all_cold = together_ && options_.workload.loads == 1;
        bool all_warm = true;
        for (const auto& side : sides_) {
            const std::string state = side->page_cache();
            all_cold = all_cold && state == "cold";
            all_warm = all_warm && state == "warm";
        }
        if (sides_.size() == 2 && sides_[0]->files().weights == sides_[1]->files().weights) all_cold = false;
        if (all_warm || all_cold) return;
        page_cache_warmed_ = true;
        for (const auto& side : sides_) {
            say("reading the files once", side->name());
            warm_page_cache(side->files().weights);
        }
    }

    void load_all() {
        const std::vector<char> order = run_order(int(sides_.size()), options_.workload.loads);
        for (std::size_t i = 0; i < order.size(); ++i) {
            LoadedSide& side = of(order[i]);
            try {
                load(side);
            } catch (const Error& error) {
                // The estimate was too low. Both cannot be there at once, but one can.
                if (error.kind() != ErrorKind::memory || !other_loaded(side)) throw;
                together_ = false;
                for (const auto& s : sides_)
                    s->unload();
                return;
            }
            const bool last =
                std::find(order.begin() + std::ptrdiff_t(i) + 1, order.end(), order[i]) == order.end();
            if (!last) side.unload();
        }
    }

    void load(LoadedSide& side) {
        say("loading", side.name());
        side.load(
            backend_, other_resident(side),
            [&](const LoadProgress& p) {
                say("loading: " + p.stage + " " + std::to_string(int(p.fraction * 100)) + " %", side.name());
            },
            cancelled_);
        for (BenchRow& row : report_.rows) {
            if (row.side != side.name()) continue;
            row.load_s = side.load_s();
            row.weight_bytes = side.weight_bytes();
            row.kv_tokens = side.fitting_tokens();
            row.kv_pool_tokens = side.pool_tokens();
            row.peak_bytes = side.peak_bytes();
        }
        write_header(0);
    }

    void run_row_by_row() {
        for (RowState& state : states_) {
            for (const char side : order_)
                timed_run(of(side), state);
            finish_row(state);
        }
    }

    void run_in_turn() {
        std::size_t place = 0;
        for (const int length : slot_lengths(order_)) {
            LoadedSide& side = of(order_[place]);
            load(side);
            for (RowState& state : states_)
                for (int i = 0; i < length; ++i)
                    timed_run(side, state);
            side.unload();
            place += std::size_t(length);
        }
        for (RowState& state : states_)
            finish_row(state);
    }

    void timed_run(LoadedSide& side, RowState& state) {
        BenchRow& row = report_.rows[state.row[side.index()]];
        const auto report = [&](const std::string& what) {
            say(std::to_string(state.sequences) + (state.sequences == 1 ? " sequence" : " sequences") +
                    ", depth " + std::to_string(state.depth) + ": " + what,
                side.name());
        };
        RowRunner runner{options_.workload,
                         pause_s_,
                         cancelled_,
                         [this] { return seconds_since(begin_); },
                         report,
                         *watch_};
        side.begin_memory(*backend_);
        runner.timed_run(side.engine(), side.index(), state, row, side.tokenizer());
        side.end_memory(*backend_, other_resident(side));
        row.peak_bytes = side.peak_bytes();
        longest_pause_s_ = std::max(longest_pause_s_, runner.pause_s(state));
        done_ += work_of(state);
        ++timed_runs_;
        say("", side.name());
    }

    void finish_row(RowState& state) {
        state.done = true;
        if (sides_.size() == 1) return;
        std::vector<BenchRow> finished;
        for (const RowState& s : states_)
            if (s.done)
                for (const std::size_t i : s.row)
                    finished.push_back(report_.rows[i]);
        report_.verdicts = judge_rows(finished, loads_comparable(side_list()));
        if (!text_) report_.first_differences.push_back(first_difference(state));
    }

    FirstDifference first_difference(const RowState& state) const {
        FirstDifference d;
        d.sequences = state.sequences;
        d.depth = state.depth;
        std::vector<double> values;
        for (std::size_t i = 0; i < state.outputs[0].size(); ++i) {
            const auto& a = state.outputs[0][i];
            const auto& b = state.outputs[1][i];
            const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
            d.first.push_back(int(at - a.begin()));
            d.identical += at == a.end();
            values.push_back(d.first.back());
        }
        d.median = quantile(values, 0.5);
        return d;
    }

    void finish() {
        write_header(unix_now());
        for (const auto& side : sides_)
            report_.header["sides"][std::string(1, side->name())]["files"] = file_hashes(side->files());
    }

    void write_header(std::int64_t ended_unix_s) {
        HeaderFacts facts{options_, device_};
        facts.monitor = watch_->facts();
        facts.device_init_s = device_init_s_;
        for (const LoadedSide* side : side_list())
            if (!side->loads().empty()) facts.sides.push_back(side);
        if (facts.sides.empty() || facts.sides.front()->name() != 'A') return;
        facts.together = together_;
        facts.text_prompts = text_;
        facts.page_cache_warmed = page_cache_warmed_;
        facts.pause_s = longest_pause_s_;
        facts.started_unix_s = started_unix_s_;
        facts.ended_unix_s = ended_unix_s;
        facts.interrupted = interrupted_;
        report_.header = report_header(facts, report_.rows);
    }

    double work_of(const RowState& state) const {  // of one timed run, for the progress only
        const double prefill = double(state.sequences) * (state.depth + options_.workload.prompt_tokens);
        return options_.workload.output_tokens + prefill / 64;
    }

    void say(const std::string& what, char side) {
        if (!progress_) return;
        double all = 0;
        for (const RowState& state : states_)
            all += work_of(state) * double(order_.size());
        CompareProgress p;
        p.what = sides_.size() == 2 && !what.empty() ? std::string(1, side) + ", " + what : what;
        p.side = side;
        p.fraction = all > 0 ? std::min(done_ / all, 1.0) : 0;
        if (p.fraction > 0) p.seconds_left = seconds_since(begin_) * (1 - p.fraction) / p.fraction;
        p.report = &report_;
        progress_(p);
    }

    LoadedSide& of(char name) { return *sides_[name == 'A' ? 0 : 1]; }
    bool other_loaded(const LoadedSide& side) const {
        return std::any_of(sides_.begin(), sides_.end(),
                           [&](const auto& s) { return s->name() != side.name() && s->loaded(); });
    }
    std::uint64_t other_resident(const LoadedSide& side) const {
        std::uint64_t bytes = 0;
        for (const auto& s : sides_)
            if (s->name() != side.name()) bytes += s->resident_bytes();
        return bytes;
    }
    std::vector<const LoadedSide*> side_list() const {
        std::vector<const LoadedSide*> list;
        for (const auto& side : sides_)
            list.push_back(side.get());
        return list;
    }

    const CompareOptions& options_;
    const std::function<void(const CompareProgress&)>& progress_;
    const std::function<bool()>& cancelled_;
    std::shared_ptr<Backend> backend_;  // before the sides, which hold its memory
    DeviceInfo device_;
    std::vector<std::unique_ptr<LoadedSide>> sides_;
    std::unique_ptr<DeviceWatch> watch_;
    std::vector<RowState> states_;
    std::vector<char> order_;
    CompareReport report_;
    bool text_ = false, together_ = true, page_cache_warmed_ = false;
    double pause_s_ = 0, longest_pause_s_ = 0, device_init_s_ = 0, done_ = 0;
    std::size_t timed_runs_ = 0;  // that are in the report
    std::string interrupted_;     // how far it came; empty: it was not
    std::int64_t started_unix_s_ = 0;
    Clock::time_point begin_ = Clock::now();
};

}  // namespace

CompareStopped::CompareStopped(CompareReport report)
    : Error(ErrorKind::cancelled,
            "the benchmark was stopped: " + report.header.value("interrupted", std::string())),
      so_far(std::make_shared<const CompareReport>(std::move(report))) {}

CompareReport run_compare(const CompareOptions& options,
                          const std::function<void(const CompareProgress&)>& progress,
                          const std::function<bool()>& cancelled) {
    check(options.workload);
    return Comparison(options, progress, cancelled).run();
}

}  // namespace recto
