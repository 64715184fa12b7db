#include "ui/chat_tab_bar.h"

#include <QContextMenuEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolButton>

#include "ui/icons.h"
#include "ui/owner_dot.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

constexpr int side_pad = 14;
constexpr int dot_gap = 8;
constexpr int close_size = 20;
constexpr int widest_tab = 230;

}  // namespace

ChatTabBar::ChatTabBar(const Theme* theme, QWidget* parent) : QTabBar(parent), theme_(theme) {
    setObjectName(QStringLiteral("chat_tabs"));
    setDrawBase(false);
    setExpanding(false);
    setMovable(true);
    setUsesScrollButtons(true);
    setElideMode(Qt::ElideRight);
    setFocusPolicy(Qt::TabFocus);
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
}

int ChatTabBar::add_chat(ChatId id) {
    looks_.insert(id, {id, false, {}});
    const int index = addTab(QString());
    setTabData(index, QVariant::fromValue<qlonglong>(id));
    add_close_button(index);
    return index;
}

int ChatTabBar::index_of(ChatId id) const {
    for (int i = 0; i < count(); ++i)
        if (chat_at(i) == id) return i;
    return -1;
}

ChatId ChatTabBar::chat_at(int index) const {
    return ChatId(tabData(index).toLongLong());
}

void ChatTabBar::describe(ChatId id, const QString& title, const QString& state, bool has_color,
                          OwnerStyle style) {
    const int index = index_of(id);
    if (index < 0) return;
    looks_.insert(id, {id, has_color, style});
    if (tabText(index) != title) {
        setTabText(index, title);
        updateGeometry();
    }
    setTabToolTip(index, title + QLatin1Char('\n') + state);
    setAccessibleTabName(index, tr("%1, %2").arg(title, state));
    update(tabRect(index));
}

ChatTabBar::Look ChatTabBar::look(int index) const {
    return looks_.value(chat_at(index));
}

void ChatTabBar::add_close_button(int index) {
    auto* button = new QToolButton(this);
    button->setObjectName(QStringLiteral("tab_close"));
    button->setIcon(make_icon(QStringLiteral("close"), theme_->palette().dim));
    button->setFixedSize(close_size, close_size);
    button->setFocusPolicy(Qt::NoFocus);  // Ctrl+W closes; the bar itself is the stop for Tab
    button->setToolTip(tr("Close tab (Ctrl+W)"));
    button->setAccessibleName(tr("Close tab"));
    connect(button, &QToolButton::clicked, this, [this, button] {
        for (int i = 0; i < count(); ++i)
            if (tabButton(i, QTabBar::RightSide) == button) {
                Q_EMIT close_wanted(i);
                return;
            }
    });
    setTabButton(index, QTabBar::RightSide, button);
}

// QTabBar's own hint is that of a bar without tabs until it is laid out again.
QSize ChatTabBar::sizeHint() const {
    int width = 0;
    for (int i = 0; i < count(); ++i)
        width += tabSizeHint(i).width();
    return {width, minimumSizeHint().height()};
}

QSize ChatTabBar::minimumSizeHint() const {
    return {0, QFontMetrics(theme_->palette().fonts.body).height() + 17};
}

void ChatTabBar::tabInserted(int index) {
    QTabBar::tabInserted(index);
    updateGeometry();
}

void ChatTabBar::tabRemoved(int index) {
    QTabBar::tabRemoved(index);
    updateGeometry();
}

QSize ChatTabBar::tabSizeHint(int index) const {
    const Palette& p = theme_->palette();
    const QFontMetrics metrics(p.fonts.body);
    const int text = metrics.horizontalAdvance(tabText(index)) + 2;
    const int width = side_pad + p.metrics.dot + dot_gap + text + 4 + close_size + 6;
    return {std::min(width, int(widest_tab * p.zoom)), metrics.height() + 17};
}

QSize ChatTabBar::minimumTabSizeHint(int index) const {
    return {std::min(tabSizeHint(index).width(), 110), tabSizeHint(index).height()};
}

void ChatTabBar::paintEvent(QPaintEvent*) {
    const Palette& p = theme_->palette();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing, true);
    for (int i = 0; i < count(); ++i) {
        const QRect box = tabRect(i);
        const bool open = i == currentIndex();
        const Look mark = look(i);
        painter.fillRect(box, open ? p.background : p.panel);
        if (open) {
            const QColor stripe = mark.has_color ? p.hues[std::size_t(mark.style.hue)] : p.accent;
            painter.fillRect(QRect(box.left(), box.top(), box.width(), 2), stripe);
        }
        painter.fillRect(QRect(box.right(), box.top(), 1, box.height()), p.line);
        int x = box.left() + side_pad;
        if (mark.has_color) {
            const QRectF dot(x, box.center().y() - p.metrics.dot / 2, p.metrics.dot, p.metrics.dot);
            paint_owner_dot(painter, dot, mark.style.hue, mark.style.pattern, p);
            x += p.metrics.dot + dot_gap;
        }
        const QRect text(x, box.top(), box.right() - close_size - 8 - x, box.height());
        painter.setFont(p.fonts.body);
        painter.setPen(open ? p.text : p.dim);
        painter.drawText(text, Qt::AlignLeft | Qt::AlignVCenter,
                         QFontMetrics(p.fonts.body).elidedText(tabText(i), Qt::ElideRight, text.width()));
        if (open && hasFocus()) {
            painter.setPen(QPen(p.focus, 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(box.adjusted(3, 4, -4, -4));
        }
    }
}

void ChatTabBar::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() == Qt::MiddleButton) {
        const int index = tabAt(event->position().toPoint());
        if (index >= 0) Q_EMIT close_wanted(index);
        return;
    }
    QTabBar::mouseReleaseEvent(event);
}

void ChatTabBar::contextMenuEvent(QContextMenuEvent* event) {
    const int index = event->reason() == QContextMenuEvent::Keyboard ? currentIndex() : tabAt(event->pos());
    if (index >= 0) Q_EMIT menu_wanted(index, event->globalPos());
}

void ChatTabBar::changeEvent(QEvent* event) {
    QTabBar::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    setAccessibleName(tr("Open chats"));
    for (int i = 0; i < count(); ++i)
        if (QWidget* button = tabButton(i, QTabBar::RightSide)) {
            button->setToolTip(tr("Close tab (Ctrl+W)"));
            button->setAccessibleName(tr("Close tab"));
        }
}

void ChatTabBar::restyle() {
    setFont(theme_->palette().fonts.body);
    setAccessibleName(tr("Open chats"));
    for (int i = 0; i < count(); ++i)
        if (auto* button = qobject_cast<QToolButton*>(tabButton(i, QTabBar::RightSide)))
            button->setIcon(make_icon(QStringLiteral("close"), theme_->palette().dim));
    updateGeometry();
    update();
}

}  // namespace recto::ui
