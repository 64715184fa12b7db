#include <QTest>

#include "support/registry.h"
#include "ui/models/bench_plan.h"

using namespace recto::ui;

class TestBenchPlan : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void counts_are_read_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("read");  // empty: refused
        QTest::newRow("one") << "8"
                             << "8";
        QTest::newRow("commas") << "1,8, 64"
                                << "1, 8, 64";
        QTest::newRow("spaces") << "1 8  64"
                                << "1, 8, 64";
        QTest::newRow("Chinese commas") << QStringLiteral("1，8、64") << "1, 8, 64";
        QTest::newRow("order stays") << "64, 1"
                                     << "64, 1";
        QTest::newRow("once each") << "8, 8, 1"
                                   << "8, 1";
        QTest::newRow("empty") << ""
                               << "";
        QTest::newRow("word") << "1, many"
                              << "";
        QTest::newRow("half typed") << "1, 8x"
                                    << "";
        QTest::newRow("too small") << "0, 1"
                                   << "";
        QTest::newRow("too large") << "1, 1025"
                                   << "";
        QTest::newRow("beyond int") << "99999999999"
                                    << "";
    }
    void counts_are_read() {
        QFETCH(QString, text);
        QFETCH(QString, read);
        const auto counts = parse_counts(text, 1, most_bench_sequences);
        QCOMPARE(counts.has_value(), !read.isEmpty());
        if (counts) QCOMPARE(counts_text(*counts), read);
    }

    void plans_are_kept_whole() {
        BenchPlan plan;
        plan.a = QStringLiteral("/models/a.gguf");
        plan.b = QStringLiteral("/models/b");
        plan.device = QStringLiteral("cuda:1");
        plan.prompt_tokens = 2048;
        plan.output_tokens = 128;
        plan.sequences = {64, 1};
        plan.depths = {0, 4096};
        plan.repeats = 9;
        const BenchPlan read = plan_from_json(plan_to_json(plan));
        QCOMPARE(read.a, plan.a);
        QCOMPARE(read.b, plan.b);
        QCOMPARE(read.device, plan.device);
        QCOMPARE(read.prompt_tokens, plan.prompt_tokens);
        QCOMPARE(read.output_tokens, plan.output_tokens);
        QCOMPARE(read.sequences, plan.sequences);
        QCOMPARE(read.depths, plan.depths);
        QCOMPARE(read.repeats, plan.repeats);
    }

    void bad_values_count_as_absent() {
        const BenchPlan usual;
        const BenchPlan read = plan_from_json({{QStringLiteral("prompt_tokens"), 0},
                                               {QStringLiteral("output_tokens"), 1},
                                               {QStringLiteral("sequences"), QStringLiteral("8")},
                                               {QStringLiteral("depths"), -4},
                                               {QStringLiteral("repeats"), 1'000'000}});
        QCOMPARE(read.prompt_tokens, usual.prompt_tokens);
        QCOMPARE(read.output_tokens, usual.output_tokens);
        QCOMPARE(read.sequences, usual.sequences);
        QCOMPARE(read.depths, usual.depths);
        QCOMPARE(read.repeats, usual.repeats);
    }

    void the_largest_shape_decides_the_memory() {
        BenchPlan plan;  // 128 in + 100 out
        plan.sequences = {1, 64, 8};
        plan.depths = {4096, 0};
        QCOMPARE(plan.kv_tokens(), std::int64_t(64) * (4096 + 228));
    }
};

RECTO_TEST_CLASS(TestBenchPlan);
#include "test_bench_plan.moc"
