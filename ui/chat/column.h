// The column that messages and the input box share: the pane's width between its margins, at most as wide as
// lines stay readable, then in the middle.
#pragma once
#include <algorithm>
#include <cmath>

#include "ui/theme/palette.h"

namespace recto::ui {

struct Column {
    qreal x = 0;
    qreal width = 0;
};

inline Column column_in(qreal pane_width, const Palette& palette) {
    constexpr qreal widest = 920, narrowest = 120;  // at 100 %
    const qreal room = pane_width - 2.0 * palette.metrics.transcript_pad;
    const qreal width = std::floor(std::clamp(room, narrowest, widest * palette.zoom));
    return {std::floor(std::max<qreal>(8, (pane_width - width) / 2)), width};
}

}  // namespace recto::ui
