#include "engine/bench/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <random>

#include "kernels/error.h"

namespace recto {
namespace {

struct RowShape {
    int sequences, depth;
};

using Prompts = std::vector<std::vector<std::int32_t>>;

// Uniform over ordinary tokens: a control token inside a prompt could change what the model does.
Prompts make_prompts(const Model& model, int count, int tokens, std::uint64_t seed) {
    const int vocab =
        model.tokenizer ? std::min(model.tokenizer->size(), model.config.vocab) : model.config.vocab;
    std::mt19937_64 random(seed);
    const std::vector<std::int32_t> blank(static_cast<std::size_t>(tokens));
    Prompts prompts(static_cast<std::size_t>(count), blank);
    for (auto& prompt : prompts) {
        for (auto& id : prompt) {
            do
                id = std::int32_t(random() % std::uint64_t(vocab));
            while (model.tokenizer && model.tokenizer->is_special(id));
        }
    }
    return prompts;
}

std::uint64_t fnv1a(std::uint64_t hash, const Prompts& prompts) {
    for (const auto& prompt : prompts) {
        for (const std::int32_t id : prompt) {
            for (int shift = 0; shift < 32; shift += 8) {
                hash ^= (std::uint32_t(id) >> shift) & 0xFFU;
                hash *= 0x100000001B3ULL;
            }
        }
    }
    return hash;
}

struct Run {
    std::vector<RequestMetrics> requests;
    bool valid = true;
};

Run run_once(Engine& engine, const Prompts& prompts, int output_tokens,
             const std::function<bool()>& cancelled) {
    std::map<RequestId, std::size_t> index;
    Run run;
    run.requests.resize(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        Request request;
        request.prompt = prompts[i];
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        request.sampling.max_tokens = output_tokens;
        request.owner = i + 1;
        index[engine.submit(std::move(request))] = i;
    }
    while (engine.has_work()) {
        if (cancelled && cancelled()) {
            for (const auto& [id, i] : index)
                engine.cancel(id);
            throw Error(ErrorKind::cancelled, "the benchmark was stopped");
        }
        for (RequestEvent& event : engine.step()) {
            if (!event.request_finished) continue;
            if (event.finish == FinishReason::error) throw Error(ErrorKind::runtime, event.error);
            run.requests[index.at(event.request)] = std::move(event.metrics);
        }
    }
    for (const RequestMetrics& m : run.requests)
        run.valid =
            run.valid && m.output_tokens == output_tokens && m.cached_tokens == 0 && m.preemptions == 0;
    return run;
}

double median_of(const Run& run, const std::function<double(const RequestMetrics&)>& value) {
    std::vector<double> values;
    for (const RequestMetrics& m : run.requests)
        values.push_back(value(m));
    return quantile(values, 0.5);
}

struct Span {
    double first_request = std::numeric_limits<double>::infinity();
    double first_token = std::numeric_limits<double>::infinity();
    double last_first_token = 0, first_end = std::numeric_limits<double>::infinity(), end = 0;
};

Span span_of(const Run& run) {
    Span s;
    for (const RequestMetrics& m : run.requests) {
        s.first_request = std::min(s.first_request, m.t_request);
        s.first_token = std::min(s.first_token, m.t_first);
        s.last_first_token = std::max(s.last_first_token, m.t_first);
        s.first_end = std::min(s.first_end, m.t_last);
        s.end = std::max(s.end, m.t_last);
    }
    return s;
}

double total_tok_s(const Run& run) {
    const Span s = span_of(run);
    double tokens = 0;
    for (const RequestMetrics& m : run.requests)
        tokens += m.output_tokens;
    return tokens / (s.end - s.first_request);
}

double steady_tok_s(const Run& run) {
    const Span s = span_of(run);
    if (s.first_end <= s.last_first_token) return 0;
    double tokens = 0;
    for (const RequestMetrics& m : run.requests)
        for (const double t : m.token_times)
            if (t > s.last_first_token && t <= s.first_end) ++tokens;
    return tokens / (s.first_end - s.last_first_token);
}

void record(BenchRow& row, const Run& run, std::vector<double>& gaps) {
    row.ttft_s.samples.push_back(median_of(run, [](const auto& m) { return m.ttft_s(); }));
    row.prefill_tok_s.samples.push_back(median_of(run, [](const auto& m) { return m.prefill_tok_s(); }));
    row.decode_tok_s.samples.push_back(median_of(run, [](const auto& m) { return m.decode_tok_s(); }));
    row.tpot_s.samples.push_back(median_of(run, [](const auto& m) { return m.tpot_s(); }));
    row.total_tok_s.samples.push_back(total_tok_s(run));
    row.total_decode_tok_s.samples.push_back(steady_tok_s(run));
    std::vector<double> run_gaps;
    for (const RequestMetrics& m : run.requests)
        for (std::size_t i = 1; i < m.token_times.size(); ++i)
            run_gaps.push_back(m.token_times[i] - m.token_times[i - 1]);
    row.itl_s.samples.push_back(quantile(run_gaps, 0.5));
    gaps.insert(gaps.end(), run_gaps.begin(), run_gaps.end());
    const Span s = span_of(run);
    row.steady_share =
        s.end > s.first_token ? std::max(0.0, s.first_end - s.last_first_token) / (s.end - s.first_token) : 0;
}

class Bench {
  public:
    Bench(const std::shared_ptr<const Model>& model, const BenchOptions& options,
          const std::function<void(const BenchProgress&)>& progress, const std::function<bool()>& cancelled)
        : model_(model), options_(options), progress_(progress), cancelled_(cancelled) {
        for (const int depth : options.depths)
            for (const int sequences : options.sequences)
                shapes_.push_back({sequences, depth});
    }

    BenchReport run() {
        BenchReport report;
        report.started_unix_s = unix_now();
        describe(report);
        EngineOptions engine_options = sized_engine();
        Engine engine(model_, engine_options);
        report.block_size = engine.block_size();
        report.max_num_batched_tokens = engine_options.max_num_batched_tokens;
        report.prompt_ids_hash = 0xCBF29CE484222325ULL;
        for (std::size_t i = 0; i < shapes_.size(); ++i)
            report.rows.push_back(measure(engine, i, report.prompt_ids_hash));
        report.ended_unix_s = unix_now();
        return report;
    }

  private:
    static std::int64_t unix_now() {
        return std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
            .count();
    }

    void describe(BenchReport& report) const {
        const DeviceInfo device = model_->backend->device();
        report.model_path = model_->path.filename().string();
        report.model_name = model_->config.name;
        report.quantization = model_->quantization;
        report.device = device.name;
        report.kernels = device.kernels;
        report.threads = device.threads;
        report.load_s.samples = {model_->load_seconds};
        report.load_stages = model_->load_stages;
        report.weight_bytes = model_->weight_bytes;
        report.kv_dtype = dtype_name(options_.engine.kv_dtype.value_or(model_->kv_dtype));
        report.activations = activations_name(model_->activations);
        report.options = options_;
    }

    int row_tokens(const RowShape& s) const {
        return s.depth + options_.prompt_tokens + options_.output_tokens;
    }

    // A pool that holds the largest row without preemption, and nothing more.
    EngineOptions sized_engine() const {
        EngineOptions e = options_.engine;
        e.prefix_caching = false;
        int longest = 0;
        int widest = 0;
        std::int64_t blocks = 0;
        for (const RowShape& s : shapes_) {
            longest = std::max(longest, row_tokens(s));
            widest = std::max(widest, s.sequences);
            blocks = std::max<std::int64_t>(
                blocks, std::int64_t(s.sequences) * ((row_tokens(s) + e.block_size - 1) / e.block_size + 1));
        }
        if (model_->config.max_position > 0 && longest > model_->config.max_position)
            throw Error(ErrorKind::argument,
                        "depth + prompt tokens + output tokens must be at most the model's context of " +
                            std::to_string(model_->config.max_position) + ", got " + std::to_string(longest));
        e.max_num_seqs = std::max(e.max_num_seqs, widest);
        if (e.max_model_len == 0) e.max_model_len = longest + 1;
        if (e.kv_blocks == 0 && e.kv_cache_bytes == 0) e.kv_blocks = int(blocks);
        return e;
    }

    BenchRow measure(Engine& engine, std::size_t row_index, std::uint64_t& hash) {
        const RowShape shape = shapes_[row_index];
        BenchRow row;
        row.sequences = shape.sequences;
        row.depth = shape.depth;
        row.prompt_tokens = options_.prompt_tokens;
        row.output_tokens = options_.output_tokens;
        row.kv_tokens = std::uint64_t(engine.kv_blocks()) * std::uint64_t(engine.block_size());
        const Prompts prompts = make_prompts(*model_, shape.sequences, shape.depth + options_.prompt_tokens,
                                             options_.seed + row_index);
        hash = fnv1a(hash, prompts);
        warm_up(engine, prompts, row, row_index);
        std::vector<double> gaps;
        for (int repeat = 0; repeat < options_.repeats;) {
            report_progress(shape, row_index, repeat, "run");
            const Run run = run_once(engine, prompts, options_.output_tokens, cancelled_);
            if (!run.valid) {
                if (++row.voided > options_.repeats)
                    throw Error(ErrorKind::runtime, "the benchmark's runs are void: expected " +
                                                        std::to_string(options_.output_tokens) +
                                                        " tokens from every sequence, no cache hit and no "
                                                        "preemption; give a larger --kv-blocks");
                continue;
            }
            record(row, run, gaps);
            ++repeat;
        }
        row.itl_p95_s = quantile(gaps, 0.95);
        row.itl_p99_s = quantile(gaps, 0.99);
        row.itl_max_s = quantile(gaps, 1.0);
        row.peak_bytes = process_peak_bytes();
        return row;
    }

    void warm_up(Engine& engine, const Prompts& prompts, BenchRow& row, std::size_t row_index) {
        double before = 0;
        while (row.warmups < options_.max_warmups) {
            report_progress(shapes_[row_index], row_index, row.warmups, "warm-up");
            const double rate = total_tok_s(run_once(engine, prompts, options_.output_tokens, cancelled_));
            ++row.warmups;
            if (row.warmups > 1 && std::abs(rate / before - 1) < 0.02) return;
            before = rate;
        }
    }

    void report_progress(const RowShape& shape, std::size_t row_index, int run, const char* kind) const {
        if (!progress_) return;
        const double within = double(run) / double(options_.repeats + 1);
        progress_({std::to_string(shape.sequences) + " sequences, depth " + std::to_string(shape.depth) +
                       ": " + kind + " " + std::to_string(run + 1),
                   (double(row_index) + within) / double(shapes_.size())});
    }

    std::shared_ptr<const Model> model_;
    const BenchOptions& options_;
    const std::function<void(const BenchProgress&)>& progress_;
    const std::function<bool()>& cancelled_;
    std::vector<RowShape> shapes_;
};

void check(const BenchOptions& o) {
    const auto require = [](bool good, const std::string& sentence) {
        if (!good) throw Error(ErrorKind::argument, sentence);
    };
    require(o.prompt_tokens >= 1, "prompt tokens must be at least 1, got " + std::to_string(o.prompt_tokens));
    require(o.output_tokens >= 1, "output tokens must be at least 1, got " + std::to_string(o.output_tokens));
    require(o.repeats >= 1, "repeats must be at least 1, got " + std::to_string(o.repeats));
    require(!o.sequences.empty() && !o.depths.empty(),
            "at least one number of sequences and one depth are needed");
    for (const int n : o.sequences)
        require(n >= 1, "sequences must be at least 1, got " + std::to_string(n));
    for (const int d : o.depths)
        require(d >= 0, "depth must be at least 0, got " + std::to_string(d));
}

}  // namespace

BenchReport run_bench(const std::shared_ptr<const Model>& model, const BenchOptions& options,
                      const std::function<void(const BenchProgress&)>& progress,
                      const std::function<bool()>& cancelled) {
    check(options);
    return Bench(model, options, progress, cancelled).run();
}

std::uint64_t process_peak_bytes() {
    std::ifstream status("/proc/self/status");
    std::string key;
    while (status >> key) {
        if (key == "VmHWM:") {
            std::uint64_t kib = 0;
            status >> kib;
            return kib * 1024;
        }
        status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return 0;
}

}  // namespace recto
