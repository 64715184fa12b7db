#include "ui/chat/text_field.h"

#include <QAbstractTextDocumentLayout>
#include <QGuiApplication>
#include <QInputMethod>
#include <QKeyEvent>
#include <QMimeData>
#include <QTextBlock>
#include <cmath>

namespace recto::ui {

TextField::TextField(QWidget* parent) : QPlainTextEdit(parent), guard_(new CompositionGuard(this)) {
    setTabChangesFocus(true);
    setLineWrapMode(QPlainTextEdit::WidgetWidth);
    setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    connect(this, &QPlainTextEdit::textChanged, this, &TextField::height_wanted);
    connect(guard_, &CompositionGuard::composing_changed, this, &TextField::height_wanted);
}

bool TextField::is_blank() const {
    return !guard_->composing() && toPlainText().trimmed().isEmpty();
}

bool TextField::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride && cancels_ &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        event->accept();
        return true;
    }
    return QPlainTextEdit::event(event);
}

void TextField::keyPressEvent(QKeyEvent* event) {
    const bool is_return = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    const auto modifiers = event->modifiers() & ~Qt::KeypadModifier;
    if (is_return && submits_) {
        const bool sends = send_key_ == SendKey::enter
                               ? modifiers == Qt::NoModifier || modifiers == Qt::ControlModifier
                               : modifiers == Qt::ControlModifier;
        if (sends) {
            event->accept();
            Q_EMIT submitted();
            return;
        }
        const bool breaks = modifiers == Qt::ShiftModifier || modifiers == Qt::NoModifier;
        if (!breaks) return event->ignore();  // Alt+Enter and the like are the window's
        textCursor().insertBlock();
        ensureCursorVisible();
        return;
    }
    if (event->key() == Qt::Key_Escape) {
        if (!cancels_) return event->ignore();
        event->accept();
        Q_EMIT cancelled();
        return;
    }
    if (event->key() == Qt::Key_Up && modifiers == Qt::NoModifier && !has_text()) {
        Q_EMIT up_in_empty();
        return;
    }
    QPlainTextEdit::keyPressEvent(event);
}

bool TextField::canInsertFromMimeData(const QMimeData* source) const {
    return source->hasText() && !source->hasUrls();  // files dropped here are the window's
}

void TextField::insertFromMimeData(const QMimeData* source) {
    const QString text = source->text();
    const bool large = text.size() > large_paste_characters || text.count(u'\n') >= large_paste_lines;
    if (large && hands_out_pastes_)
        Q_EMIT large_paste(text);
    else
        insertPlainText(text);
    ensureCursorVisible();
}

int TextField::height_for_lines(int lines) const {
    // A line with Chinese characters may be higher than the font's own: ask the first one, too.
    const QTextBlock first = document()->firstBlock();
    const qreal shown = blockBoundingRect(first).height() / std::max(1, first.lineCount());
    const qreal line = std::max(QFontMetricsF(font()).lineSpacing(), shown);
    const QMargins margins = contentsMargins() + viewportMargins();
    return int(std::ceil(line * lines + 2 * document()->documentMargin())) + 1 + margins.top() +
           margins.bottom();
}

int TextField::height_for_text() const {
    // QPlainTextDocumentLayout counts its height in lines.
    return height_for_lines(std::max(1, int(document()->documentLayout()->documentSize().height())));
}

void TextField::resizeEvent(QResizeEvent* event) {
    QPlainTextEdit::resizeEvent(event);
    if (event->oldSize().width() != event->size().width()) Q_EMIT height_wanted();
}

void TextField::scrollContentsBy(int dx, int dy) {
    QPlainTextEdit::scrollContentsBy(dx, dy);
    // Or the candidate window stays where the line was.
    if (hasFocus()) QGuiApplication::inputMethod()->update(Qt::ImCursorRectangle);
}

}  // namespace recto::ui
