#include "ui/owner_dot.h"

#include <QPainter>

#include "ui/panel/cell_look.h"

namespace recto::ui {

void paint_owner_dot(QPainter& painter, const QRectF& area, OwnerHue hue, OwnerPattern pattern,
                     const Palette& palette) {
    // The map's own cell, so that mark and blocks are recognised as the same.
    const qreal ratio = painter.device()->devicePixelRatio();
    painter.save();
    painter.translate(area.topLeft());
    painter.scale(1 / ratio, 1 / ratio);
    paint_owner_mark(painter, QRect(QPoint(0, 0), (area.size() * ratio).toSize()),
                     palette.hues[std::size_t(hue)], pattern, palette, ratio);
    painter.restore();
}

}  // namespace recto::ui
