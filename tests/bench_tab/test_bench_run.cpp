// Starting, watching, stopping and keeping a benchmark: the thread is real, what it measures is scripted.
#include <QDir>
#include <QFile>
#include <QSignalSpy>
#include <QTest>

#include "bench_fixture.h"
#include "support/registry.h"
#include "ui/models/chat.h"

using namespace recto;
using namespace recto::ui;
using namespace recto::test;

namespace {

// word_factory's estimate, with as much memory as the test says.
EngineFactory factory_with(std::uint64_t free_bytes, std::uint64_t weight_bytes) {
    EngineFactory factory = word_factory();
    factory.estimate = [free_bytes, weight_bytes](const ModelRequest&) {
        EstimateReport report;
        report.name = "Words";
        report.memory.weight_bytes = weight_bytes;
        report.memory.workspace_bytes = 1 << 20;
        report.memory.kv_bytes_per_token = 1024;
        report.memory.free_bytes = free_bytes;
        return report;
    };
    return factory;
}

bool ended(const BenchDesk& desk) {
    return wait_for([&] { return !desk.benchmark().active(); });
}

}  // namespace

class TestBenchRun : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void rows_come_one_by_one_and_the_report_is_kept() {
        BenchDesk desk;
        Benchmark& b = desk.benchmark();
        QSignalSpy finished(&b, &Benchmark::finished), kept(&b.reports(), &BenchReports::kept);
        QVERIFY(b.start(BenchDesk::plan(), 2));
        QCOMPARE(b.state(), BenchState::checking);
        QVERIFY(wait_for([&] { return b.state() == BenchState::running; }));
        desk.bench.allow(2);
        QVERIFY(wait_for([&] { return b.report() != nullptr && b.report()->rows.size() == 2; }));
        QCOMPARE(b.progress().what, std::string("row 2"));
        QCOMPARE(b.progress().seconds_left, 40.0);
        QCOMPARE(finished.count(), 0);
        desk.bench.finish();
        QVERIFY(ended(desk));
        QCOMPARE(finished.count(), 1);
        QCOMPARE(b.report()->rows.size(), std::size_t(4));
        QVERIFY(wait_for([&] { return kept.count() == 1; }));

        const auto list = b.reports().list();
        QCOMPARE(list.size(), std::size_t(1));
        QCOMPARE(list.front().title, QStringLiteral("Words.F16 / Words.Q4_1"));
        BenchReports::Report read;
        connect(&b.reports(), &BenchReports::was_read, this,
                [&](const QString&, const BenchReports::Report& report) { read = report; });
        b.reports().read(list.front().path);
        QVERIFY(wait_for([&] { return read != nullptr; }));
        QCOMPARE(read->rows.size(), std::size_t(4));
        QCOMPARE(read->rows[1].decode_tok_s.samples, sample_report().rows[1].decode_tok_s.samples);
        QCOMPARE(read->verdicts.size(), sample_report().verdicts.size());
    }

    void never_on_the_windows_thread() {
        BenchDesk desk;
        desk.bench.finish();
        QVERIFY(desk.benchmark().start(BenchDesk::plan(), 3));
        QVERIFY(ended(desk));
        QVERIFY(desk.bench.ran_on() != std::thread::id());
        QVERIFY(desk.bench.ran_on() != std::this_thread::get_id());
        const BenchRequest asked = desk.bench.request();
        QCOMPARE(asked.threads, 3);
        QCOMPARE(asked.device, std::string("auto"));
        QCOMPARE(asked.options.a.model.string(), std::string("/models/a.gguf"));
        QVERIFY(asked.options.b.has_value());
        QCOMPARE(asked.options.workload.sequences, (std::vector<int>{1, 8}));
        QCOMPARE(asked.options.workload.repeats, 6);
    }

    void chats_wait_while_it_runs() {
        BenchDesk desk;
        desk.load();
        Chat* chat = desk.session->new_chat();
        QVERIFY(wait_for([&] { return chat->is_open(); }));
        QVERIFY(chat->send_blocked_reason().isEmpty());
        QVERIFY(desk.benchmark().start(BenchDesk::plan(), 2));
        QVERIFY(!chat->send_blocked_reason().isEmpty());
        QVERIFY(!chat->send(QStringLiteral("the block pool")));
        QVERIFY(!chat->busy());
        QSignalSpy refused(desk.session->host(), &HostClient::load_refused);
        ModelRequest other;
        other.path = "/models/other.gguf";
        desk.session->host()->load(other);
        QCOMPARE(refused.count(), 1);
        QVERIFY(desk.session->host()->ready());
        desk.bench.finish();
        QVERIFY(ended(desk));
        QVERIFY(chat->send_blocked_reason().isEmpty());
        QVERIFY(chat->send(QStringLiteral("the block pool")));
        chat->stop();
        QVERIFY(wait_for([&] { return !chat->busy(); }));
    }

    void does_not_start_while_a_chat_answers() {
        BenchDesk desk;
        desk.load();
        HostClient* host = desk.session->host();
        host->set_paused(true);
        QVERIFY(wait_for([&] { return host->paused(); }));
        Chat* chat = desk.session->new_chat();
        QVERIFY(wait_for([&] { return chat->is_open(); }));
        QVERIFY(chat->send(QStringLiteral("the block pool")));
        QVERIFY(!desk.benchmark().start_blocked_reason().isEmpty());
        QVERIFY(!desk.benchmark().start(BenchDesk::plan(), 2));
        QVERIFY(!desk.benchmark().active());
        chat->stop();
        host->set_paused(false);
        QVERIFY(wait_for([&] { return !chat->busy(); }));
        QVERIFY(desk.benchmark().start_blocked_reason().isEmpty());
        QCOMPARE(desk.bench.starts(), 0);
    }

    void stop_keeps_what_was_measured_in_sight() {
        BenchDesk desk;
        Benchmark& b = desk.benchmark();
        QSignalSpy stopped(&b, &Benchmark::stopped), failed(&b, &Benchmark::failed);
        QVERIFY(b.start(BenchDesk::plan(), 2));
        desk.bench.allow(3);
        QVERIFY(wait_for([&] { return b.report() != nullptr && b.report()->rows.size() == 3; }));
        b.stop();
        QCOMPARE(b.state(), BenchState::stopping);
        QVERIFY(ended(desk));
        QCOMPARE(stopped.count(), 1);
        QCOMPARE(failed.count(), 0);
        QCOMPARE(b.report()->rows.size(), std::size_t(3));
        QVERIFY(b.reports().list().empty());
        desk.bench.finish();
        QVERIFY(b.start(BenchDesk::plan(), 2));  // and again
        QVERIFY(ended(desk));
        QCOMPARE(b.report()->rows.size(), std::size_t(4));
    }

    void a_failure_is_one_sentence() {
        BenchDesk desk;
        desk.bench.fail_with("The device cuda cannot be used: no card was found.");
        desk.bench.finish();
        QSignalSpy failed(&desk.benchmark(), &Benchmark::failed);
        QVERIFY(desk.benchmark().start(BenchDesk::plan(), 2));
        QVERIFY(ended(desk));
        QCOMPARE(failed.count(), 1);
        QCOMPARE(failed.front().front().toString(),
                 QStringLiteral("The device cuda cannot be used: no card was found."));
    }

    void a_bad_file_is_named_before_anything_runs() {
        BenchDesk desk;
        QSignalSpy failed(&desk.benchmark(), &Benchmark::failed);
        BenchPlan plan = BenchDesk::plan();
        plan.b = QStringLiteral("/models/broken.bad");
        QVERIFY(desk.benchmark().start(plan, 2));
        QVERIFY(ended(desk));
        QCOMPARE(failed.count(), 1);
        QVERIFY(failed.front().front().toString().startsWith(QStringLiteral("/models/broken.bad")));
        QCOMPARE(desk.bench.starts(), 0);
    }

    void short_memory_offers_to_eject() {
        // word_factory's model holds 98 MiB. Needed: 120 + 1 MiB and 8 × 228 tokens of 1 KiB.
        BenchDesk desk(factory_with(100ULL << 20, 120ULL << 20));
        desk.load();
        Benchmark& b = desk.benchmark();
        QSignalSpy shortage(&b, &Benchmark::memory_short);
        QVERIFY(b.start(BenchDesk::plan(), 2));
        QVERIFY(ended(desk));
        QCOMPARE(shortage.count(), 1);
        QCOMPARE(shortage.front()[0].toULongLong(), (121ULL << 20) + 8 * 228 * 1024);
        QCOMPARE(shortage.front()[1].toULongLong(), 100ULL << 20);
        QVERIFY(shortage.front()[2].toULongLong() >= 98ULL << 20);
        QCOMPARE(desk.bench.starts(), 0);
        // The stand-in's memory does not grow by ejecting: what is seen is that the model goes first.
        b.eject_and_start();
        QVERIFY(wait_for([&] { return shortage.count() == 2; }));
        QCOMPARE(desk.session->host()->state(), HostState::empty);
        QCOMPARE(shortage.back()[2].toULongLong(), 0ULL);
    }

    void shutdown_stops_and_joins() {
        BenchDesk desk;
        QVERIFY(desk.benchmark().start(BenchDesk::plan(), 2));
        QVERIFY(wait_for([&] { return desk.bench.starts() == 1; }));
        desk.session->shutdown();  // the scripted run ends by being stopped, or this never returns
        QVERIFY(!desk.benchmark().start(BenchDesk::plan(), 2));
        QCOMPARE(desk.bench.starts(), 1);
    }

    void bad_reports_hide_no_others() {
        BenchDesk desk;
        desk.bench.finish();
        QVERIFY(desk.benchmark().start(BenchDesk::plan(), 2));
        QVERIFY(ended(desk));
        BenchReports& reports = desk.benchmark().reports();
        QVERIFY(wait_for([&] { return reports.list().size() == 1; }));
        const QString bad = QDir(reports.folder()).filePath(QStringLiteral("2020-01-02 03.04.05 torn.json"));
        QFile file(bad);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("{\"header\": {");
        file.close();
        const auto list = reports.list();
        QCOMPARE(list.size(), std::size_t(2));
        QCOMPARE(list.back().title, QStringLiteral("torn"));  // the oldest comes last
        QSignalSpy failed(&reports, &BenchReports::failed), read(&reports, &BenchReports::was_read);
        reports.read(bad);
        QVERIFY(wait_for([&] { return failed.count() == 1; }));
        QVERIFY(failed.front().front().toString().contains(bad));
        reports.read(list.front().path);
        QVERIFY(wait_for([&] { return read.count() == 1; }));
    }

    void reports_are_saved_where_the_person_says() {
        BenchDesk desk;
        BenchReports& reports = desk.benchmark().reports();
        const auto report = std::make_shared<const CompareReport>(sample_report());
        QSignalSpy saved(&reports, &BenchReports::saved), failed(&reports, &BenchReports::failed);
        const QString json = desk.folder.filePath(QStringLiteral("r.json")),
                      csv = desk.folder.filePath(QStringLiteral("r.csv"));
        reports.save(report, json, BenchReports::Format::json);
        reports.save(report, csv, BenchReports::Format::csv);
        reports.save(report, QStringLiteral("/nowhere/r.csv"), BenchReports::Format::csv);
        QVERIFY(wait_for([&] { return saved.count() == 2 && failed.count() == 1; }));
        QFile text(csv);
        QVERIFY(text.open(QIODevice::ReadOnly));
        QVERIFY(text.readLine().contains("decode_tok_s"));
        QVERIFY(failed.front().front().toString().contains(QStringLiteral("/nowhere/r.csv")));
    }
};

RECTO_TEST_CLASS(TestBenchRun);
#include "test_bench_run.moc"
