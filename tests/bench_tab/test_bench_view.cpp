// The Benchmark tab as a person meets it: by keyboard alone, in both languages, while it runs and afterwards.
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>

#include "bench_fixture.h"
#include "support/registry.h"
#include "ui/bench/bench_table.h"
#include "ui/bench/bench_view.h"
#include "ui/chat_tab_bar.h"
#include "ui/message_bar.h"
#include "ui/window_actions.h"

using namespace recto;
using namespace recto::ui;
using namespace recto::test;

namespace {

struct BenchTabDesk : BenchDesk {
    explicit BenchTabDesk(bool loaded = true) {
        if (loaded) load();
        open();
        window->show_benchmark();
        view = window->benchmark_view();
        view->set_plan(plan());
    }
    BenchTableModel* table() const { return find<BenchTable>("bench_table")->table(); }
    // "A | B | verdict" of the first row with this label below a heading that begins like this.
    QString cells(const char* heading, const char* label) const {
        bool below = false;
        for (int row = 0; row < table()->rowCount(); ++row) {
            const QModelIndex index = table()->index(row, 0);
            const QString text = index.data().toString();
            if (index.data(BenchTableModel::section_role).toBool())
                below = text.startsWith(QString::fromUtf8(heading));
            else if (below && text == QString::fromUtf8(label))
                return QStringList(table()->row_text(row).split(QLatin1Char('\t')).mid(1))
                    .join(QStringLiteral(" | "));
        }
        return {};
    }
    BenchTableModel::Tone tone(const char* heading, const char* label) const {
        for (int row = 0; row < table()->rowCount(); ++row) {
            const QString below = cells(heading, label);
            if (table()->index(row, 0).data().toString() == QString::fromUtf8(label) &&
                table()->row_text(row).endsWith(below.section(QStringLiteral(" | "), -1)))
                return BenchTableModel::Tone(
                    table()->index(row, BenchTableModel::verdict).data(BenchTableModel::tone_role).toInt());
        }
        return BenchTableModel::Tone::normal;
    }
    BenchView* view = nullptr;
};

}  // namespace

class TestBenchView : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void opens_by_its_key_and_comes_back() {
        BenchDesk desk;
        desk.open();
        auto* tabs = desk.window->findChild<ChatTabBar*>();
        QTest::keyClick(desk.window.get(), Qt::Key_M, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(desk.window->benchmark_view() != nullptr);
        QVERIFY(desk.window->benchmark_view()->isVisible());
        QCOMPARE(tabs->chat_at(tabs->currentIndex()), benchmark_tab);
        QCOMPARE(QApplication::focusWidget(), desk.find<QComboBox>("bench_a_model"));
        QCOMPARE(desk.window->windowTitle(), QStringLiteral("Benchmark — Recto"));
        QTest::keyClick(desk.window.get(), Qt::Key_M, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(tabs->count(), 2);  // one tab, however often it is asked for
        QTest::keyClick(desk.window.get(), Qt::Key_W, Qt::ControlModifier);
        QCOMPARE(tabs->index_of(benchmark_tab), -1);
        QVERIFY(desk.window->current_chat() != nullptr);
        QTest::keyClick(desk.window.get(), Qt::Key_T, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(tabs->chat_at(tabs->currentIndex()), benchmark_tab);
        desk.window->quit_now();
        QVERIFY(desk.session->settings().benchmark_open());
        QVERIFY(!desk.session->settings().open_chats().contains(benchmark_tab));
    }

    // Expected by hand from the samples: median and half the interquartile range (Hyndman and Fan's type 7).
    void table_says_what_the_report_holds() {
        BenchTabDesk desk;
        desk.bench.finish();
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(wait_for([&] { return !desk.benchmark().active() && desk.table()->rowCount() > 0; }));
        QCOMPARE(desk.cells("Models", "Load time"), QStringLiteral("2.31 s | 920 ms | too few runs"));
        QCOMPARE(desk.cells("Models", "Tokens that fit"), QStringLiteral("18,240 | 36,480 | ▲ 2.0× more"));
        QCOMPARE(desk.cells("Models", "Weights in memory"),
                 QStringLiteral("256.0 MiB | 64.0 MiB | ▲ 4.0× smaller"));
        QCOMPARE(desk.cells("Models", "Peak memory"), QStringLiteral("900.0 MiB | 900.0 MiB | the same"));
        QCOMPARE(desk.cells("1 sequence · 128 in + 100 out", "Decode, tok/s"),
                 QStringLiteral("61.3 ± 0.1 | 172.0 ± 0.4 | ▲ 2.8× faster"));
        QCOMPARE(desk.cells("1 sequence ", "Gap between tokens (ITL)").section(QStringLiteral(" | "), 0, 0),
                 QStringLiteral("16.31 ± 0.02 ms"));
        QCOMPARE(desk.cells("1 sequence ", "Gap between tokens, p99"),
                 QStringLiteral("16.9 ms | 16.9 ms | "));
        QCOMPARE(desk.cells("8 sequences", "Prefill, tok/s").section(QStringLiteral(" | "), -1),
                 QStringLiteral("▼ 3.1 % slower"));
        QCOMPARE(desk.cells("8 sequences", "Total, tok/s").section(QStringLiteral(" | "), -1),
                 QStringLiteral("likely 4.0 % faster"));
        QCOMPARE(desk.cells("8 sequences", "Same greedy tokens as A"),
                 QStringLiteral("– | 0 of 8 | first differs at 41"));
        // Colour only where it is clear.
        using Tone = BenchTableModel::Tone;
        QCOMPARE(desk.tone("1 sequence ", "Decode, tok/s"), Tone::better);
        QCOMPARE(desk.tone("1 sequence ", "Prefill, tok/s"), Tone::worse);
        QCOMPARE(desk.tone("1 sequence ", "Total, tok/s"), Tone::normal);
        QCOMPARE(desk.tone("1 sequence ", "First token (TTFT)"), Tone::dim);
        // What the tool tips say is there by keyboard too: of the row that was gone to.
        auto* view = desk.find<BenchTable>("bench_table");
        view->setFocus();
        for (int row = 0; row < desk.table()->rowCount(); ++row)
            if (desk.table()->index(row, 0).data().toString() == QStringLiteral("Decode, tok/s")) {
                view->setCurrentIndex(desk.table()->index(row, 0));
                break;
            }
        const QString details = desk.find<QLabel>("bench_details")->text();
        QVERIFY2(details.contains(QStringLiteral("61.1 to 61.5, 6 runs")), qPrintable(details));
        QVERIFY2(details.contains(QStringLiteral("B ÷ A = 2.806")), qPrintable(details));
        // Every timed figure has its formula beside it.
        for (int row = 0; row < desk.table()->rowCount(); ++row) {
            const QModelIndex index = desk.table()->index(row, 0);
            if (index.data().toString().contains(QStringLiteral("tok/s")) ||
                index.data().toString().contains(QStringLiteral("(")))
                QVERIFY2(!index.data(BenchTableModel::formula_role).toString().isEmpty(),
                         qPrintable(index.data().toString()));
        }
    }

    void the_table_fills_while_it_runs() {
        BenchTabDesk desk;
        desk.find<QPushButton>("bench_run")->click();
        desk.bench.allow(2);
        QVERIFY(wait_for([&] { return desk.table()->rowCount() > 0; }));
        const int rows = desk.table()->rowCount();
        QVERIFY(wait_for([&] { return desk.find<QProgressBar>("bench_progress")->value() == 400; }));
        QVERIFY(desk.find<QLabel>("bench_left")->text().contains(QStringLiteral("40 s")));
        auto* view = desk.find<BenchTable>("bench_table");
        view->selectRow(3);
        desk.bench.allow(3);
        QVERIFY(wait_for([&] { return desk.table()->rowCount() > rows; }));
        QCOMPARE(view->currentIndex().row(), 3);  // the reader's place stays
        QCOMPARE(desk.find<QComboBox>("bench_reports")->currentText(), QStringLiteral("this run"));
        QVERIFY(desk.find<ChatTabBar>("chat_tabs")->tabToolTip(1).contains(QStringLiteral("%")));
        desk.bench.finish();
        QVERIFY(wait_for([&] { return !desk.benchmark().active(); }));
    }

    void run_and_stop_by_keyboard() {
        BenchTabDesk desk;
        auto *run = desk.find<QPushButton>("bench_run"), *stop = desk.find<QPushButton>("bench_stop");
        QVERIFY(run->isVisible() && run->isEnabled());
        QVERIFY(!stop->isVisible());
        run->setFocus();
        QTest::keyClick(run, Qt::Key_Space);
        QVERIFY(desk.benchmark().active());
        QVERIFY(stop->isVisible());
        QVERIFY(!desk.find<QWidget>("bench_workload")->isEnabled());
        QCOMPARE(QApplication::focusWidget(), stop);
        desk.bench.allow(1);
        QVERIFY(wait_for([&] { return desk.table()->rowCount() > 0; }));
        QTest::keyClick(stop, Qt::Key_Space);
        QVERIFY(wait_for([&] { return !desk.benchmark().active(); }));
        QCOMPARE(QApplication::focusWidget(), run);
        QVERIFY(desk.find<QWidget>("bench_workload")->isEnabled());
        QVERIFY(desk.table()->rowCount() > 0);  // what was measured stays in sight
        QVERIFY(desk.find<MessageBar>("bench_message")->sentence().startsWith(QStringLiteral("Stopped.")));
    }

    void a_chat_that_answers_keeps_run_off() {
        BenchTabDesk desk;
        HostClient* host = desk.session->host();
        host->set_paused(true);
        QVERIFY(wait_for([&] { return host->paused(); }));
        Chat* chat = desk.session->chats().front();
        QVERIFY(chat->send(QStringLiteral("the block pool")));
        QVERIFY(wait_for([&] { return !desk.find<QPushButton>("bench_run")->isEnabled(); }));
        QVERIFY(desk.find<QLabel>("bench_now")->text().contains(QStringLiteral("1 chat still answers")));
        chat->stop();
        host->set_paused(false);
        QVERIFY(wait_for([&] { return desk.find<QPushButton>("bench_run")->isEnabled(); }));
    }

    void wrong_numbers_are_named() {
        BenchTabDesk desk;
        auto* sequences = desk.find<QLineEdit>("bench_sequences");
        sequences->setFocus();
        sequences->selectAll();
        QTest::keyClicks(sequences, QStringLiteral("1, many"));
        QVERIFY(!desk.find<QPushButton>("bench_run")->isEnabled());
        QVERIFY(desk.find<QLabel>("bench_problem")->text().contains(QStringLiteral("1, many")));
        sequences->selectAll();
        QTest::keyClicks(sequences, QStringLiteral("4 2"));
        QVERIFY(desk.find<QPushButton>("bench_run")->isEnabled());
        QCOMPARE(desk.view->plan().sequences, (std::vector<int>{4, 2}));
        // kept for the next start
        QCOMPARE(plan_from_json(desk.session->settings().benchmark()).sequences, (std::vector<int>{4, 2}));
    }

    void presets_fill_both_numbers() {
        BenchTabDesk desk;
        auto* preset = desk.find<QComboBox>("bench_preset");
        QCOMPARE(preset->currentText(), QStringLiteral("128 / 100"));
        preset->setCurrentIndex(2);
        QCOMPARE(desk.view->plan().prompt_tokens, 2048);
        QCOMPARE(desk.view->plan().output_tokens, 128);
        desk.find<QSpinBox>("bench_output_tokens")->setValue(64);
        QCOMPARE(preset->currentText(), QStringLiteral("own numbers"));
        QCOMPARE(desk.view->plan().prompt_tokens, 2048);
    }

    void finished_reports_are_chosen_again() {
        BenchTabDesk desk;
        desk.bench.finish();
        desk.find<QPushButton>("bench_run")->click();
        auto* reports = desk.find<QComboBox>("bench_reports");
        QVERIFY(wait_for([&] { return !reports->currentData().toString().isEmpty(); }));  // kept, and chosen
        QVERIFY(reports->currentText().contains(QStringLiteral("Words.F16 / Words.Q4_1")));
        const int rows = desk.table()->rowCount();
        desk.window->findChild<ChatTabBar*>()->setCurrentIndex(1);
        QTest::keyClick(desk.window.get(), Qt::Key_W, Qt::ControlModifier);
        QVERIFY(desk.window->benchmark_view() == nullptr);
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        desk.window->show_benchmark();
        QVERIFY(wait_for([&] { return desk.table()->rowCount() == rows; }));
        QCOMPARE(desk.cells("Models", "Load time"), QStringLiteral("2.31 s | 920 ms | too few runs"));
    }

    void one_model_alone_has_no_second_column() {
        CompareReport report = sample_report();
        std::erase_if(report.rows, [](const BenchRow& row) { return row.side == 'B'; });
        report.verdicts.clear();
        report.first_differences.clear();
        BenchTableModel model;
        model.set_report(std::make_shared<const CompareReport>(report));
        QCOMPARE(model.columnCount(), 2);
        QVERIFY(model.rowCount() > 10);
        model.set_report(std::make_shared<const CompareReport>(sample_report()));
        QCOMPARE(model.columnCount(), 4);
    }

    void copies_markdown_and_rows() {
        BenchTabDesk desk;
        desk.bench.finish();
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(wait_for([&] { return !desk.benchmark().active() && desk.table()->rowCount() > 0; }));
        desk.find<QPushButton>("bench_copy")->click();
        const QString text = QGuiApplication::clipboard()->text();
        QVERIFY(text.contains(QStringLiteral("Words.Q4_1")) && text.contains(QStringLiteral("|---")));
        QVERIFY(!text.contains(QStringLiteral("/models/")));
        auto* view = desk.find<BenchTable>("bench_table");
        view->setFocus();
        view->selectRow(1);
        QTest::keyClick(view, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QGuiApplication::clipboard()->text(),
                 QStringLiteral("Load time\t2.31 s\t920 ms\ttoo few runs"));
    }

    void tab_visits_every_control_in_order() {
        BenchTabDesk desk;
        desk.bench.finish();
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(wait_for([&] { return !desk.benchmark().active() && desk.table()->rowCount() > 0; }));
        desk.find<MessageBar>("bench_message")->dismiss();
        desk.find<QComboBox>("bench_a_model")->setFocus();
        QStringList visited;
        for (int i = 0; i < 40 && !visited.contains(QStringLiteral("bench_save")); ++i) {
            visited << QApplication::focusWidget()->objectName();
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
        }
        visited.removeAll(QString());
        QCOMPARE(visited.mid(0, 15),
                 (QStringList{QStringLiteral("bench_a_model"), QStringLiteral("bench_a_browse"),
                              QStringLiteral("bench_b_model"), QStringLiteral("bench_b_browse"),
                              QStringLiteral("bench_preset"), QStringLiteral("bench_prompt_tokens"),
                              QStringLiteral("bench_output_tokens"), QStringLiteral("bench_sequences"),
                              QStringLiteral("bench_depths"), QStringLiteral("bench_repeats"),
                              QStringLiteral("bench_device"), QStringLiteral("bench_run"),
                              QStringLiteral("bench_reports"), QStringLiteral("bench_table"),
                              QStringLiteral("bench_copy")}));
    }

    void every_control_has_a_name() {
        BenchTabDesk desk;
        desk.bench.finish();
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(wait_for([&] { return !desk.benchmark().active() && desk.table()->rowCount() > 0; }));
        QStringList nameless;
        for (QWidget* widget : desk.view->findChildren<QWidget*>()) {
            if (!widget->isVisible() || widget->focusPolicy() == Qt::NoFocus) continue;
            if (qobject_cast<QAbstractSpinBox*>(widget->parent()) != nullptr) continue;  // its inner field
            QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(widget);
            const bool named = accessible != nullptr && !accessible->text(QAccessible::Name).isEmpty();
            if (widget->objectName().isEmpty() || !named)
                nameless << QStringLiteral("%1 \"%2\"")
                                .arg(QLatin1String(widget->metaObject()->className()), widget->objectName());
        }
        QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(QStringLiteral(", "))));
    }

    void language_switches_live() {
        BenchTabDesk desk;
        desk.bench.finish();
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(wait_for([&] { return !desk.benchmark().active() && desk.table()->rowCount() > 0; }));
        desk.session->settings().set_language(QStringLiteral("zh_TW"));
        QVERIFY(
            wait_for([&] { return desk.find<QPushButton>("bench_run")->text() == QStringLiteral("開始"); }));
        QStringList english;  // nothing that a person reads stays English
        for (int row = 0; row < desk.table()->rowCount(); ++row)
            for (const int column : {0, 3}) {
                const QString text = desk.table()->index(row, column).data().toString();
                bool chinese = text.isEmpty();
                for (const QChar c : text)
                    chinese = chinese || (c.unicode() >= 0x4e00 && c.unicode() <= 0x9fff);
                if (!chinese) english << text;
            }
        QVERIFY2(english.isEmpty(), qPrintable(english.join(QStringLiteral("; "))));
    }

    void closing_the_window_stops_it() {
        BenchTabDesk desk;
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(wait_for([&] { return desk.bench.starts() == 1; }));
        desk.window->close();
        QVERIFY(desk.window->isVisible());  // asks first
        auto* box = desk.find<QMessageBox>("quit_question");
        QVERIFY(box != nullptr);
        QVERIFY(box->text().contains(QStringLiteral("benchmark")));
        box->findChild<QPushButton*>(QStringLiteral("quit_confirm"))->click();
        QVERIFY(wait_for([&] { return !desk.window->isVisible(); }));  // its thread is joined by now
    }

    void closing_the_tab_lets_it_go_on() {
        BenchTabDesk desk;
        desk.find<QPushButton>("bench_run")->click();
        QVERIFY(wait_for([&] { return desk.bench.starts() == 1; }));
        QTest::keyClick(desk.window.get(), Qt::Key_W, Qt::ControlModifier);
        QVERIFY(desk.benchmark().active());
        auto* toast = desk.find<MessageBar>("toast");
        QCOMPARE(toast->sentence(), QStringLiteral("The benchmark goes on."));
        toast->findChild<QPushButton*>(QStringLiteral("message_action_0"))->click();  // Show
        QVERIFY(desk.window->benchmark_view()->isVisible());
        QVERIFY(desk.window->benchmark_view()
                    ->findChild<QPushButton*>(QStringLiteral("bench_stop"))
                    ->isVisible());
        desk.bench.finish();
        QVERIFY(wait_for([&] { return !desk.benchmark().active(); }));
    }
};

RECTO_TEST_CLASS(TestBenchView);
#include "test_bench_view.moc"
