// The whole window in its states, light and dark, English and Chinese: nothing may be cut. With
// RECTO_PICTURES=DIR the pictures are kept for looking at; QT_SCALE_FACTOR=1.5 (a process each) makes them at
// another scale.
#include <QApplication>
#include <QDialog>
#include <QDir>
#include <QLineEdit>
#include <QScreen>
#include <QTest>

#include "support/cut_texts.h"
#include "support/registry.h"
#include "test_window_fixture.h"
#include "ui/chat_tab_bar.h"
#include "ui/language.h"
#include "ui/main_window.h"
#include "ui/panel/live_panel.h"
#include "ui/theme/theme.h"

using namespace recto;
using namespace recto::ui;
using namespace recto::test;

class TestWindowPictures : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void nothing_is_cut_data() {
        QTest::addColumn<int>("theme");
        QTest::addColumn<QString>("language");
        QTest::addColumn<int>("zoom");
        QTest::newRow("dark") << int(ThemeChoice::dark) << "en" << 100;
        QTest::newRow("light") << int(ThemeChoice::light) << "en" << 100;
        QTest::newRow("dark-zh") << int(ThemeChoice::dark) << "zh_TW" << 100;
        QTest::newRow("light-150") << int(ThemeChoice::light) << "en" << 150;
    }

    void nothing_is_cut() {
        QFETCH(int, theme);
        QFETCH(QString, language);
        QFETCH(int, zoom);
        const QString row = QString::fromLatin1(QTest::currentDataTag());
        WordSession words(128);
        words.session->settings().set_theme(ThemeChoice(theme));
        words.session->settings().set_language(language);
        words.session->settings().set_text_zoom(zoom);
        Theme look;
        look.apply_to(*qApp);
        Language tongue;
        MainWindow window(&look, &tongue, words.session.get(), {});
        window.resize(1440, 900);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        check(&window, row + QStringLiteral("-1-no-model"));
        words.load();
        auto* panel = window.findChild<LivePanel*>();
        QVERIFY(wait_for([&] { return panel->feed()->snapshot() != nullptr; }));
        QCoreApplication::processEvents();
        check(&window, row + QStringLiteral("-2-empty-chat"));

        HostClient* host = words.session->host();
        host->set_paused(true);
        QVERIFY(wait_for([&] { return host->paused(); }));
        window.show_four_chats();
        int steps = 0;
        QVERIFY(wait_for([&] {
            host->step();
            host->request_snapshot();
            QTest::qWait(1);
            const EngineSnapshot* s = panel->feed()->snapshot();
            return ++steps > 60 && s != nullptr && s->running + s->waiting == 4 && s->counts.shared > 0;
        }));
        QCoreApplication::processEvents();
        check(&window, row + QStringLiteral("-3-four-chats"));

        window.show_better_answers();
        auto* better = window.findChild<QDialog*>(QStringLiteral("better_answers_dialog"));
        QVERIFY(QTest::qWaitForWindowExposed(better));
        check(better, row + QStringLiteral("-4-better-answers"));
        better->close();
        window.opener()->ask_and_load(QStringLiteral("/models/other.gguf"));
        QDialog* memory = nullptr;
        QVERIFY(
            wait_for([&] { return (memory = window.findChild<QDialog*>(QStringLiteral("memory_dialog"))); }));
        QVERIFY(QTest::qWaitForWindowExposed(memory));
        check(memory, row + QStringLiteral("-5-memory"));
        memory->close();
        words.session->stop_all();
        host->set_paused(false);
        QVERIFY(wait_for([&] { return words.session->busy_count() == 0; }));
        words.session->shutdown();
    }

  private:
    void check(QWidget* widget, const QString& name) {
        const QPixmap picture = widget->grab();
        const QString folder = qEnvironmentVariable("RECTO_PICTURES");
        if (!folder.isEmpty()) {
            const QString scale = QString::number(qRound(widget->devicePixelRatioF() * 100));
            QVERIFY(QDir().mkpath(folder));
            QVERIFY(picture.save(QStringLiteral("%1/%2-at-%3.png").arg(folder, name, scale)));
        }
        const QStringList cut = cut_texts(widget);
        QVERIFY2(cut.isEmpty(), qPrintable(name + QStringLiteral(" cuts ") + cut.join(QStringLiteral("; "))));
    }
};

RECTO_TEST_CLASS(TestWindowPictures);
#include "test_window_pictures.moc"
