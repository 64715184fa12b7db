// A chat's mark in lists and tabs: its hue, with its pattern where there is room.
#pragma once
#include <QPixmap>

#include "ui/theme/palette.h"

class QPainter;

namespace recto::ui {

void paint_owner_dot(QPainter& painter, const QRectF& area, OwnerHue hue, OwnerPattern pattern,
                     const Palette& palette);

}  // namespace recto::ui
