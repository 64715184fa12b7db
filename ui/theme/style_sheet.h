// What Fusion and a QPalette cannot say: rounded corners, borders and the primary button, from the one
// palette. Dynamic properties choose a look: primary="true" (the one main action), flat="true" (a button like
// text), card="true" (a framed group), dim="true" (second-rank text), field="true" for framed text areas.
#pragma once
#include <QString>

#include "ui/theme/palette.h"

namespace recto::ui {

QString style_sheet(const Palette& palette);

}  // namespace recto::ui
