// A benchmark that the test steps: the report is written here by hand, the thread and the stop are real.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include "ui/language.h"
#include "ui/main_window.h"
#include "ui/theme/theme.h"
#include "window/test_window_fixture.h"

namespace recto::test {

inline BenchRow bench_row(char side, int sequences, std::vector<double> decode, double ttft_s) {
    BenchRow row;
    row.side = side;
    row.model = side == 'A' ? "Words.F16" : "Words.Q4_1";
    row.sequences = sequences;
    row.prompt_tokens = 128;
    row.output_tokens = 100;
    row.load_s.samples = {side == 'A' ? 2.31 : 0.92};
    row.weight_bytes = (side == 'A' ? 256ULL : 64ULL) << 20;
    row.kv_tokens = side == 'A' ? 18'240 : 36'480;
    row.peak_bytes = 900ULL << 20;
    row.decode_tok_s.samples = decode;
    for (const double rate : decode) {
        row.tpot_s.samples.push_back(1 / rate);
        row.itl_s.samples.push_back(1 / rate);
        row.total_tok_s.samples.push_back(rate * sequences * 0.9);
        row.total_decode_tok_s.samples.push_back(rate * sequences);
        row.ttft_s.samples.push_back(ttft_s);
        row.prefill_tok_s.samples.push_back(128 / ttft_s);
    }
    row.itl_p95_s = row.itl_p99_s = 0.0169;
    row.itl_max_s = 0.031;
    row.itl_gaps = 594;
    return row;
}

inline Verdict bench_verdict(const char* figure, int sequences, double ratio, const char* word, char better) {
    Verdict v;
    v.figure = figure;
    v.sequences = sequences;
    if (sequences > 0) {
        v.prompt_tokens = 128;
        v.output_tokens = 100;
    }
    v.ratio = ratio;
    v.word = word;
    v.better = better;
    v.p = 0.002;
    v.runs_a = v.runs_b = 6;
    return v;
}

// Two models, one and eight sequences. Ranges of decode: 61.1 … 61.5 against 171 … 173.
inline CompareReport sample_report() {
    CompareReport report;
    report.header = {{"recto", "0.1.0"}, {"commit", "abcdef0"}, {"device", "Test processor"}};
    const std::vector<double> a{61.1, 61.2, 61.3, 61.3, 61.4, 61.5}, b{171, 171.5, 172, 172, 172.5, 173};
    for (const int sequences : {1, 8}) {
        report.rows.push_back(bench_row('A', sequences, a, 0.0214));
        report.rows.push_back(bench_row('B', sequences, b, 0.022));
        report.verdicts.push_back(bench_verdict("ttft_s", sequences, 1.028, "within noise", ' '));
        report.verdicts.push_back(bench_verdict("prefill_tok_s", sequences, 0.97, "clear", 'A'));
        report.verdicts.push_back(bench_verdict("decode_tok_s", sequences, 2.806, "clear", 'B'));
        report.verdicts.push_back(bench_verdict("total_tok_s", sequences, 1.04, "likely", 'B'));
        report.first_differences.push_back(
            {sequences, 0, std::vector<int>(std::size_t(sequences), 41), 41, 0});
    }
    report.verdicts.push_back(bench_verdict("load_s", 0, 0.398, "too few runs", ' '));
    report.verdicts.back().runs_a = report.verdicts.back().runs_b = 1;
    return report;
}

// Gives the rows of its report one by one, each when the test says so.
class ScriptedBench {
  public:
    explicit ScriptedBench(CompareReport report = sample_report()) : report_(std::move(report)) {}

    ui::BenchRunner runner() {
        return [this](const ui::BenchRequest& request,
                      const std::function<void(const CompareProgress&)>& progress,
                      const std::function<bool()>& cancelled) {
            {
                const std::lock_guard lock(mutex_);
                ran_on_ = std::this_thread::get_id();
                request_ = request;
                ++starts_;
            }
            CompareReport so_far;
            so_far.header = report_.header;
            for (std::size_t i = 0; i < report_.rows.size(); ++i) {
                wait_for_row(i, cancelled);
                so_far.rows.push_back(report_.rows[i]);
                CompareProgress p;
                p.what = "row " + std::to_string(i + 1);
                p.fraction = double(i + 1) / double(report_.rows.size() + 1);
                p.seconds_left = 40;
                p.report = &so_far;
                progress(p);
            }
            wait_for_row(report_.rows.size(), cancelled);
            if (!failure_.empty()) throw Error(ErrorKind::runtime, failure_);
            return report_;
        };
    }
    void allow(std::size_t rows) {  // one more than there are rows: to the end
        const std::lock_guard lock(mutex_);
        allowed_ = rows;
    }
    void finish() { allow(report_.rows.size() + 1); }
    void fail_with(const std::string& sentence) { failure_ = sentence; }
    std::thread::id ran_on() {
        const std::lock_guard lock(mutex_);
        return ran_on_;
    }
    ui::BenchRequest request() {
        const std::lock_guard lock(mutex_);
        return request_;
    }
    int starts() {
        const std::lock_guard lock(mutex_);
        return starts_;
    }

  private:
    void wait_for_row(std::size_t row, const std::function<bool()>& cancelled) {
        while (true) {
            if (cancelled()) throw Error(ErrorKind::cancelled, "the benchmark was stopped");
            {
                const std::lock_guard lock(mutex_);
                if (row < allowed_) return;
            }
            std::this_thread::yield();
        }
    }
    const CompareReport report_;
    std::mutex mutex_;
    std::size_t allowed_ = 0;
    std::string failure_;
    std::thread::id ran_on_;
    ui::BenchRequest request_;
    int starts_ = 0;
};

// A session with words for a chat model and the scripted benchmark; a window when asked for.
struct BenchDesk {
    explicit BenchDesk(ui::EngineFactory factory = word_factory(), ui::BenchRunner runner = {})
        : session(std::make_unique<ui::Session>(ui::ProfilePaths::in(folder.path()), std::move(factory),
                                                nullptr, runner ? std::move(runner) : bench.runner())) {
        session->start();
        wait_for([this] { return session->is_ready(); });
    }
    ~BenchDesk() {
        if (window) {
            window->quit_now();
            window.reset();
        }
        session->shutdown();
    }
    void load() {
        ui::ModelRequest request;
        request.path = "/models/words.gguf";
        session->host()->load(request);
        wait_for([this] { return session->host()->ready(); });
    }
    void open() {
        theme = std::make_unique<ui::Theme>();
        theme->apply_to(*qApp);
        window = std::make_unique<ui::MainWindow>(theme.get(), &language, session.get(), ui::LoadChoices{});
        window->resize(1440, 900);
        window->show();
        wait_for([this] { return window->current_chat() != nullptr && window->isActiveWindow(); });
    }
    template <class T>
    T* find(const char* name) const {
        return window->findChild<T*>(QString::fromLatin1(name));
    }
    ui::Benchmark& benchmark() const { return session->benchmark(); }
    static ui::BenchPlan plan() {
        ui::BenchPlan plan;
        plan.a = QStringLiteral("/models/a.gguf");
        plan.b = QStringLiteral("/models/b.gguf");
        plan.sequences = {1, 8};
        return plan;
    }
    ScriptedBench bench;
    QTemporaryDir folder;
    std::unique_ptr<ui::Session> session;
    ui::Language language;
    std::unique_ptr<ui::Theme> theme;
    std::unique_ptr<ui::MainWindow> window;
};

}  // namespace recto::test
