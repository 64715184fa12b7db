// Our SVG icons, drawn in a colour of the palette.
#pragma once
#include <QColor>
#include <QIcon>
#include <QString>

namespace recto::ui {

QIcon make_icon(const QString& name,
                const QColor& color);  // resources/icons/NAME.svg; currentColor becomes color
QIcon app_icon();

}  // namespace recto::ui
