#include "ui/panel/event_list.h"

#include <QLocale>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>

#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

constexpr int shown_rows = 6;

}  // namespace

EventList::EventList(const Theme* theme, PoolEventModel* model, QWidget* parent)
    : QAbstractScrollArea(parent), theme_(theme), model_(model) {
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(theme, &Theme::changed, this, [this] {
        updateGeometry();
        update_range();
    });
}

int EventList::row_height() const {
    return QFontMetrics(theme_->palette().fonts.small).height() + 3;
}

QSize EventList::sizeHint() const {
    return {200, shown_rows * row_height()};
}

void EventList::refresh() {
    const int rows = model_->rowCount();
    QScrollBar* bar = verticalScrollBar();
    const int before = bar->value();
    const int added = rows - known_rows_;
    known_rows_ = rows;
    update_range();
    // Newest on top: who reads further down keeps the line being read.
    if (before > 0 && added > 0) bar->setValue(before + added * row_height());
    viewport()->update();
}

QString EventList::line(int from_newest) const {
    const int row = model_->rowCount() - 1 - from_newest;
    if (row < 0) return {};
    const PoolEvent& event = model_->event(row);
    return tr("step %1  %2").arg(QLocale().toString(qulonglong(event.step)), model_->sentence(event));
}

void EventList::update_range() {
    const int content = known_rows_ * row_height();
    verticalScrollBar()->setSingleStep(row_height());
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setRange(0, std::max(0, content - viewport()->height()));
}

void EventList::paintEvent(QPaintEvent*) {
    const Palette& palette = theme_->palette();
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), palette.panel);
    painter.setFont(palette.fonts.small);
    painter.setPen(palette.dim);
    const QFontMetrics metrics(palette.fonts.small);
    const int height = row_height(), offset = verticalScrollBar()->value(), width = viewport()->width();
    for (int i = offset / height; i < known_rows_ && i * height - offset < viewport()->height(); ++i)
        painter.drawText(QRect(0, i * height - offset, width, height), Qt::AlignLeft | Qt::AlignVCenter,
                         metrics.elidedText(line(i), Qt::ElideRight, width));
    if (known_rows_ == 0)
        painter.drawText(QRect(0, 0, width, height), Qt::AlignLeft | Qt::AlignVCenter, tr("nothing yet"));
    if (hasFocus()) {
        painter.setPen(QPen(palette.focus, 1));
        painter.drawRect(viewport()->rect().adjusted(0, 0, -1, -1));
    }
}

void EventList::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    update_range();
}

void EventList::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
}

void EventList::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

}  // namespace recto::ui
