// The whole product once: the window, the real engine, the starter model.
#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QTest>
#include <QWindow>

#include "support/model_data.h"
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

class TestWindowStarter : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void answers_and_shares() {
        const QString path = QString::fromStdString(starter_path());
        QVERIFY2(QFile::exists(path), qPrintable(path));
        QTemporaryDir folder;
        QElapsedTimer since_start;
        since_start.start();
        Theme theme;
        theme.apply_to(*qApp);
        Language language;
        Session session(ProfilePaths::in(folder.path()));
        session.settings().set_theme(ThemeChoice::dark);
        MainWindow window(&theme, &language, &session, {});
        window.resize(1440, 900);
        window.show();
        session.start();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        const qint64 shown_ms = since_start.elapsed();
        window.opener()->load_now(path);
        HostClient* host = session.host();
        QVERIFY(wait_for([&] {
            return session.is_ready() && host->state() != HostState::empty &&
                   host->state() != HostState::loading;
        }));
        QVERIFY2(host->ready(), qPrintable(host->error()));
        qInfo("window shown after %lld ms, starter ready after %lld ms (load %.0f ms)", shown_ms,
              since_start.elapsed(), host->model()->load_seconds * 1000);
        QCOMPARE(host->model()->kv_blocks, 512);

        session.settings().set_sampling({{QStringLiteral("temperature"), 0}});
        window.show_four_chats();
        auto* panel = window.findChild<LivePanel*>();
        auto* tabs = window.findChild<ChatTabBar*>();
        bool shared = false;
        QVERIFY(wait_for([&] {
            const EngineSnapshot* s = panel->feed()->snapshot();
            shared = shared || (s != nullptr && s->counts.shared > 0);
            bool answered = true;
            for (int i = 0; i < 4; ++i) {
                const Chat* chat = session.chat(tabs->chat_at(i));
                answered = answered && chat->message_count() == 2 && chat->message(1).content.size() > 60;
            }
            return shared && answered;
        }));
        for (int i = 0; i < 4; ++i) {
            const Chat* chat = session.chat(tabs->chat_at(i));
            QVERIFY(!chat->message(1).content.contains(QChar::ReplacementCharacter));
        }
        const QString pictures = qEnvironmentVariable("RECTO_PICTURES");
        if (!pictures.isEmpty()) {
            QTest::qWait(500);  // a picture with something to read in it
            QDir().mkpath(pictures);
            const int scale = qRound(window.devicePixelRatioF() * 100);
            QVERIFY(window.grab().save(QStringLiteral("%1/starter-at-%2.png").arg(pictures).arg(scale)));
        }
        session.stop_all();
        QVERIFY(wait_for([&] { return session.busy_count() == 0; }));
        QVERIFY(
            wait_for([&] { return panel->feed()->snapshot()->counts.used == 0; }));  // the blocks are back
        window.close();
    }
};

RECTO_TEST_CLASS(TestWindowStarter);
#include "test_window_starter.moc"
