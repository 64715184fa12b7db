// The whole window in its states, light and dark, English and Chinese: nothing may be cut.
#include <QApplication>
#include <QDialog>
#include <QLineEdit>
#include <QScreen>
#include <QTest>

#include "support/pictures.h"
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
    void nothing_is_cut_data() { add_looks(); }

    void nothing_is_cut() {
        const QString row = QString::fromLatin1(QTest::currentDataTag());
        WordSession words(128);
        take_look(words.session->settings());
        Theme look;
        look.apply_to(*qApp);
        Language tongue;
        MainWindow window(&look, &tongue, words.session.get(), {});
        window.resize(1440, 900);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        check_picture(&window, row + QStringLiteral("-1-no-model"));
        words.load();
        auto* panel = window.findChild<LivePanel*>();
        QVERIFY(wait_for([&] { return panel->feed()->snapshot() != nullptr; }));
        QCoreApplication::processEvents();
        check_picture(&window, row + QStringLiteral("-2-empty-chat"));

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
        check_picture(&window, row + QStringLiteral("-3-four-chats"));

        window.show_better_answers();
        auto* better = window.findChild<QDialog*>(QStringLiteral("better_answers_dialog"));
        QVERIFY(QTest::qWaitForWindowExposed(better));
        check_picture(better, row + QStringLiteral("-4-better-answers"));
        better->close();
        window.opener()->ask_and_load(QStringLiteral("/models/other.gguf"));
        QDialog* memory = nullptr;
        QVERIFY(
            wait_for([&] { return (memory = window.findChild<QDialog*>(QStringLiteral("memory_dialog"))); }));
        QVERIFY(QTest::qWaitForWindowExposed(memory));
        check_picture(memory, row + QStringLiteral("-5-memory"));
        memory->close();
        words.session->stop_all();
        host->set_paused(false);
        QVERIFY(wait_for([&] { return words.session->busy_count() == 0; }));
        words.session->shutdown();
    }
};

RECTO_TEST_CLASS(TestWindowPictures);
#include "test_window_pictures.moc"
