// The protocol on an engine without a model: order, warm-ups, void runs and their repetition, the steady
// part.
#include "engine/fake_model.h"
// Qt comes after it.
#include <QTest>

#include "engine/bench/row_run.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr int vocab = 50;

EngineOptions fake_options(int blocks) {
    EngineOptions o;
    o.block_size = 8;
    o.kv_blocks = blocks;
    o.max_model_len = 64;
    o.max_num_seqs = 8;
    o.max_num_batched_tokens = 64;
    o.prefix_caching = false;
    return o;
}

std::unique_ptr<Engine> fake_engine(const EngineOptions& o) {
    return std::make_unique<Engine>(std::make_unique<FakeModel>(vocab, o.kv_blocks, o.block_size), nullptr,
                                    std::vector<std::int32_t>{2}, o);
}

BenchPrompts prompts(int count, int tokens, std::uint64_t seed = 1) {
    const BenchVocabulary v{nullptr, vocab};
    return id_prompts(std::span(&v, 1), count, tokens, seed);
}

// A card whose driver says at each asking, by turns, what held it back.
class FakeMonitor : public DeviceMonitor {
  public:
    explicit FakeMonitor(int held_back_runs) : left_(2 * held_back_runs) {}
    DeviceFacts facts() const override { return {{"driver", "1.2"}}; }
    DeviceSample sample() override {
        DeviceSample s;
        s.clock_mhz = 1500;
        s.temperature_c = 60 + asked_++;
        s.energy_j = 10.0 * asked_;
        if (left_-- > 0) s.held_back = "thermal";
        return s;
    }

  private:
    int left_, asked_ = 0;  // a run asks twice: before and after
};

struct Bench {
    BenchOptions options;
    DeviceWatch watch;
    std::vector<std::string> said;
    RowState state;
    BenchRow row;

    explicit Bench(std::unique_ptr<DeviceMonitor> monitor = nullptr) : watch(std::move(monitor), 60) {
        options.output_tokens = 6;
        options.repeats = 3;
        options.cool_s = 0.01;
        options.max_warmups = 2;
        state.sequences = 2;
        state.prompts = prompts(2, 10);
        row.sequences = 2;
        row.output_tokens = 6;
    }
    void timed_run(Engine& engine) {
        RowRunner runner{
            options, 0.0, {}, [] { return 0.0; }, [this](const std::string& what) { said.push_back(what); },
            watch};
        runner.timed_run(engine, 0, state, row, nullptr);
    }
};

RequestMetrics times(double request, double start, std::vector<double> tokens) {
    RequestMetrics m;
    m.t_request = request;
    m.t_start = start;
    m.t_first = tokens.front();
    m.t_last = m.t_output0_last = tokens.back();
    m.output_tokens = m.output0_tokens = int(tokens.size());
    m.prompt_tokens = 8;
    m.token_times = std::move(tokens);
    return m;
}

}  // namespace

class TestProtocol : public QObject {
    Q_OBJECT
  private slots:
    void order_is_abba() {
        const auto text = [](int sides, int repeats) {
            const std::vector<char> order = run_order(sides, repeats);
            return std::string(order.begin(), order.end());
        };
        QCOMPARE(text(2, 6), "ABBAABBAABBA");
        QCOMPARE(text(2, 3), "ABBAAB");
        QCOMPARE(text(2, 1), "AB");
        QCOMPARE(text(1, 3), "AAA");
        QVERIFY((slot_lengths(run_order(2, 3)) == std::vector<int>{1, 2, 2, 1}));
        QVERIFY((slot_lengths(run_order(1, 4)) == std::vector<int>{4}));
    }

    void each_timed_run_follows_a_warm_up() {
        Bench b;
        const auto engine = fake_engine(fake_options(64));
        b.timed_run(*engine);
        b.timed_run(*engine);
        QVERIFY(b.said.size() >= 4);
        for (std::size_t i = 0; i < b.said.size(); ++i)
            if (b.said[i].rfind("run", 0) == 0)
                QVERIFY2(i > 0 && b.said[i - 1].rfind("warm-up", 0) == 0, b.said[i].c_str());
        QCOMPARE(b.said.back(), "run 2 of 3");
        QCOMPARE(b.row.runs.size(), 2U);
        QCOMPARE(b.row.runs[1].place, 1);
        for (const BenchRun& run : b.row.runs)
            QVERIFY(run.warmups >= 1 && run.warmups <= 2);
        QCOMPARE(b.row.ttft_s.samples.size(), 2U);
    }

    // What the engine gave is what greedy decoding gives without an engine (fake_model.h), at its full
    // length.
    void outputs_and_times_are_kept() {
        Bench b;
        const auto engine = fake_engine(fake_options(64));
        b.timed_run(*engine);
        for (std::size_t i = 0; i < 2; ++i)
            QVERIFY(b.state.outputs[0][i] == expected_greedy(b.state.prompts.ids[0][i], 6, vocab));
        const BenchRun& run = b.row.runs.front();
        QCOMPARE(run.requests.size(), 2U);
        for (const BenchRun::Request& r : run.requests) {
            QCOMPARE(r.steps.size(), 6U);
            for (std::size_t i = 1; i < r.steps.size(); ++i)
                QVERIFY(r.steps[i] > r.steps[i - 1]);
        }
        QVERIFY(std::is_sorted(run.step_s.begin(), run.step_s.end()) && run.step_s.front() >= 0);
    }

    // Both sequences start with one block of 8 and need a second one before 7 + 6 tokens; there are three.
    void preemption_voids_and_is_bounded() {
        Bench b;
        b.state.prompts = prompts(2, 7);
        EngineOptions o = fake_options(3);
        o.max_model_len = 24;
        const auto engine = fake_engine(o);
        try {
            b.timed_run(*engine);
            QFAIL("a preempted run counted");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::runtime);
            QVERIFY2(std::string(e.what()).find("--kv-blocks") != std::string::npos, e.what());
        }
        QCOMPARE(b.row.voided, b.options.max_retries);
        QCOMPARE(b.row.runs.size(), 3U);
        for (const BenchRun& run : b.row.runs)
            QVERIFY2(run.void_reason.find("preempted") != std::string::npos, run.void_reason.c_str());
        QVERIFY(b.row.ttft_s.samples.empty());
    }

    void a_cache_hit_voids() {
        Bench b;
        EngineOptions o = fake_options(64);
        o.prefix_caching = true;
        const auto engine = fake_engine(o);
        QVERIFY_THROWS_EXCEPTION(Error, b.timed_run(*engine));
        QVERIFY(b.row.runs.front().void_reason.find("prefix cache") != std::string::npos);
    }

    void a_short_output_voids() {
        const auto engine = fake_engine(fake_options(64));
        const RunResult r = run_once(*engine, prompts(1, 8).ids[0], 3, {});
        QCOMPARE(r.run.void_reason, "");
        EngineOptions o = fake_options(64);
        o.max_model_len = 10;  // room for 2 tokens behind a prompt of 8
        const auto small = fake_engine(o);
        try {
            const RunResult cut = run_once(*small, prompts(1, 8).ids[0], 3, {});
            QCOMPARE(cut.run.void_reason, "a sequence gave 2 of 3 tokens");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::argument);  // refused before it started is as good
        }
    }

    // Held back in two runs, not in the third: two void ones with the reason, one that counts.
    void heat_voids_and_is_repeated() {
        Bench b(std::make_unique<FakeMonitor>(2));
        const auto engine = fake_engine(fake_options(64));
        b.timed_run(*engine);
        QCOMPARE(b.row.runs.size(), 3U);
        QCOMPARE(b.row.runs[0].void_reason, "held back: thermal");
        QCOMPARE(b.row.runs[1].void_reason, "held back: thermal");
        QCOMPARE(b.row.runs[2].void_reason, "");
        QCOMPARE(b.row.voided, 2);
        QVERIFY(!b.row.throttled);
        QCOMPARE(b.row.ttft_s.samples.size(), 1U);
        QCOMPARE(b.row.runs[2].clock_mhz.value_or(0), 1500.0);
        QCOMPARE(b.row.runs[2].temperature_c.value_or(0), 65.0);  // the sixth asking
        QCOMPARE(b.row.runs[2].energy_j.value_or(0), 10.0);
        QCOMPARE(b.row.energy_j_token.samples.size(), 1U);
        QVERIFY(qFuzzyCompare(b.row.energy_j_token.samples[0], 10.0 / 12));
    }

    // Without a bound nothing would be left: after three repetitions the run counts and the row says so.
    void lasting_heat_is_reported() {
        Bench b(std::make_unique<FakeMonitor>(1000));
        const auto engine = fake_engine(fake_options(64));
        b.timed_run(*engine);
        QCOMPARE(b.row.runs.size(), 4U);
        QCOMPARE(b.row.voided, 3);
        QVERIFY(b.row.throttled);
        QCOMPARE(b.row.ttft_s.samples.size(), 1U);
    }

    // Two sequences, by hand: A starts at 0 and has tokens at 1 … 5, B at 4, 5 and 6: both decode in steps 5
    // only between 4 and 5, one of six steps.
    void a_short_steady_part_voids_its_rate() {
        RunResult r;
        r.requests = {times(0, 0, {1, 2, 3, 4, 5}), times(0, 3, {4, 5, 6})};
        r.outputs = {{1, 2, 3, 4, 5}, {1, 2, 3}};
        r.run.steady_share = 1.0 / 6;
        BenchRow row;
        row.sequences = 2;
        row.output_tokens = 5;
        std::vector<double> gaps;
        record(row, r, gaps, {}, nullptr);
        QVERIFY(row.total_decode_tok_s.samples.empty());
        QCOMPARE(row.steady_voided, 1);
        QCOMPARE(row.total_tok_s.samples.front(), 8.0 / 6);  // 8 tokens from 0 to 6
        QCOMPARE(steady_tok_s(r), 2.0);                      // two tokens in the second between 4 and 5
        QCOMPARE(row.itl_gaps, 6U);
        r.run.steady_share = 0.5;
        record(row, r, gaps, {}, nullptr);
        QCOMPARE(row.total_decode_tok_s.samples.size(), 1U);
    }

    void stopping_leaves_an_empty_engine() {
        const auto engine = fake_engine(fake_options(64));
        int asked = 0;
        try {
            run_once(*engine, prompts(2, 8).ids[0], 40, [&] { return ++asked > 3; });
            QFAIL("it was not stopped");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::cancelled);
        }
        QCOMPARE(engine->snapshot().counts.used, 0);
    }

    void both_sides_get_the_same_ids() {
        const std::vector<BenchVocabulary> sides = {{nullptr, 50}, {nullptr, 40}};
        const BenchPrompts p = id_prompts(sides, 3, 20, 7);
        QVERIFY(p.ids[0] == p.ids[1]);
        QVERIFY(p.ids[0][0] != p.ids[0][1]);
        for (const auto& prompt : p.ids[0])
            for (const std::int32_t id : prompt)
                QVERIFY(id >= 0 && id < 40);  // known to both
        QVERIFY(hash_prompts(prompt_hash_start, p.ids[0]) == hash_prompts(prompt_hash_start, p.ids[1]));
        QVERIFY(hash_prompts(prompt_hash_start, p.ids[0]) !=
                hash_prompts(prompt_hash_start, id_prompts(sides, 3, 20, 8).ids[0]));
    }
};

RECTO_TEST_CLASS(TestProtocol);
#include "test_protocol.moc"
