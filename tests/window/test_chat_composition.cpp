// Input methods, by synthetic QInputMethodEvent sequences. What is expected are the rules in
// composition_guard.h; that a stock QPlainTextEdit breaks them is checked first, so that the tests can fail.
#include <QApplication>
#include <QClipboard>
#include <QInputMethodEvent>
#include <QPushButton>
#include <QShortcut>
#include <QSignalSpy>
#include <QTest>

#include "support/registry.h"
#include "ui/chat/input_box.h"
#include "ui/theme/theme.h"

using namespace recto::ui;

namespace {

void preedit(QWidget* field, const QString& text) {
    QInputMethodEvent event(text, {});
    QApplication::sendEvent(field, &event);
}

void commit(QWidget* field, const QString& text) {
    QInputMethodEvent event;
    event.setCommitString(text);
    QApplication::sendEvent(field, &event);
}

const QString zhuyin = QString::fromUtf8("ㄓㄨ");
const QString word = QString::fromUtf8("注音");

}  // namespace

class TestChatComposition : public QObject {
    Q_OBJECT
    Theme theme_;

    struct Pane {
        InputBox input;
        QSignalSpy sent{&input, &InputBox::send_requested};
        explicit Pane(Theme* theme) : input(theme) {
            input.resize(700, 200);
            input.set_pane_height(600);
            input.show();
            if (!QTest::qWaitForWindowActive(&input)) qFatal("the window was not activated");
            input.field()->setFocus();
        }
        TextField* field() { return input.field(); }
    };

  private Q_SLOTS:
    void a_stock_field_loses_the_word() {
        QPlainTextEdit stock;
        stock.show();
        preedit(&stock, zhuyin);
        QVERIFY(stock.toPlainText().isEmpty());
        QVERIFY(stock.document()->isEmpty());  // the trap of "when the input is empty"
        QTest::keyClick(&stock, Qt::Key_Return);
        QCOMPARE(stock.toPlainText(), QStringLiteral("\n"));
    }

    void return_while_composing_never_sends() {
        Pane pane(&theme_);
        QTest::keyClicks(pane.field(), QStringLiteral("a"));
        preedit(pane.field(), zhuyin);
        QVERIFY(pane.field()->guard().composing());
        for (const auto key : {Qt::Key_Return, Qt::Key_Enter})
            QTest::keyClick(pane.field(), key);
        QTest::keyClick(pane.field(), Qt::Key_Return, Qt::ShiftModifier);
        QCOMPARE(pane.sent.count(), 0);
        QCOMPARE(pane.field()->toPlainText(), QStringLiteral("a"));
        QVERIFY(pane.field()->guard().composing());  // the word is still there
        commit(pane.field(), word);
        QCOMPARE(pane.field()->toPlainText(), QStringLiteral("a") + word);
    }

    void return_right_behind_a_commit_is_swallowed_once() {
        Pane pane(&theme_);
        preedit(pane.field(), zhuyin);
        commit(pane.field(), word);
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QCOMPARE(pane.sent.count(), 0);
        QCOMPARE(pane.field()->toPlainText(), word);
        QCoreApplication::processEvents();  // the flag lasts until the event loop turns
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QTRY_COMPARE(pane.sent.count(), 1);
        QCOMPARE(pane.sent[0][0].toString(), word);
    }

    void candidate_keys_start_no_shortcut() {
        Pane pane(&theme_);
        QSignalSpy recall(&pane.input, &InputBox::recall_requested);
        int fired = 0;
        QList<QShortcut*> shortcuts;
        const auto keys = {Qt::Key_Escape, Qt::Key_Up,       Qt::Key_Left, Qt::Key_Space,
                           Qt::Key_3,      Qt::Key_PageDown, Qt::Key_Tab};
        for (const auto key : keys) {
            shortcuts << new QShortcut(QKeySequence(key), &pane.input);
            connect(shortcuts.back(), &QShortcut::activated, this, [&fired] { ++fired; });
        }
        preedit(pane.field(), zhuyin);
        for (const auto key : keys)
            QTest::keyClick(pane.field(), key);
        QCOMPARE(fired, 0);
        QCOMPARE(recall.count(), 0);
        QVERIFY(pane.field()->hasFocus());
        preedit(pane.field(), {});
        QTest::keyClick(pane.field(), Qt::Key_Escape);
        QCOMPARE(fired, 1);  // without a composition the window has its keys again
        qDeleteAll(shortcuts);
        QTest::keyClick(pane.field(), Qt::Key_Up);
        QCOMPARE(recall.count(), 1);
    }

    void the_send_button_waits_for_the_word() {
        Pane pane(&theme_);
        auto* button = pane.input.findChild<QPushButton*>(QStringLiteral("sendButton"));
        QVERIFY(!button->isEnabled());
        preedit(pane.field(), zhuyin);
        QVERIFY(button->isEnabled());  // a word being composed is something to send
        button->click();
        QCOMPARE(pane.sent.count(), 0);
        commit(pane.field(), word);  // the input method answers late
        QTRY_COMPARE(pane.sent.count(), 1);
        QCOMPARE(pane.sent[0][0].toString(), word);
    }

    void an_input_method_that_never_answers_loses_nothing() {
        Pane pane(&theme_);
        preedit(pane.field(), word);
        pane.input.findChild<QPushButton*>(QStringLiteral("sendButton"))->click();
        QTRY_COMPARE(pane.sent.count(), 1);
        QCOMPARE(pane.sent[0][0].toString(), word);
    }

    void enter_sends_and_shift_enter_breaks() {
        Pane pane(&theme_);
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QTest::keyClicks(pane.field(), QStringLiteral("  "));
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QCOMPARE(pane.sent.count(), 0);  // blank
        pane.input.set_text(QStringLiteral("one"));
        QTest::keyClick(pane.field(), Qt::Key_Return, Qt::ShiftModifier);
        QTest::keyClicks(pane.field(), QStringLiteral("two"));
        QTest::keyClick(pane.field(), Qt::Key_Enter, Qt::KeypadModifier);
        QCOMPARE(pane.sent.count(), 1);
        QCOMPARE(pane.sent[0][0].toString(), QStringLiteral("one\ntwo"));
    }

    void the_keys_can_be_swapped() {
        Pane pane(&theme_);
        pane.input.set_send_key(SendKey::ctrl_enter);
        pane.input.set_text(QStringLiteral("one"));
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QCOMPARE(pane.sent.count(), 0);
        QCOMPARE(pane.field()->toPlainText(), QStringLiteral("one\n"));
        QTest::keyClick(pane.field(), Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(pane.sent.count(), 1);
    }

    void busy_keeps_the_text_and_stops_by_button() {
        Pane pane(&theme_);
        QSignalSpy stopped(&pane.input, &InputBox::stop_requested);
        pane.input.set_text(QStringLiteral("next"));
        pane.input.set_busy(true, false);
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QCOMPARE(pane.sent.count(), 0);
        QCOMPARE(stopped.count(), 0);
        QCOMPARE(pane.input.text(), QStringLiteral("next"));
        pane.input.findChild<QPushButton*>(QStringLiteral("sendButton"))->click();
        QCOMPARE(stopped.count(), 1);
    }

    void a_disabled_send_says_why() {
        Pane pane(&theme_);
        auto* button = pane.input.findChild<QPushButton*>(QStringLiteral("sendButton"));
        QVERIFY(!button->toolTip().isEmpty());
        pane.input.set_text(QStringLiteral("x"));
        pane.input.set_blocked_reason(QStringLiteral("No model is loaded."));
        QVERIFY(!button->isEnabled());
        QCOMPARE(button->toolTip(), QStringLiteral("No model is loaded."));
        QCOMPARE(button->accessibleDescription(), QStringLiteral("No model is loaded."));
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QCOMPARE(pane.sent.count(), 0);
    }

    void the_field_grows_to_two_fifths_of_the_pane() {
        Pane pane(&theme_);
        const int one = pane.field()->height();
        pane.input.set_text(QStringLiteral("a\nb\nc"));
        QVERIFY(pane.field()->height() > 2 * one);
        pane.input.set_text(QStringLiteral("x\n").repeated(90));
        QVERIFY(pane.field()->height() <= 600 * 2 / 5);
        QVERIFY(pane.field()->height() > 150);
    }

    void a_long_paste_is_a_chip_with_the_same_text() {
        Pane pane(&theme_);
        const QString pasted = QStringLiteral("word ").repeated(1000);
        pane.field()->setFocus();
        QApplication::clipboard()->setText(pasted);
        pane.field()->paste();
        QVERIFY(pane.field()->toPlainText().isEmpty());
        QCOMPARE(pane.input.chips().size(), 1);
        QCOMPARE(pane.input.text(), pasted);
        QTest::keyClicks(pane.field(), QStringLiteral("sum up"));
        QTest::keyClick(pane.field(), Qt::Key_Return);
        QCOMPARE(pane.sent.count(), 1);
        QCOMPARE(pane.sent[0][0].toString(), pasted + QStringLiteral("\n\nsum up"));
        auto* keep = pane.input.findChild<QPushButton*>(QStringLiteral("chipInline0"));
        QVERIFY(keep);
        keep->click();
        QVERIFY(pane.input.chips().isEmpty());
        QVERIFY(pane.field()->toPlainText().contains(pasted.trimmed()));
    }

    void the_context_meter_warns_in_words() {
        QVERIFY(context_level({1600, 2048, 0}) == ContextLevel::normal);       // 78 %
        QVERIFY(context_level({1639, 2048, 0}) == ContextLevel::nearly_full);  // 80 %
        QVERIFY(context_level({1946, 2048, 0}) == ContextLevel::full);         // 95 %
        QVERIFY(context_text({1639, 2048, 0}).contains(QStringLiteral("nearly full")));
        QVERIFY(context_text({1946, 2048, 0}).contains(QStringLiteral("full soon")));
    }
};

RECTO_TEST_CLASS(TestChatComposition);
#include "test_chat_composition.moc"
