#include "ui/shrinking_label.h"

#include <QPainter>
#include <algorithm>

namespace recto::ui {

QSize ShrinkingLabel::minimumSizeHint() const {
    const QSize whole = QLabel::minimumSizeHint();
    return {std::min(whole.width(), 6 * fontMetrics().averageCharWidth()), whole.height()};
}

void ShrinkingLabel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(contentsRect(), int(alignment()) | Qt::TextSingleLine,
                     fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width()));
}

}  // namespace recto::ui
