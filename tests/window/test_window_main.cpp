// The real window on a real engine with a stand-in for the weights, driven as a person would.
#include <QAccessible>
#include <QApplication>
#include <QDialog>
#include <QDropEvent>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QTest>
#include <QUrl>

#include "support/registry.h"
#include "test_window_fixture.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/input_box.h"
#include "ui/chat_list_delegate.h"
#include "ui/chat_tab_bar.h"
#include "ui/language.h"
#include "ui/main_window.h"
#include "ui/message_bar.h"
#include "ui/model_sizes.h"
#include "ui/models/chat_list_model.h"
#include "ui/panel/flow_legend.h"
#include "ui/panel/live_panel.h"
#include "ui/sidebar.h"
#include "ui/theme/theme.h"
#include "ui/window_actions.h"

using namespace recto;
using namespace recto::ui;
using namespace recto::test;

namespace {

struct Desk {
    explicit Desk(int blocks = 64, bool loaded = true) : words(blocks) {
        open();
        if (loaded) words.load();
    }
    ~Desk() {
        if (window) finish();
    }
    void open() {
        theme = std::make_unique<Theme>();
        theme->apply_to(*qApp);
        window = std::make_unique<MainWindow>(theme.get(), &language, words.session.get(), LoadChoices{});
        window->resize(1280, 800);
        window->show();
        wait_for([this] { return window->current_chat() != nullptr && window->isActiveWindow(); });
    }
    // All answers end, the window closes, the session is written out.
    void finish() {
        words.session->stop_all();
        host()->set_paused(false);
        wait_for([this] { return words.session->busy_count() == 0; });
        window->close();
        window.reset();
    }
    // A second start on the same profile.
    void restart() {
        finish();
        words.session = std::make_unique<Session>(ProfilePaths::in(words.folder.path()), word_factory());
        words.session->start();
        wait_for([this] { return words.session->is_ready(); });
        open();
    }
    template <class T>
    T* find(const char* name) const {
        return window->findChild<T*>(QString::fromLatin1(name));
    }
    HostClient* host() const { return words.session->host(); }
    Chat* chat() const { return window->current_chat(); }
    ChatTabBar* tabs() const { return window->findChild<ChatTabBar*>(); }
    void pause() {
        host()->set_paused(true);
        wait_for([this] { return host()->paused(); });
    }
    // Types into the shown chat's input box and sends with Enter.
    void say(const char* text) {
        QWidget* field = QApplication::focusWidget();
        QTest::keyClicks(field, QString::fromLatin1(text));
        QTest::keyClick(field, Qt::Key_Return);
    }
    // Steps until the condition holds.
    template <class Condition>
    bool step_until(Condition condition) {
        return wait_for([&] {
            if (condition()) return true;
            host()->step();
            host()->request_snapshot();
            return false;
        });
    }
    void trigger(const char* action) const { window->actions_list()->action(action)->trigger(); }

    WordSession words;
    Language language;
    std::unique_ptr<Theme> theme;
    std::unique_ptr<MainWindow> window;
};

QString answer_text(const Chat* chat) {
    const MessageRecord& last = chat->message(chat->message_count() - 1);
    return last.role == Role::assistant ? last.content : QString();
}

}  // namespace

class TestWindowMain : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void typed_text_is_answered() {
        Desk desk;
        QVERIFY(desk.chat() != nullptr);
        desk.pause();
        desk.say("the block pool");
        QVERIFY(desk.step_until(
            [&] { return desk.chat()->message_count() == 2 && answer_text(desk.chat()).size() > 20; }));
        QCOMPARE(desk.chat()->message(0).content, QStringLiteral("the block pool"));
        QCOMPARE(desk.chat()->state(), ChatState::generating);
        desk.trigger("stop_chat");
        QVERIFY(wait_for([&] { return !desk.chat()->busy(); }));
        QVERIFY(answer_text(desk.chat()).size() > 20);
    }

    void two_tabs_answer_at_once() {
        Desk desk(128);
        desk.pause();
        desk.say("the block pool");
        Chat* first = desk.chat();
        QVERIFY(wait_for([&] { return first->busy(); }));
        desk.trigger("new_chat");
        QVERIFY(wait_for([&] { return desk.chat() != first && desk.chat()->is_open(); }));
        desk.say("a page table");
        Chat* second = desk.chat();
        QCOMPARE(desk.tabs()->count(), 2);
        QVERIFY(desk.step_until([&] {
            return first->message_count() == 2 && second->message_count() == 2 &&
                   answer_text(first).size() > 20 && answer_text(second).size() > 20;
        }));
        QVERIFY(first->busy() && second->busy());
        QCOMPARE(desk.find<QLabel>("status_chats")->text(), QStringLiteral("paused · 2 chats, 2 answering"));
    }

    void four_chats_share_their_prompt() {
        Desk desk(128);
        desk.pause();
        desk.trigger("four_chats");
        QCOMPARE(desk.tabs()->count(), 4);
        auto* panel = desk.window->findChild<LivePanel*>();
        QVERIFY(desk.step_until([&] {
            const EngineSnapshot* s = panel->feed()->snapshot();
            return s != nullptr && s->counts.shared > 0;
        }));
        const auto looks = panel->feed()->looks();
        QVERIFY(std::any_of(looks.begin(), looks.end(), [](const CellLook& c) { return c.ref_count >= 2; }));
        // The legend counts each of the 128 blocks once.
        const auto* legend = panel->findChild<FlowLegend*>(QStringLiteral("block_legend"));
        QVERIFY(wait_for([&] {
            int sum = 0, shared = 0;
            for (const LegendEntry& entry : legend->entries()) {
                const int blocks = entry.text.section(QLatin1Char(' '), -1).toInt();
                sum += blocks;
                if (entry.swatch == Swatch::shared) shared = blocks;
            }
            return sum == 128 && shared > 0;
        }));
    }

    // Lengths of the four answers in tokens, once all have ended by their limit: this model never ends one
    // itself.
    static QList<int> lengths_of_four(Desk& desk) {
        desk.trigger("four_chats");
        QList<int> lengths;
        wait_for([&] {
            lengths.clear();
            for (int i = 0; i < desk.tabs()->count(); ++i) {
                const Chat* chat = desk.words.session->chat(desk.tabs()->chat_at(i));
                if (chat->message_count() != 2) continue;
                const MessageRecord& answer = chat->message(1);
                if (answer.finish_reason == QLatin1String("length")) lengths << int(answer.token_ids.size());
            }
            return lengths.size() == 4;
        });
        return lengths;
    }
    void four_chats_end_their_answers() {
        Desk desk(400);
        QCOMPARE(lengths_of_four(desk), (QList<int>{512, 512, 512, 512}));
    }
    void four_chats_keep_a_shorter_limit() {
        Desk desk(400);
        desk.words.session->settings().set_sampling({{QStringLiteral("max_tokens"), 5}});
        QCOMPARE(lengths_of_four(desk), (QList<int>{5, 5, 5, 5}));
    }

    // A pool for one chat: the second says how many blocks it lacks, then goes on by itself.
    void small_pool_makes_wait() {
        Desk desk(16);
        desk.pause();
        desk.say(
            "the block pool and the page table and a long cache and every token of the model in the memory "
            "of it");
        Chat* first = desk.chat();
        QVERIFY(
            desk.step_until([&] { return first->message_count() == 2 && answer_text(first).size() > 60; }));
        desk.trigger("new_chat");
        QVERIFY(wait_for([&] { return desk.chat() != first && desk.chat()->is_open(); }));
        desk.say(
            "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
            "6789"
            "01234567890123456789012345678901234567890123456789");
        Chat* second = desk.chat();
        QVERIFY(desk.step_until(
            [&] { return second->state() == ChatState::waiting && second->blocks_missing() > 0; }));
        auto* list = desk.find<QListView>("chat_list");
        const auto* model = static_cast<ChatListModel*>(list->model());
        QPixmap shown = list->grab();
        QVERIFY(!shown.isNull());
        QVERIFY(model->index_of(second->id())
                    .data(ChatListModel::state_text_role)
                    .toString()
                    .contains(QStringLiteral("waiting")));
        first->stop();
        QVERIFY(desk.step_until([&] { return second->state() == ChatState::generating; }));
    }

    void closing_a_tab_stops_nothing() {
        Desk desk;
        desk.pause();
        desk.say("the block pool");
        Chat* chat = desk.chat();
        QVERIFY(desk.step_until([&] { return chat->state() == ChatState::generating; }));
        QTest::keyClick(desk.window.get(), Qt::Key_W, Qt::ControlModifier);
        QVERIFY(wait_for([&] { return desk.chat() != chat; }));  // another, empty tab
        QVERIFY(chat->busy());
        auto* toast = desk.find<MessageBar>("toast");
        QVERIFY(toast->isVisible());
        QVERIFY(toast->sentence().contains(QStringLiteral("goes on answering")));
        toast->findChild<QPushButton*>(QStringLiteral("message_action_0"))->click();  // Show
        QCOMPARE(desk.chat(), chat);
        QVERIFY(chat->busy());
    }

    void reopens_closed_tabs() {
        Desk desk;
        desk.pause();
        desk.say("the block pool");
        Chat* chat = desk.chat();
        QVERIFY(wait_for([&] { return chat->message_count() == 2; }));
        desk.trigger("close_tab");
        QVERIFY(desk.chat() != chat);
        QTest::keyClick(desk.window.get(), Qt::Key_T, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(desk.chat(), chat);
    }

    void unused_chats_leave_no_trace() {
        Desk desk;
        desk.pause();
        desk.say("the block pool");
        Chat* used = desk.chat();
        QVERIFY(wait_for([&] { return used->message_count() == 2; }));
        desk.trigger("new_chat");
        QVERIFY(wait_for([&] { return desk.chat() != used && desk.chat()->is_open(); }));
        QCOMPARE(desk.words.session->chats().size(), 2);
        desk.trigger("close_tab");
        QCOMPARE(desk.chat(), used);
        QCOMPARE(desk.words.session->chats().size(), 1);
        desk.trigger("new_chat");
        QVERIFY(wait_for([&] { return desk.chat() != used && desk.chat()->is_open(); }));
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("a draft"));
        desk.trigger("close_tab");
        QCOMPARE(desk.words.session->chats().size(), 2);  // a draft is kept
    }

    void delete_is_undone() {
        Desk desk;
        desk.pause();
        desk.say("the block pool");
        Chat* chat = desk.chat();
        QVERIFY(wait_for([&] { return chat->message_count() == 2; }));
        chat->stop();
        QVERIFY(wait_for([&] { return !chat->busy(); }));
        auto* list = desk.find<QListView>("chat_list");
        list->setFocus();
        list->setCurrentIndex(static_cast<ChatListModel*>(list->model())->index_of(chat->id()));
        QTest::keyClick(list, Qt::Key_Backspace);
        QVERIFY(!chat->trashed());
        QTest::keyClick(list, Qt::Key_Delete);
        QVERIFY(chat->trashed());
        QCOMPARE(desk.tabs()->index_of(chat->id()), -1);
        desk.find<MessageBar>("toast")->findChild<QPushButton*>(QStringLiteral("message_action_0"))->click();
        QVERIFY(!chat->trashed());
        QCOMPARE(desk.chat(), chat);
    }

    void quitting_asks_once_and_keeps_the_text() {
        Desk desk;
        desk.pause();
        desk.say("the block pool");
        Chat* chat = desk.chat();
        QVERIFY(desk.step_until([&] { return chat->message_count() == 2 && answer_text(chat).size() > 20; }));
        const ChatId id = chat->id();
        const QString text = answer_text(chat);
        desk.window->close();
        QVERIFY(desk.window->isVisible());
        desk.window->close();
        const auto boxes = desk.window->findChildren<QMessageBox*>(QStringLiteral("quit_question"));
        QCOMPARE(boxes.size(), 1);
        boxes.front()->findChild<QPushButton*>(QStringLiteral("quit_confirm"))->click();
        QVERIFY(wait_for([&] { return !desk.window->isVisible(); }));
        desk.window.reset();
        desk.words.session =
            std::make_unique<Session>(ProfilePaths::in(desk.words.folder.path()), word_factory());
        desk.words.session->start();
        QVERIFY(wait_for([&] { return desk.words.session->is_ready(); }));
        desk.open();
        QCOMPARE(desk.chat()->id(), id);  // the tab is there again
        QVERIFY(wait_for([&] { return desk.chat()->is_loaded() && desk.chat()->message_count() == 2; }));
        QVERIFY(answer_text(desk.chat()).startsWith(text));
    }

    void look_is_kept() {
        Desk desk;
        desk.trigger("theme_light");
        QVERIFY(!desk.theme->palette().dark);
        desk.trigger("zoom_in");
        desk.trigger("zoom_in");
        QCOMPARE(desk.theme->zoom(), 1.2);
        desk.trigger("toggle_panel");
        desk.trigger("toggle_sidebar");
        QVERIFY(!desk.window->findChild<LivePanel*>()->isVisible());
        QVERIFY(!desk.window->findChild<Sidebar*>()->isVisible());
        desk.restart();
        QVERIFY(!desk.theme->palette().dark);
        QCOMPARE(desk.theme->zoom(), 1.2);
        QVERIFY(!desk.window->findChild<LivePanel*>()->isVisible());
        QTest::keyClick(desk.window.get(), Qt::Key_J, Qt::ControlModifier);
        QVERIFY(desk.window->findChild<LivePanel*>()->isVisible());
        QTest::keyClick(desk.window.get(), Qt::Key_0, Qt::ControlModifier);
        QCOMPARE(desk.theme->zoom(), 1.0);
    }

    void language_switches_live() {
        Desk desk;
        desk.words.session->settings().set_language(QStringLiteral("zh_TW"));
        QVERIFY(wait_for(
            [&] { return desk.find<QPushButton>("new_chat_button")->text() == QStringLiteral("新對話"); }));
        QCOMPARE(desk.window->menuBar()->actions().first()->text(), QStringLiteral("檔案"));
        desk.words.session->settings().set_language(QStringLiteral("en"));
        QVERIFY(wait_for(
            [&] { return desk.find<QPushButton>("new_chat_button")->text() == QStringLiteral("New chat"); }));
        QCOMPARE(desk.find<QPushButton>("eject_button")->text(), QStringLiteral("Eject"));
    }

    void search_filters_titles() {
        Desk desk;
        desk.pause();
        desk.say("the block pool");
        Chat* first = desk.chat();
        QVERIFY(wait_for([&] { return first->message_count() == 2; }));
        desk.trigger("new_chat");
        QVERIFY(wait_for([&] { return desk.chat() != first && desk.chat()->is_open(); }));
        desk.say("weather tomorrow");
        Chat* second = desk.chat();
        QVERIFY(wait_for([&] { return second->message_count() == 2; }));
        QTest::keyClick(desk.window.get(), Qt::Key_K, Qt::ControlModifier);
        auto* search = desk.find<QLineEdit>("chat_search");
        QCOMPARE(QApplication::focusWidget(), search);
        QTest::keyClicks(search, QStringLiteral("pool"));
        const auto* model = static_cast<ChatListModel*>(desk.find<QListView>("chat_list")->model());
        QVERIFY(model->index_of(first->id()).isValid());
        QVERIFY(!model->index_of(second->id()).isValid());
        QTest::keyClick(search, Qt::Key_Return);
        QCOMPARE(desk.chat(), first);
    }

    void memory_is_shown_before_loading() {
        Desk desk;
        desk.window->opener()->ask_and_load(QStringLiteral("/models/other.gguf"));
        QDialog* dialog = nullptr;
        QVERIFY(wait_for([&] { return (dialog = desk.find<QDialog>("memory_dialog")) != nullptr; }));
        QStringList said;
        for (const QLabel* label : dialog->findChildren<QLabel*>())
            said << label->text();
        const QString all = said.join(QLatin1Char(' '));
        QVERIFY2(all.contains(QStringLiteral("100.0 MiB")) && all.contains(QStringLiteral("8.0 GiB")),
                 qPrintable(all));
        QCOMPARE(desk.host()->model()->path.filename().string(),
                 std::string("SmolLM2-135M-Instruct.Q4_1.gguf"));
        dialog->findChild<QPushButton*>(QStringLiteral("memory_load"))->click();
        QVERIFY(wait_for(
            [&] { return desk.host()->ready() && desk.host()->model()->path.filename() == "other.gguf"; }));
        QVERIFY(!desk.find<QLabel>("starter_note")->isVisible());
    }

    void bad_files_say_one_sentence() {
        Desk desk;
        desk.window->opener()->ask_and_load(QStringLiteral("/models/broken.bad"));
        QDialog* dialog = nullptr;
        QVERIFY(wait_for([&] { return (dialog = desk.find<QDialog>("memory_dialog")) != nullptr; }));
        QVERIFY(dialog->findChild<QLabel*>(QStringLiteral("memory_verdict"))
                    ->text()
                    .contains(QStringLiteral("expected a GGUF header")));
        QVERIFY(dialog->findChild<QPushButton*>(QStringLiteral("memory_load")) == nullptr);
        dialog->close();
        QVERIFY(desk.host()->ready());  // the model in use stays
    }

    void loading_is_cancelled() {
        Desk desk(64, false);
        QCOMPARE(desk.find<QLabel>("model_name")->text(), QStringLiteral("No model loaded"));
        desk.window->opener()->load_now(QStringLiteral("/models/huge.slow"));
        auto* cancel = desk.find<QPushButton>("cancel_load_button");
        QVERIFY(wait_for([&] { return cancel->isVisible(); }));
        QVERIFY(!desk.find<QPushButton>("eject_button")->isVisible());
        cancel->click();
        QVERIFY(wait_for([&] { return desk.host()->state() == HostState::empty; }));
        QVERIFY(!cancel->isVisible());
    }

    void model_card_follows_the_model() {
        Desk desk;
        QCOMPARE(desk.find<QLabel>("model_name")->text(), QStringLiteral("SmolLM2 135M Instruct"));
        QVERIFY(desk.find<QLabel>("model_details")->text().contains(QStringLiteral("AVX-512 VNNI")));
        QVERIFY(desk.find<QLabel>("starter_note")->isVisible());
        QVERIFY(desk.find<QLabel>("status_device")->text().contains(QStringLiteral("CPU with AVX-512 VNNI")));
        desk.find<QPushButton>("eject_button")->click();
        QVERIFY(wait_for([&] { return desk.host()->state() == HostState::empty; }));
        QCOMPARE(desk.find<QLabel>("model_name")->text(), QStringLiteral("No model loaded"));
        desk.find<QPushButton>("reload_button")->click();
        QVERIFY(wait_for([&] { return desk.host()->ready(); }));
    }

    void dropped_models_are_offered() {
        Desk desk;
        const QString path = desk.words.folder.filePath(QStringLiteral("dropped.gguf"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.close();
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(path)});
        QCOMPARE(ModelOpener::dropped_model(&data), path);
        QDragEnterEvent enter(QPoint(200, 200), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(desk.window.get(), &enter);
        QVERIFY(enter.isAccepted());
        QVERIFY(desk.find<QLabel>("drop_hint")->isVisible());
        QDropEvent drop(QPointF(200, 200), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(desk.window.get(), &drop);
        QVERIFY(!desk.find<QLabel>("drop_hint")->isVisible());
        QVERIFY(wait_for([&] { return desk.find<QDialog>("memory_dialog") != nullptr; }));
        data.setUrls({QUrl::fromLocalFile(QStringLiteral("/etc/hostname"))});
        QVERIFY(ModelOpener::dropped_model(&data).isEmpty());
    }

    void suggestions_follow_the_memory() {
        QVERIFY(!size_classes(0).front().fits);
        const auto small = size_classes(3ULL << 30), large = size_classes(64ULL << 30);
        QVERIFY(small.front().fits);
        QVERIFY(!small.back().fits);
        QVERIFY(large.back().fits);
        for (const auto& c : large)
            for (const auto& m : c.models) {
                QVERIFY(m.needed_bytes > m.file_bytes);
                QVERIFY(m.name.startsWith(QStringLiteral("Llama")) ||
                        m.name.startsWith(QStringLiteral("SmolLM2")) ||
                        m.name.startsWith(QStringLiteral("Qwen2.5")));
            }
    }

    void every_control_has_a_name() {
        Desk desk;
        QStringList nameless;
        for (QWidget* widget : desk.window->findChildren<QWidget*>()) {
            if (!widget->isVisible() || widget->focusPolicy() == Qt::NoFocus) continue;
            QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(widget);
            const bool named = accessible != nullptr && !accessible->text(QAccessible::Name).isEmpty();
            if (widget->objectName().isEmpty() || !named)
                nameless << QStringLiteral("%1 \"%2\"")
                                .arg(QLatin1String(widget->metaObject()->className()), widget->objectName());
        }
        QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(QStringLiteral(", "))));
    }

    void shortcuts_are_unambiguous() {
        Desk desk;
        QStringList seen;
        for (const auto& [name, keys] : desk.window->actions_list()->shortcuts())
            for (const QString& key : keys.split(QStringLiteral("  "))) {
                QVERIFY2(!seen.contains(key), qPrintable(name + QLatin1Char(' ') + key));
                seen << key;
            }
        // What input methods hold (fcitx5, IBus) is free.
        for (const char* held :
             {"Ctrl+Space", "Ctrl+.", "Ctrl+;", "Ctrl+Shift+F", "Ctrl+Shift+U", "Ctrl+Shift+E"})
            QVERIFY(!seen.contains(QLatin1String(held)));
    }

    void tab_visits_every_control() {
        Desk desk;
        QSet<QWidget*> visited;
        desk.find<QPushButton>("new_chat_button")->setFocus();
        for (int i = 0; i < 60; ++i) {
            visited << QApplication::focusWidget();
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
        }
        for (const char* name :
             {"new_chat_button", "chat_search", "chat_list", "open_model_button", "reload_button",
              "eject_button", "chat_tabs", "block_map", "pause_button", "event_list"})
            QVERIFY2(visited.contains(desk.find<QWidget>(name)), name);
    }
};

RECTO_TEST_CLASS(TestWindowMain);
#include "test_window_main.moc"
