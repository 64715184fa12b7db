#include "ui/panel/cell_look.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

namespace recto::ui {
namespace {

// Dark on a light hue, light on a dark one: the pattern must be seen on all seven.
QColor ink_on(const QColor& hue) {
    return contrast_ratio(hue, Qt::black) > 6.0 ? QColor(0, 0, 0, 120) : QColor(255, 255, 255, 130);
}

void paint_pattern(QPainter& p, const QRectF& area, OwnerPattern pattern, const QColor& hue, qreal ratio) {
    const QColor ink = ink_on(hue);
    const qreal step = std::round(4 * ratio);
    const qreal line = std::max(1.0, std::round(ratio));
    p.setRenderHint(QPainter::Antialiasing, false);
    switch (pattern) {
        case OwnerPattern::solid:
            break;
        case OwnerPattern::horizontal_bars:
            for (qreal y = area.bottom() - line * 2; y > area.top(); y -= step)
                p.fillRect(QRectF(area.left(), y, area.width(), line), ink);
            break;
        case OwnerPattern::dots:
            for (qreal y = area.bottom() - line * 3; y > area.top(); y -= step)
                for (qreal x = area.left() + line * 2; x < area.right() - line; x += step)
                    p.fillRect(QRectF(x, y, line * 1.5, line * 1.5), ink);
            break;
        case OwnerPattern::cross_hatch:
            for (qreal y = area.bottom() - line * 2; y > area.top(); y -= step)
                p.fillRect(QRectF(area.left(), y, area.width(), line), ink);
            for (qreal x = area.left() + line * 2; x < area.right(); x += step)
                p.fillRect(QRectF(x, area.top(), line, area.height()), ink);
            break;
    }
}

void paint_stripes(QPainter& p, const QRectF& area, const QColor& a, const QColor& b, qreal ratio) {
    p.fillRect(area, a);
    p.setRenderHint(QPainter::Antialiasing, true);
    p.setPen(QPen(b, 2.0 * ratio));
    const qreal step = 5.6 * ratio;
    for (qreal x = area.left() - area.height(); x < area.right() + step; x += step)
        p.drawLine(QPointF(x, area.bottom() + 1), QPointF(x + area.height() + 1, area.top()));
}

void paint_count(QPainter& p, const QRectF& area, int count, const Palette& palette) {
    QFont font = palette.fonts.tiny;
    font.setPixelSize(std::max(6, int(area.height() * 0.72)));
    font.setWeight(QFont::DemiBold);
    p.setFont(font);
    p.setPen(palette.on_shared_many);
    p.drawText(area.adjusted(-2, 0, 2, 0), Qt::AlignCenter,
               count > 9 ? QStringLiteral("+") : QString::number(count));
}

void paint_used(QPainter& p, const QRectF& area, const QRectF& whole, const CellLook& cell,
                const Palette& palette, qreal ratio) {
    const auto tone = [&](const QColor& hue) { return cell.faded ? palette.dimmed(hue) : hue; };
    const OwnerLook style = palette.owner(std::max<int>(cell.owner, 0));
    const QColor hue = cell.owner < 0 ? palette.dim : style.hue;
    if (cell.ref_count >= 3) {
        p.fillRect(area, tone(palette.shared_many));
        paint_count(p, whole, cell.ref_count, palette);
    } else if (cell.ref_count == 2) {
        // Two sequences of one chat share too: its hue striped with the panel's.
        const QColor other = cell.second < 0 ? palette.panel : palette.owner(cell.second).hue;
        paint_stripes(p, area, tone(hue), tone(other), ratio);
    } else {
        p.fillRect(area, tone(hue));
        if (cell.owner >= 0) paint_pattern(p, area, style.pattern, tone(hue), ratio);
    }
}

}  // namespace

int BlockGrid::index_at(QPoint pixel) const {
    if (pixel.x() < 0 || pixel.y() < 0) return -1;
    const int column = pixel.x() / (cell.width() + gap);
    const int row = pixel.y() / row_height();
    if (column >= columns || row >= rows) return -1;
    return row * columns + column;
}

BlockGrid block_grid(int cells, int width, const Metrics& metrics, qreal ratio) {
    BlockGrid grid;
    const int device_width = std::max(1, int(width * ratio));
    const int least = int(std::ceil(std::max(metrics.cell, 8) * ratio));
    grid.gap = std::max(1, int(std::lround(metrics.cell_gap * ratio)));
    grid.columns = std::max(1, (device_width + grid.gap) / (least + grid.gap));
    const int cell_width = std::max(least, (device_width + grid.gap) / grid.columns - grid.gap);
    grid.cell = QSize(cell_width, int(std::lround(metrics.cell_height * ratio)));
    grid.rows = (cells + grid.columns - 1) / grid.columns;
    return grid;
}

void paint_cell(QPainter& p, const QRect& target, const CellLook& cell, int block_size,
                const Palette& palette, qreal ratio) {
    p.save();
    p.translate(target.topLeft());
    const QRectF whole(0, 0, target.width(), target.height());
    const qreal radius = std::round(2 * ratio);
    QPainterPath shape;
    shape.addRoundedRect(whole, radius, radius);
    p.setRenderHint(QPainter::Antialiasing, true);
    p.fillPath(shape, palette.free_cell);

    const qreal line = std::max(1.0, std::round(ratio));
    QPainterPath edge;
    edge.addRoundedRect(whole.adjusted(line / 2, line / 2, -line / 2, -line / 2), radius, radius);
    if (cell.state == BlockState::free) {
        p.strokePath(edge, QPen(palette.free_outline, line));
        p.restore();
        return;
    }

    const int filled = std::clamp<int>(cell.fill, 0, block_size);
    qreal height = std::round(whole.height() * filled / std::max(block_size, 1));
    if (filled > 0) height = std::max(height, 2 * line);
    const QRectF area(0, whole.height() - height, whole.width(), height);
    // Antialiased corners come from the path as a clip mask; only filled parts are drawn inside it.
    QImage ink(target.size(), QImage::Format_ARGB32_Premultiplied);
    ink.fill(Qt::transparent);
    {
        QPainter q(&ink);
        if (cell.state == BlockState::cached) {
            const QColor hue =
                cell.owner < 0 ? palette.cached : palette.dimmed(palette.owner(cell.owner).hue);
            q.fillRect(area, hue);
        } else {
            q.setClipRect(area);
            paint_used(q, area, whole, cell, palette, ratio);
        }
    }
    p.setPen(Qt::NoPen);
    p.setBrush(QBrush(ink));
    p.drawPath(shape);

    if (cell.state == BlockState::cached) {
        const qreal d = std::max(2.0, std::round(3 * ratio));
        const qreal x = std::round((whole.width() - d) / 2), y = std::round((whole.height() - d) / 2);
        p.setBrush(palette.dim);
        p.drawEllipse(QRectF(x, y, d, d));
    }
    if (palette.data_outline.alpha() > 0) p.strokePath(edge, QPen(palette.data_outline, line));
    p.restore();
}

void paint_owner_mark(QPainter& p, const QRect& target, const QColor& hue, OwnerPattern pattern,
                      const Palette& palette, qreal ratio) {
    QImage ink(target.size(), QImage::Format_ARGB32_Premultiplied);
    ink.fill(hue);
    {
        QPainter q(&ink);
        paint_pattern(q, QRectF(ink.rect()), pattern, hue, ratio);
    }
    p.save();
    p.translate(target.topLeft());
    p.setRenderHint(QPainter::Antialiasing, true);
    p.setPen(palette.data_outline.alpha() > 0 ? QPen(palette.data_outline, ratio) : QPen(Qt::NoPen));
    p.setBrush(QBrush(ink));
    p.drawRoundedRect(QRectF(QPointF(0, 0), QSizeF(target.size())), 3 * ratio, 3 * ratio);
    p.restore();
}

void CellSprites::reset(const QSize& cell, int block_size, const Palette& palette, qreal ratio) {
    size_ = cell;
    block_size_ = block_size;
    palette_ = palette;
    ratio_ = ratio;
    images_.clear();
}

const QImage& CellSprites::sprite(const CellLook& cell) {
    const auto part = [](quint64 value, int shift) { return value << shift; };
    const quint64 key = part(quint64(cell.state), 0) | part(cell.fill, 2) |
                        part(std::min<int>(cell.ref_count, 10), 10) | part(quint16(cell.owner), 16) |
                        part(quint16(cell.second), 32) | part(cell.faded ? 1 : 0, 48);
    auto found = images_.find(key);
    if (found == images_.end()) {
        if (images_.size() > 4096) images_.clear();  // looks of chats long closed
        QImage image(size_, QImage::Format_ARGB32_Premultiplied);
        image.fill(Qt::transparent);
        QPainter painter(&image);
        paint_cell(painter, image.rect(), cell, block_size_, palette_, ratio_);
        painter.end();
        found = images_.insert(key, image);
    }
    return *found;
}

}  // namespace recto::ui
