// The transcript as a person uses it: scrolling, selecting, keys, actions, links, editing, screen reader.
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>

#include "support/registry.h"
#include "ui/chat/message_editor.h"
#include "ui/chat/text_field.h"
#include "ui/chat/transcript_view.h"
#include "ui/theme/theme.h"
#include "window/test_chat_model.h"

using namespace recto::ui;
using namespace recto::test;

class TestChatTranscript : public QObject {
    Q_OBJECT
    Theme theme_;

    struct Pane {
        FakeTranscript model;
        TranscriptView view;
        Pane(Theme* theme, QList<FakeMessage> messages) : view(theme) {
            model.messages = std::move(messages);
            view.resize(800, 500);
            view.set_model(&model);
            view.show();
            if (!QTest::qWaitForWindowActive(&view)) qFatal("the window was not activated");
            view.setFocus();
            view.relayout();
        }
        QScrollBar* bar() { return view.verticalScrollBar(); }
        bool at_end() { return bar()->value() == bar()->maximum(); }
        QPoint point_of(TextPlace place) {
            const QRectF rect = view.transcript().place_rect(place);
            const QPoint column = view.message_rect(place.item).topLeft();
            const qreal top = view.transcript().item_top(place.item);
            return {int(column.x() + rect.left()), int(column.y() + rect.center().y() - top)};
        }
        QPoint point_of(int row, MessageAction action) {
            const MessageItem& item = view.transcript().item(row);
            for (const ActionBox& box : item.actions())
                if (box.action == action)
                    return view.message_rect(row).topLeft() + QPointF(0, item.footer_top()).toPoint() +
                           box.rect.center().toPoint();
            return {-1, -1};
        }
    };

    static QList<FakeMessage> long_chat() {
        QList<FakeMessage> list;
        for (int i = 0; i < 20; ++i) {
            list << FakeMessage{Role::user, QStringLiteral("question %1").arg(i)};
            list << FakeMessage{Role::assistant, mixed_answer(i)};
        }
        return list;
    }

  private Q_SLOTS:
    void it_opens_at_the_end_and_follows() {
        Pane pane(&theme_, long_chat());
        QVERIFY(pane.bar()->maximum() > 1000);
        QVERIFY(pane.at_end());
        pane.model.change(39, [](FakeMessage& m) { m.live = true; });
        const int before = pane.bar()->maximum();
        pane.model.append_text(39, mixed_answer(77));
        QTRY_VERIFY(pane.bar()->maximum() > before);
        QVERIFY(pane.at_end());
    }

    void a_reader_is_left_alone() {
        Pane pane(&theme_, long_chat());
        pane.model.change(39, [](FakeMessage& m) { m.live = true; });
        QTest::keyClick(&pane.view, Qt::Key_PageUp);
        QVERIFY(!pane.view.following());
        auto* button = pane.view.findChild<QPushButton*>(QStringLiteral("followButton"));
        QTRY_VERIFY(button->isVisible());
        const int value = pane.bar()->value(), maximum = pane.bar()->maximum();
        pane.model.append_text(39, mixed_answer(77));
        QTRY_VERIFY(pane.bar()->maximum() > maximum);
        QCOMPARE(pane.bar()->value(), value);
        QVERIFY(button->text().contains(QStringLiteral("new text")));
        QTest::mouseClick(button, Qt::LeftButton);
        QTRY_VERIFY(pane.at_end());
        QVERIFY(pane.view.following());
        QVERIFY(!button->isVisible());
    }

    void what_was_sent_is_shown() {
        Pane pane(&theme_, long_chat());
        pane.bar()->setValue(0);
        QVERIFY(!pane.view.following());
        pane.model.add({Role::user, QStringLiteral("new question")});
        QTRY_VERIFY(pane.at_end());
    }

    void another_version_keeps_the_place() {
        Pane pane(&theme_, long_chat());
        pane.bar()->setValue(pane.bar()->maximum() / 2);
        const int value = pane.bar()->value();
        pane.model.replace_tail(19, long_chat().mid(19));
        QTRY_COMPARE(pane.view.transcript().count(), 40);
        pane.view.relayout();
        QVERIFY(std::abs(pane.bar()->value() - value) <= 1);
    }

    void selection_reaches_over_messages() {
        Pane pane(&theme_, {{Role::user, QStringLiteral("first question")},
                            {Role::assistant, QStringLiteral("an answer with **bold** text")}});
        const QPoint from = pane.point_of({0, 0, 6}), to = pane.point_of({1, 0, 9});
        QTest::mousePress(pane.view.viewport(), Qt::LeftButton, {}, from);
        QTest::mouseMove(pane.view.viewport(), (from + to) / 2);
        QTest::mouseMove(pane.view.viewport(), to);
        QTest::mouseRelease(pane.view.viewport(), Qt::LeftButton, {}, to);
        QCOMPARE(pane.view.selected_text(), QStringLiteral("question\n\nan answer"));
        QTest::keySequence(&pane.view, QKeySequence::Copy);
        QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("question\n\nan answer"));
        QTest::keyClick(&pane.view, Qt::Key_Escape);
        QVERIFY(!pane.view.has_selection());
        QTest::mouseDClick(pane.view.viewport(), Qt::LeftButton, {}, pane.point_of({1, 0, 4}));
        QCOMPARE(pane.view.selected_text(), QStringLiteral("answer"));
    }

    void selection_by_keyboard() {
        Pane pane(&theme_, {{Role::user, QStringLiteral("ab")},
                            {Role::assistant, QString::fromUtf8("中文\n\nsecond")}});
        pane.view.focus_message(0);
        for (int i = 0; i < 4; ++i)
            QTest::keyClick(&pane.view, Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(pane.view.selected_text(), QString::fromUtf8("ab\n\n中"));
        QTest::keyClick(&pane.view, Qt::Key_Down, Qt::ShiftModifier);
        QVERIFY(pane.view.selected_text().startsWith(QString::fromUtf8("ab\n\n中文\n\n")));
        QTest::keySequence(&pane.view, QKeySequence::SelectAll);
        QCOMPARE(pane.view.selected_text(), QString::fromUtf8("ab\n\n中文\n\nsecond"));
    }

    void arrows_go_from_message_to_message_and_through_versions() {
        Pane pane(&theme_, long_chat());
        pane.model.change(38, [](FakeMessage& m) {
            m.version = 2;
            m.versions = 3;
        });
        pane.view.relayout();
        pane.view.focus_message(39);
        QTest::keyClick(&pane.view, Qt::Key_Up);
        while (pane.view.focused_message() == 39)
            QTest::keyClick(&pane.view, Qt::Key_Up);
        QCOMPARE(pane.view.focused_message(), 38);
        QSignalSpy version(&pane.view, &TranscriptView::version_requested);
        QTest::keyClick(&pane.view, Qt::Key_Left);
        QTest::keyClick(&pane.view, Qt::Key_Right);
        QCOMPARE(version.count(), 2);
        QCOMPARE(version[0], (QVariantList{38, 0}));
        QCOMPARE(version[1], (QVariantList{38, 2}));
    }

    void actions_under_an_answer() {
        FakeMessage answer{Role::assistant, QStringLiteral("the **answer**")};
        answer.version = 2;
        answer.versions = 2;
        answer.stats = QStringLiteral("prompt 12 tok");
        Pane pane(&theme_, {{Role::user, QStringLiteral("q")}, answer});
        QSignalSpy regenerate(&pane.view, &TranscriptView::regenerate_requested);
        QSignalSpy version(&pane.view, &TranscriptView::version_requested);
        const auto click = [&](MessageAction action) {
            QTest::mouseClick(pane.view.viewport(), Qt::LeftButton, {}, pane.point_of(1, action));
        };
        click(MessageAction::copy);
        QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("the **answer**"));
        click(MessageAction::regenerate);
        QCOMPARE(regenerate.count(), 1);
        click(MessageAction::previous_version);
        click(MessageAction::next_version);  // there is none: disabled
        QCOMPARE(version.count(), 1);
        QCOMPARE(version[0], (QVariantList{1, 0}));
        for (const ActionBox& box : pane.view.transcript().item(1).actions())
            QVERIFY(box.action == MessageAction::none || (box.rect.height() >= 24 && box.rect.width() >= 24));
        pane.view.set_busy(true);
        pane.view.relayout();
        click(MessageAction::regenerate);
        QCOMPARE(regenerate.count(), 1);
    }

    void code_is_copied_exactly() {
        const QString code = QStringLiteral("line\n").repeated(120);
        Pane pane(&theme_, {{Role::assistant, QStringLiteral("```py\n") + code + QStringLiteral("```\n")}});
        pane.bar()->setValue(0);
        const BlockLayout* block = pane.view.transcript().item(0).layout(0);
        QVERIFY(block);
        const QPoint at = pane.view.message_rect(0).topLeft() + block->copy_button().center().toPoint();
        QTest::mouseClick(pane.view.viewport(), Qt::LeftButton, {}, at);
        QCOMPARE(QApplication::clipboard()->text(), code);
    }

    void links_open_by_click_and_only_safe_ones() {
        Pane pane(&theme_,
                  {{Role::assistant, QStringLiteral("[good](https://example.org/a) [bad](javascript:x) "
                                                    "[file](file:///etc/passwd)")}});
        QSignalSpy opened(&pane.view, &TranscriptView::link_activated);
        for (const int offset : {1, 6, 10})
            QTest::mouseClick(pane.view.viewport(), Qt::LeftButton, {},
                              pane.point_of({0, 0, offset}) + QPoint(2, 0));
        QCOMPARE(opened.count(), 1);
        QCOMPARE(opened[0][0].toString(), QStringLiteral("https://example.org/a"));
        QVERIFY(TranscriptView::is_safe_address(QStringLiteral("mailto:a@example.org")));
        QVERIFY(!TranscriptView::is_safe_address(QStringLiteral("https:")));
        QVERIFY(!TranscriptView::is_safe_address(QStringLiteral("//example.org")));
    }

    void editing_in_place() {
        Pane pane(&theme_, {{Role::user, QStringLiteral("old question")},
                            {Role::assistant, QStringLiteral("old *answer*")}});
        QSignalSpy edited(&pane.view, &TranscriptView::edit_submitted);
        for (const int row : {0, 1}) {
            pane.view.edit_message(row);
            auto* editor = pane.view.findChild<MessageEditor*>();
            QVERIFY(editor && editor->isVisible());
            QCOMPARE(editor->field()->toPlainText(), pane.model.messages[row].text);
            editor->field()->setPlainText(QStringLiteral("new"));
            QTest::keyClick(editor->field(), Qt::Key_Return, Qt::ControlModifier);
            QCOMPARE(edited.count(), row + 1);
            QCOMPARE(edited.back(), (QVariantList{row, QStringLiteral("new")}));
            QVERIFY(!pane.view.editing());
            QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        }
        pane.view.edit_message(1);
        QTest::keyClick(pane.view.findChild<MessageEditor*>()->field(), Qt::Key_Escape);
        QVERIFY(!pane.view.editing());
        QCOMPARE(edited.count(), 2);
    }

    void rows_not_loaded_are_asked_for() {
        QList<FakeMessage> messages = long_chat();
        for (FakeMessage& m : messages)
            m.loaded = false;
        FakeTranscript model;
        model.messages = messages;
        TranscriptView view(&theme_);
        QSignalSpy needed(&view, &TranscriptView::rows_needed);
        view.resize(800, 500);
        view.set_model(&model);
        view.show();
        QTRY_VERIFY(needed.count() > 0);
        QCOMPARE(needed[0][1].toInt(), 39);
        QVERIFY(needed[0][0].toInt() > 20);  // not the whole chat
        for (int row = 30; row < 40; ++row)
            model.change(row, [](FakeMessage& m) { m.loaded = true; });
        QTRY_VERIFY(view.transcript().item(39).parsed());
    }

    void a_hidden_view_does_no_work_and_catches_up() {
        Pane pane(&theme_, {{Role::user, QStringLiteral("q")},
                            {Role::assistant, QStringLiteral("start"), true, true}});
        pane.view.hide();
        pane.model.append_text(1, QStringLiteral(" and more"));
        QCoreApplication::processEvents();
        QCOMPARE(pane.view.transcript().item(1).text_length(0), 5);
        pane.view.show();
        QTRY_COMPARE(pane.view.transcript().item(1).text_length(0), 14);
    }

    void a_picture_has_no_holes() {
        Pane pane(&theme_, {{Role::user, QStringLiteral("q")},
                            {Role::assistant, QStringLiteral("start"), true, true}});
        pane.model.append_text(1, QStringLiteral(" and more"));
        const QImage at_once = pane.view.viewport()->grab().toImage();  // before the event loop turns
        QVERIFY(pane.view.transcript().item(1).layout(0));
        pane.view.relayout();
        QVERIFY(at_once == pane.view.viewport()->grab().toImage());
    }

    void a_screen_reader_finds_a_list_of_messages() {
        Pane pane(&theme_,
                  {{Role::user, QStringLiteral("why?")}, {Role::assistant, QStringLiteral("because")}});
        QAccessibleInterface* list = QAccessible::queryAccessibleInterface(&pane.view);
        QVERIFY(list);
        QVERIFY(list->role() == QAccessible::List);
        QVERIFY(!list->text(QAccessible::Name).isEmpty());
        QCOMPARE(list->childCount(), 2);
        QAccessibleInterface* answer = list->child(1);
        QVERIFY(answer->role() == QAccessible::ListItem);
        QVERIFY(answer->text(QAccessible::Name).contains(QStringLiteral("because")));
        QVERIFY(list->child(0)->text(QAccessible::Name).startsWith(QStringLiteral("You")));
        QCOMPARE(answer->parent(), list);
        QCOMPARE(list->indexOfChild(answer), 1);
        answer->actionInterface()->doAction(QAccessibleActionInterface::setFocusAction());
        QCOMPARE(pane.view.focused_message(), 1);
        QVERIFY(answer->state().focused);
    }

    // From the model to the first painted picture.
    void a_300k_token_chat_is_painted_at_once() {
        FakeTranscript model;
        for (int i = 0; i < 300; ++i) {
            model.messages << FakeMessage{Role::user, QStringLiteral("question %1").arg(i)};
            model.messages << FakeMessage{Role::assistant, mixed_answer(i).repeated(7)};
        }
        qsizetype characters = 0;
        for (const FakeMessage& m : model.messages)
            characters += m.text.size();
        QVERIFY(characters > 1'100'000);
        TranscriptView view(&theme_);
        view.resize(800, 800);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        QElapsedTimer timer;
        timer.start();
        view.set_model(&model);
        view.relayout();
        const QImage picture = view.grab().toImage();
        qInfo("300,000 tokens: %.1f ms from the model to the first picture",
              double(timer.nsecsElapsed()) / 1e6);
        QVERIFY(timer.elapsed() < 300);
        QVERIFY(!picture.isNull());
    }

    void zoom_and_theme_switch_live() {
        Theme theme;
        Pane pane(&theme, long_chat());
        const qreal before = pane.view.transcript().total_height();
        theme.set_zoom(1.5);
        QTRY_VERIFY(pane.view.transcript().total_height() > before * 1.2);
        QVERIFY(pane.at_end());
        theme.set_zoom(1.0);
    }
};

RECTO_TEST_CLASS(TestChatTranscript);
#include "test_chat_transcript.moc"
