// The Benchmark tab in its states, light and dark, English and Chinese: nothing may be cut.
#include <QApplication>
#include <QPushButton>
#include <QTest>

#include "bench_fixture.h"
#include "support/pictures.h"
#include "support/registry.h"
#include "ui/bench/bench_table.h"
#include "ui/bench/bench_view.h"

using namespace recto;
using namespace recto::ui;
using namespace recto::test;

class TestBenchPictures : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void nothing_is_cut_data() { add_looks(); }

    void nothing_is_cut() {
        const QString row = QString::fromLatin1(QTest::currentDataTag());
        BenchDesk desk;
        take_look(desk.session->settings());
        desk.load();
        desk.open();
        desk.window->show_benchmark();
        BenchView* view = desk.window->benchmark_view();
        view->set_plan(BenchDesk::plan());
        QVERIFY(wait_for([&] {
            return desk.find<QLabel>("bench_a_details")->text().contains(QStringLiteral("Q4_1")) &&
                   desk.find<QLabel>("bench_b_details")->text().contains(QStringLiteral("Q4_1"));
        }));
        check_picture(desk.window.get(), row + QStringLiteral("-bench-1-empty"));
        desk.find<QPushButton>("bench_run")->click();
        desk.bench.allow(3);
        QVERIFY(wait_for([&] { return desk.benchmark().progress().fraction > 0.5; }));
        check_picture(desk.window.get(), row + QStringLiteral("-bench-2-running"));
        desk.bench.finish();
        QVERIFY(wait_for([&] { return !desk.benchmark().active(); }));
        QCoreApplication::processEvents();
        check_picture(desk.window.get(), row + QStringLiteral("-bench-3-finished"));
        auto* table = desk.find<BenchTable>("bench_table");
        for (int i = 0; i < table->table()->rowCount(); ++i)
            for (int column = 1; column < table->table()->columnCount(); ++column) {
                const QModelIndex index = table->table()->index(i, column);
                QVERIFY2(index.data(BenchTableModel::section_role).toBool() ||
                             table->sizeHintForIndex(index).width() <= table->columnWidth(column),
                         qPrintable(index.data().toString()));
            }
        Q_EMIT desk.benchmark().memory_short(9ULL << 30, 3ULL << 30, 7ULL << 30);
        QCoreApplication::processEvents();
        check_picture(desk.window.get(), row + QStringLiteral("-bench-4-memory"));
    }

    // A report as the engine writes it: its header and warnings have room too.
    void a_real_report_is_not_cut() {
        BenchDesk desk(word_factory(), real_bench_runner());
        desk.load();
        desk.open();
        desk.window->show_benchmark();
        BenchPlan plan;
        plan.a = QStringLiteral(RECTO_TEST_DATA "/model/tiny/llama-gqa-tied");
        plan.b = QStringLiteral(RECTO_TEST_DATA "/model/tiny/llama-linear-rope");
        plan.device = QStringLiteral("cpu");
        plan.prompt_tokens = 8;
        plan.output_tokens = 16;
        plan.sequences = {1, 2};
        plan.repeats = 3;
        desk.window->benchmark_view()->set_plan(plan);
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(desk.benchmark().active());
        QVERIFY(wait_for([&] { return !desk.benchmark().active(); }));
        auto* table = desk.find<BenchTable>("bench_table");
        QVERIFY(table->table()->rowCount() > 0);
        check_picture(desk.window.get(), QStringLiteral("real-bench"));
        for (int row = 0; row < table->table()->rowCount(); ++row) {
            const QString text = table->table()->row_text(row);
            if (text.startsWith(QStringLiteral("Decode")))
                QVERIFY2(!text.contains(QStringLiteral("–")), qPrintable(text));
        }
        table->scrollToBottom();
        table->selectRow(table->table()->rowCount() - 2);
        check_picture(desk.window.get(), QStringLiteral("real-bench-end"));
    }
};

RECTO_TEST_CLASS(TestBenchPictures);
#include "test_bench_pictures.moc"
