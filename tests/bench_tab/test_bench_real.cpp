// One real run on a tiny model, through the session, the thread and run_compare().
#include <QFile>
#include <QSignalSpy>
#include <QTest>

#include "bench_fixture.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::ui;
using namespace recto::test;

class TestBenchReal : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void measures_a_tiny_model_against_another() {
        QTemporaryDir folder;
        Session session(ProfilePaths::in(folder.path()));
        session.start();
        QVERIFY(wait_for([&] { return session.is_ready(); }));
        const QString models = QStringLiteral(RECTO_TEST_DATA "/model/tiny/");
        BenchPlan plan;
        plan.a = models + QStringLiteral("llama-gqa-tied");
        plan.b = models + QStringLiteral("llama-linear-rope");
        plan.device = QStringLiteral("cpu");
        plan.prompt_tokens = 8;
        plan.output_tokens = 6;
        plan.sequences = {1, 2};
        plan.repeats = 2;
        Benchmark& b = session.benchmark();
        QSignalSpy failed(&b, &Benchmark::failed), kept(&b.reports(), &BenchReports::kept),
            progress(&b, &Benchmark::progress_changed);
        QVERIFY(b.start(plan, 1));
        QVERIFY(wait_for([&] { return !b.active(); }));
        QVERIFY2(failed.isEmpty(), failed.isEmpty() ? "" : qPrintable(failed.front().front().toString()));
        QVERIFY(b.report() != nullptr);
        QCOMPARE(b.report()->rows.size(), std::size_t(4));  // two shapes, two sides
        for (const BenchRow& row : b.report()->rows) {
            QCOMPARE(row.decode_tok_s.samples.size(), std::size_t(2));
            QVERIFY(row.decode_tok_s.median() > 0);
            QCOMPARE(row.prompt_tokens, 8);
            QCOMPARE(row.output_tokens, 6);
        }
        QVERIFY(!b.report()->verdicts.empty());
        QVERIFY(progress.count() > 0);
        QVERIFY(wait_for([&] { return kept.count() == 1; }));
        session.shutdown();
    }

    void stops_between_two_steps() {
        QTemporaryDir folder;
        Session session(ProfilePaths::in(folder.path()));
        session.start();
        QVERIFY(wait_for([&] { return session.is_ready(); }));
        BenchPlan plan;
        plan.a = QStringLiteral(RECTO_TEST_DATA "/model/tiny/llama-gqa-tied");
        plan.device = QStringLiteral("cpu");
        plan.prompt_tokens = 4;
        plan.output_tokens = 8;
        plan.sequences = {1};
        plan.repeats = most_bench_repeats;
        Benchmark& b = session.benchmark();
        QSignalSpy stopped(&b, &Benchmark::stopped);
        QVERIFY(b.start(plan, 1));
        QVERIFY(wait_for([&] { return b.report() != nullptr || !b.active(); }));
        b.stop();
        QVERIFY(wait_for([&] { return !b.active(); }));
        QCOMPARE(stopped.count(), 1);
        QVERIFY(b.reports().list().empty());
        session.shutdown();
    }
};

RECTO_TEST_CLASS(TestBenchReal);
#include "test_bench_real.moc"
