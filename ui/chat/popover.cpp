#include "ui/chat/popover.h"

#include <QApplication>
#include <QKeyEvent>
#include <QPainter>
#include <QVBoxLayout>

#include "ui/theme/theme.h"

namespace recto::ui {

Popover::Popover(Theme* theme, QWidget* window_area)
    : QFrame(window_area), theme_(theme), column_(new QVBoxLayout(this)) {
    const Metrics& m = theme->palette().metrics;
    column_->setContentsMargins(m.pad, m.pad, m.pad, m.pad);
    column_->setSpacing(m.gap);
    hide();
    connect(theme_, &Theme::changed, this, [this] { update(); });
}

void Popover::toggle_above(QWidget* button) {
    if (isVisible()) return close_popover();
    button_ = button;
    Q_EMIT opened();
    place();
    show();
    raise();
    for (QWidget* child = nextInFocusChain(); isAncestorOf(child); child = child->nextInFocusChain()) {
        if (!(child->focusPolicy() & Qt::TabFocus) || !child->isEnabled()) continue;
        child->setFocus(Qt::PopupFocusReason);
        break;
    }
    qApp->installEventFilter(this);
}

void Popover::place() {
    if (!button_ || !parentWidget()) return;
    adjustSize();
    const QPoint corner = button_->mapTo(parentWidget(), QPoint(button_->width(), 0));
    resize(width(), std::min(height(), std::max(80, corner.y() - 12)));
    const int x = std::clamp(corner.x() - width(), 4, std::max(4, parentWidget()->width() - width() - 4));
    move(x, std::max(4, corner.y() - height() - 8));
}

void Popover::close_popover() {
    if (!isVisible()) return;
    qApp->removeEventFilter(this);
    const bool had_focus = isAncestorOf(QApplication::focusWidget());
    Q_EMIT closed();
    hide();
    if (had_focus && button_) button_->setFocus(Qt::PopupFocusReason);
}

void Popover::watch(QWidget* child) {
    child->installEventFilter(this);
}

bool Popover::eventFilter(QObject* watched, QEvent* event) {
    auto* widget = qobject_cast<QWidget*>(watched);
    if (!widget || !isVisible()) return false;
    if (event->type() == QEvent::ShortcutOverride && isAncestorOf(widget) &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        event->accept();  // the window's Esc stops an answer; this one closes the panel
        return false;
    }
    if (event->type() == QEvent::MouseButtonPress && widget->window() == window() && widget != this &&
        !isAncestorOf(widget) && widget != button_)
        close_popover();
    if (event->type() == QEvent::Resize && watched == parentWidget()) place();
    return false;
}

void Popover::keyPressEvent(QKeyEvent* event) {
    if (event->key() != Qt::Key_Escape) return QFrame::keyPressEvent(event);
    event->accept();
    close_popover();
}

void Popover::paintEvent(QPaintEvent*) {
    const Palette& palette = theme_->palette();
    QPainter painter(this);
    painter.fillRect(rect(), palette.background);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(palette.line);
    painter.setBrush(palette.panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), palette.metrics.card_radius,
                            palette.metrics.card_radius);
}

}  // namespace recto::ui
