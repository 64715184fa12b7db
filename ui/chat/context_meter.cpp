#include "ui/chat/context_meter.h"

#include <QEvent>
#include <QLocale>
#include <algorithm>
#include <cmath>

#include "ui/theme/theme.h"

namespace recto::ui {

namespace {
constexpr qreal bar_width = 130, least_bar_width = 56, bar_height = 4, bar_gap = 10;
}

ContextLevel context_level(const ContextUse& use) {
    if (use.limit <= 0 || use.used * 100LL < use.limit * 80LL) return ContextLevel::normal;
    return use.used * 100LL < use.limit * 95LL ? ContextLevel::nearly_full : ContextLevel::full;
}

QString context_text(const ContextUse& use, bool with_blocks) {
    if (use.limit <= 0) return ContextMeter::tr("no model loaded");
    const QString dot = QStringLiteral("  \u00b7  ");
    const QLocale locale;
    QString text =
        ContextMeter::tr("context %1 / %2").arg(locale.toString(use.used), locale.toString(use.limit));
    if (use.blocks > 0 && with_blocks) text += dot + ContextMeter::tr("%n block(s)", nullptr, use.blocks);
    if (context_level(use) == ContextLevel::nearly_full) text += dot + ContextMeter::tr("nearly full");
    if (context_level(use) == ContextLevel::full) text += dot + ContextMeter::tr("full soon");
    return text;
}

void paint_context_meter(QPainter& painter, const ContextUse& use, const QRectF& area,
                         const Palette& palette) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    const QRectF bar(area.left(), area.center().y() - bar_height / 2, std::min(bar_width, area.width()),
                     bar_height);
    painter.setBrush(palette.raised_hover);
    painter.drawRoundedRect(bar, 2, 2);
    const ContextLevel level = context_level(use);
    const QColor color = level == ContextLevel::full          ? palette.danger
                         : level == ContextLevel::nearly_full ? palette.warning
                                                              : palette.accent;
    const qreal share = use.limit > 0 ? std::clamp(qreal(use.used) / use.limit, 0.0, 1.0) : 0;
    if (share > 0) {
        painter.setBrush(color);
        painter.drawRoundedRect(QRectF(bar.topLeft(), QSizeF(std::max(4.0, bar.width() * share), bar_height)),
                                2, 2);
    }
    painter.setPen(level == ContextLevel::normal ? palette.dim : color);
    painter.setFont(palette.fonts.note);
    const QRectF room = area.adjusted(bar_width + bar_gap, 0, 0, 0);
    const QFontMetricsF metrics(palette.fonts.note);
    QString text = context_text(use);
    if (metrics.horizontalAdvance(text) > room.width()) text = context_text(use, false);
    painter.drawText(room, Qt::AlignVCenter | Qt::AlignLeft,
                     metrics.elidedText(text, Qt::ElideRight, room.width()));
    painter.restore();
}

ContextMeter::ContextMeter(Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setObjectName(QStringLiteral("contextMeter"));
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    connect(theme_, &Theme::changed, this, [this] {
        updateGeometry();
        update();
    });
    describe();
}

void ContextMeter::set_use(const ContextUse& use) {
    if (use == use_) return;
    use_ = use;
    describe();
    updateGeometry();
    update();
}

void ContextMeter::describe() {
    setAccessibleName(tr("Context"));
    setAccessibleDescription(context_text(use_));
    setToolTip(
        tr("Tokens of this chat that the model sees, and how many it can see at most. "
           "Blocks are the pieces of the KV cache that hold them."));
}

QSize ContextMeter::sizeHint() const {
    const QFontMetricsF metrics(theme_->palette().fonts.note);
    return {int(std::ceil(bar_width + bar_gap + metrics.horizontalAdvance(context_text(use_)) + 4)),
            theme_->palette().metrics.target};
}

QSize ContextMeter::minimumSizeHint() const {
    return {int(least_bar_width), theme_->palette().metrics.target};
}

void ContextMeter::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    paint_context_meter(painter, use_, rect(), theme_->palette());
}

void ContextMeter::changeEvent(QEvent* event) {
    if (event->type() == QEvent::LanguageChange) describe();
    QWidget::changeEvent(event);
}

}  // namespace recto::ui
