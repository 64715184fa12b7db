#include "ui/chat/composition_guard.h"

#include <QApplication>
#include <QInputMethod>
#include <QInputMethodEvent>
#include <QKeyEvent>
#include <QWidget>
#include <utility>

namespace recto::ui {

namespace {

bool belongs_to_input_method(int key) {
    switch (key) {
        case Qt::Key_Return:
        case Qt::Key_Enter:
        case Qt::Key_Escape:
        case Qt::Key_Tab:
        case Qt::Key_Backtab:
        case Qt::Key_Space:
        case Qt::Key_Left:
        case Qt::Key_Right:
        case Qt::Key_Up:
        case Qt::Key_Down:
        case Qt::Key_PageUp:
        case Qt::Key_PageDown:
        case Qt::Key_Home:
        case Qt::Key_End:
        case Qt::Key_Backspace:
        case Qt::Key_Delete:
            return true;
        default:
            return key >= Qt::Key_0 && key <= Qt::Key_9;
    }
}

}  // namespace

CompositionGuard::CompositionGuard(QWidget* field) : QObject(field), field_(field) {
    field->installEventFilter(this);
    wait_.setSingleShot(true);
    wait_.setInterval(longest_wait_ms);
    connect(&wait_, &QTimer::timeout, this, [this] {
        // The input method did not answer. Its word must not be lost, nor come twice.
        const QString word = std::exchange(preedit_, {});
        QInputMethodEvent commit;
        commit.setCommitString(word);
        if (field_) QApplication::sendEvent(field_, &commit);
        QGuiApplication::inputMethod()->reset();
        finish_waiting();
    });
}

bool CompositionGuard::swallows(const QKeyEvent& key) const {
    constexpr auto others = Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier;
    const bool plain = !(key.modifiers() & others);
    const bool is_return = key.key() == Qt::Key_Return || key.key() == Qt::Key_Enter;
    if (composing()) return plain && belongs_to_input_method(key.key());
    return just_committed_ && is_return && plain;
}

bool CompositionGuard::eventFilter(QObject* watched, QEvent* event) {
    if (watched != field_) return false;
    switch (event->type()) {
        case QEvent::InputMethod: {
            const auto* input = static_cast<QInputMethodEvent*>(event);
            take_event(input->preeditString(), !input->commitString().isEmpty());
            return false;
        }
        case QEvent::ShortcutOverride:
            if (!swallows(*static_cast<QKeyEvent*>(event))) return false;
            event->accept();
            return true;
        case QEvent::KeyPress:
            if (!swallows(*static_cast<QKeyEvent*>(event))) return false;
            event->accept();
            return true;
        case QEvent::FocusOut:
            if (composing()) commit_then([] {});
            return false;
        default:
            return false;
    }
}

void CompositionGuard::take_event(const QString& preedit, bool commits) {
    const bool was = composing();
    preedit_ = preedit;
    if (commits) {
        just_committed_ = true;
        QTimer::singleShot(0, this, [this] { just_committed_ = false; });
    }
    if (was != composing()) Q_EMIT composing_changed(composing());
    // The field itself has not seen the event yet.
    if (!composing() && then_) QTimer::singleShot(0, this, [this] { finish_waiting(); });
}

void CompositionGuard::commit_then(std::function<void()> then) {
    if (then_) {  // already waiting: one after the other
        then_ = [first = std::exchange(then_, {}), then = std::move(then)] {
            first();
            then();
        };
        return;
    }
    if (composing()) QGuiApplication::inputMethod()->commit();
    if (!composing()) return then();
    then_ = std::move(then);
    wait_.start();
}

void CompositionGuard::finish_waiting() {
    if (composing()) return;
    wait_.stop();
    if (const auto then = std::exchange(then_, {})) then();
}

}  // namespace recto::ui
