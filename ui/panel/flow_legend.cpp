#include "ui/panel/flow_legend.h"

#include <QPainter>
#include <algorithm>

#include "ui/panel/cell_look.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

CellLook sample(const LegendEntry& entry) {
    CellLook cell;
    cell.fill = 16;
    switch (entry.swatch) {
        case Swatch::owner:
            cell.state = BlockState::used;
            cell.ref_count = 1;
            cell.owner = std::int16_t(entry.owner);
            break;
        case Swatch::shared:
            cell.state = BlockState::used;
            cell.ref_count = 2;
            cell.owner = 0;
            cell.second = 1;
            break;
        case Swatch::cached:
            cell.state = BlockState::cached;
            break;
        case Swatch::free:
        case Swatch::color:
            cell.fill = 0;
            break;
    }
    return cell;
}

void paint_swatch(QPainter& p, const QRectF& box, const LegendEntry& entry, const Palette& palette,
                  qreal ratio) {
    if (entry.swatch == Swatch::color) {
        p.setRenderHint(QPainter::Antialiasing, true);
        p.setPen(palette.data_outline.alpha() > 0 ? QPen(palette.data_outline, 1) : QPen(Qt::NoPen));
        p.setBrush(entry.color);
        p.drawRoundedRect(box, 2, 2);
        return;
    }
    p.save();
    p.translate(box.topLeft());
    p.scale(1 / ratio, 1 / ratio);
    paint_cell(p, QRect(QPoint(0, 0), (box.size() * ratio).toSize()), sample(entry), 16, palette, ratio);
    p.restore();
}

}  // namespace

int paint_legend(QPainter* painter, int width, const std::vector<LegendEntry>& entries,
                 const Palette& palette, qreal ratio) {
    const QFontMetricsF metrics(palette.fonts.small);
    const double line = std::max(metrics.height(), 12.0) + 4;
    const double dot = palette.metrics.dot + 1;
    double x = 0, y = 0;
    for (const auto& entry : entries) {
        const QString text = metrics.elidedText(entry.text, Qt::ElideRight, width - dot - 5);
        const double need = dot + 5 + metrics.horizontalAdvance(text);
        if (x > 0 && x + need > width) {
            x = 0;
            y += line;
        }
        if (painter != nullptr) {
            paint_swatch(*painter, QRectF(x, y + (line - dot) / 2, dot, dot), entry, palette, ratio);
            painter->setFont(palette.fonts.small);
            painter->setPen(palette.dim);
            painter->drawText(QRectF(x + dot + 5, y, need, line), Qt::AlignLeft | Qt::AlignVCenter, text);
        }
        x += need + 12;
    }
    return entries.empty() ? 0 : int(std::ceil(y + line));
}

FlowLegend::FlowLegend(const Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    connect(theme, &Theme::changed, this, [this] { updateGeometry(); });
}

void FlowLegend::set_entries(std::vector<LegendEntry> entries) {
    if (entries == entries_) return;
    const int before = heightForWidth(width());
    entries_ = std::move(entries);
    if (heightForWidth(width()) != before) updateGeometry();
    QStringList texts;
    for (const auto& entry : entries_)
        texts << entry.text;
    setAccessibleDescription(texts.join(QStringLiteral("; ")));
    update();
}

int FlowLegend::heightForWidth(int width) const {
    return paint_legend(nullptr, width, entries_, theme_->palette(), devicePixelRatioF());
}

QSize FlowLegend::sizeHint() const {
    return {200, heightForWidth(std::max(width(), 200))};
}

void FlowLegend::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    paint_legend(&painter, width(), entries_, theme_->palette(), devicePixelRatioF());
}

}  // namespace recto::ui
