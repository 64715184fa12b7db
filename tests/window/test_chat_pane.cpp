// One chat in its pane, over a model without weights. The host is paused and stepped where the moment
// matters; everything else waits on a condition.
#include "support/fake_chat.h"

#include <QApplication>
#include <QDoubleSpinBox>
#include <QInputMethodEvent>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "support/registry.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/input_box.h"
#include "ui/chat/transcript_view.h"
#include "ui/models/session.h"
#include "ui/theme/theme.h"

using namespace recto;
using namespace recto::test;
using namespace recto::ui;

namespace {

struct Pane {
    QTemporaryDir folder;
    Session session{ProfilePaths::in(folder.path()), fake_factory()};
    Theme theme;
    Chat* chat = nullptr;
    std::unique_ptr<ChatView> view;

    explicit Pane(bool with_model = true) {
        QSignalSpy ready(&session, &Session::ready);
        session.start();
        if (!QTest::qWaitFor([&] { return !ready.isEmpty(); }, 30'000)) qFatal("the store did not open");
        if (with_model) {
            session.host()->load({.path = "/models/fake"});
            if (!QTest::qWaitFor([&] { return session.host()->ready(); }, 30'000))
                qFatal("the model did not load");
        }
        chat = session.new_chat();
        chat->set_sampling({{QStringLiteral("temperature"), 0.0},
                            {QStringLiteral("max_tokens"), 24},
                            {QStringLiteral("ignore_eos"), true}});
        view = make_view();
    }

    std::unique_ptr<ChatView> make_view() {
        auto made = std::make_unique<ChatView>(chat, &theme, &session.settings());
        made->resize(800, 640);
        made->show();
        if (!QTest::qWaitForWindowActive(made.get())) qFatal("the window was not activated");
        made->focus_input();
        return made;
    }

    TextField* field() { return view->input()->field(); }
    QPushButton* button(const char* name) { return view->findChild<QPushButton*>(QLatin1String(name)); }
    bool answered() {
        return QTest::qWaitFor([&] { return !chat->busy(); }, 30'000);
    }
    void ask(const QString& text) {
        QTest::keyClicks(field(), text);
        QTest::keyClick(field(), Qt::Key_Return);
    }
};

}  // namespace

class TestChatPane : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void an_empty_chat_offers_four() {
        Pane pane;
        QSignalSpy shared(pane.view.get(), &ChatView::shared_start_requested);
        QVERIFY(pane.button("sharedStartButton")->isVisible());
        QTest::mouseClick(pane.button("sharedStartButton"), Qt::LeftButton);
        QCOMPARE(shared.count(), 1);
        pane.ask(QStringLiteral("hello"));
        QTRY_VERIFY(pane.view->transcript()->isVisible());
        QVERIFY(!pane.button("sharedStartButton")->isVisible());
        QVERIFY(pane.answered());
    }

    void without_a_model_the_reason_is_said_and_the_text_is_kept() {
        Pane pane(false);
        pane.ask(QStringLiteral("hello"));
        QCOMPARE(pane.field()->toPlainText(), QStringLiteral("hello"));
        QCOMPARE(pane.chat->draft(), QStringLiteral("hello"));
        QVERIFY(!pane.button("sendButton")->isEnabled());
        QCOMPARE(pane.button("sendButton")->toolTip(), pane.chat->send_blocked_reason());
        auto* note = pane.view->findChild<QLabel*>(QStringLiteral("inputNote"));
        QCOMPARE(note->text(), pane.chat->send_blocked_reason());
    }

    void a_question_is_answered_on_screen() {
        Pane pane;
        pane.ask(QStringLiteral("hello there"));
        QVERIFY(pane.field()->toPlainText().isEmpty());
        QVERIFY(pane.answered());
        TranscriptLayout& shown = pane.view->transcript()->transcript();
        QCOMPARE(shown.count(), 2);
        pane.view->transcript()->relayout();
        QCOMPARE(shown.item(0).blocks()[0].text, QStringLiteral("hello there"));
        QVERIFY(shown.item(1).parsed() && !shown.item(1).data().live);
        QCOMPARE(shown.text(1), pane.chat->message(1).content);
        QVERIFY(!shown.item(1).data().stats.isEmpty());
        QTRY_VERIFY(pane.chat->draft().isEmpty());
    }

    void escape_stops_and_keeps_the_text() {
        Pane pane;
        pane.session.host()->set_paused(true);
        pane.ask(QStringLiteral("hello there"));
        QTRY_VERIFY(pane.chat->busy());
        QVERIFY(QTest::qWaitFor(
            [&] {
                pane.session.host()->step();
                return pane.chat->message(1).content.size() > 3;
            },
            30'000));
        QTRY_COMPARE(pane.button("sendButton")->accessibleName(), QStringLiteral("Stop the answer"));
        const QString text = pane.chat->message(1).content;
        QTest::keyClick(pane.field(), Qt::Key_Escape);
        pane.session.host()->step();
        QVERIFY(pane.answered());
        QVERIFY(pane.chat->message(1).state == MessageState::stopped);
        QVERIFY(pane.chat->message(1).content.startsWith(text));
    }

    void versions_of_an_answer() {
        Pane pane;
        pane.ask(QStringLiteral("hello there"));
        QVERIFY(pane.answered());
        pane.view->transcript()->act(1, MessageAction::regenerate);
        QVERIFY(pane.answered());
        TranscriptLayout& shown = pane.view->transcript()->transcript();
        QTRY_COMPARE(shown.item(1).data().version_count, 2);
        QCOMPARE(shown.item(1).data().version, 2);
        pane.view->transcript()->act(1, MessageAction::previous_version);
        QTRY_COMPARE(shown.item(1).data().version, 1);
    }

    void an_edited_question_is_answered_again() {
        Pane pane;
        pane.ask(QStringLiteral("hello there"));
        QVERIFY(pane.answered());
        Q_EMIT pane.view->transcript()->edit_submitted(0, QStringLiteral("good morning"));
        QVERIFY(pane.answered());
        TranscriptLayout& shown = pane.view->transcript()->transcript();
        QTRY_COMPARE(shown.count(), 2);
        QCOMPARE(shown.text(0), QStringLiteral("good morning"));
        QCOMPARE(shown.item(0).data().version_count, 2);
    }

    void two_views_show_one_chat() {
        Pane pane;
        auto second = pane.make_view();
        pane.session.host()->set_paused(true);
        pane.ask(QStringLiteral("hello there"));
        QTRY_COMPARE(second->transcript()->transcript().count(), 2);
        pane.view.reset();  // closing a view stops nothing
        QVERIFY(pane.chat->busy());
        pane.session.host()->set_paused(false);
        QVERIFY(pane.answered());
        QCOMPARE(second->transcript()->transcript().text(1), pane.chat->message(1).content);
        QVERIFY(second->input()->text().isEmpty());
    }

    void tokens_are_counted_while_typing() {
        Pane pane;
        QTest::keyClicks(pane.field(), QStringLiteral("hello"));
        auto* note = pane.view->findChild<QLabel*>(QStringLiteral("inputNote"));
        // A character is a token; the turn around it counts against what is left of 1,024.
        QTRY_VERIFY(note->text().startsWith(QStringLiteral("5 tokens")));
        QVERIFY(note->isVisible());
    }

    void leaving_the_tab_keeps_the_word_being_composed() {
        Pane pane;
        const QString word = QString::fromUtf8("注音");
        QInputMethodEvent preedit(word, {});
        QApplication::sendEvent(pane.field(), &preedit);
        pane.view->commit_input();
        QTRY_COMPARE(pane.chat->draft(), word);
    }

    void the_system_prompt_panel_closes_on_escape_and_is_kept() {
        Pane pane;
        pane.session.host()->set_paused(true);
        pane.ask(QStringLiteral("hello there"));
        QTRY_VERIFY(pane.chat->busy());
        QTest::mouseClick(pane.button("systemPromptButton"), Qt::LeftButton);
        auto* text = pane.view->findChild<TextField*>(QStringLiteral("systemPromptText"));
        QVERIFY(text->isVisible());
        QVERIFY(text->hasFocus());
        QTest::keyClicks(text, QStringLiteral("be brief"));
        QTest::keyClick(text, Qt::Key_Escape);
        QVERIFY(!text->isVisible());
        QCOMPARE(pane.chat->record().system_prompt, QStringLiteral("be brief"));
        QVERIFY(pane.chat->state() != ChatState::stopping);  // that Esc was the panel's
        pane.session.host()->set_paused(false);
        QVERIFY(pane.answered());
    }

    void sampling_belongs_to_the_chat() {
        Pane pane;
        QTest::mouseClick(pane.button("samplingButton"), Qt::LeftButton);
        auto* box = pane.view->findChild<QDoubleSpinBox*>(QStringLiteral("sampling_temperature"));
        QVERIFY(box->isVisible());
        box->setValue(0.7);
        QCOMPARE(pane.chat->record().sampling[QStringLiteral("temperature")].toDouble(), 0.7);
        QCOMPARE(pane.chat->effective_sampling().temperature, 0.7);
        QVERIFY(pane.button("samplingButton")->text().contains(QLocale().toString(0.7)));
    }

    void every_control_has_a_name_and_a_place_in_the_tab_order() {
        Pane pane;
        QStringList nameless;
        for (QWidget* widget : pane.view->findChildren<QWidget*>()) {
            if (!widget->isVisible() || !(widget->focusPolicy() & Qt::TabFocus)) continue;
            if (widget->objectName().isEmpty() || widget->accessibleName().isEmpty())
                nameless << QLatin1String(widget->metaObject()->className()) + u' ' + widget->objectName();
        }
        QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(u',')));
        QStringList order;
        pane.field()->setFocus();
        for (int i = 0; i < 6; ++i) {
            order << QApplication::focusWidget()->objectName();
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
        }
        for (const char* name : {"messageInput", "samplingButton", "systemPromptButton", "sharedStartButton"})
            QVERIFY2(order.contains(QLatin1String(name)), qPrintable(order.join(u',')));
    }
};

RECTO_TEST_CLASS(TestChatPane);
#include "test_chat_pane.moc"
