#include "ui/panel/stage_bar.h"

#include <QPainter>
#include <algorithm>
#include <array>

#include "ui/theme/theme.h"

namespace recto::ui {

QColor stage_color(const Palette& palette, const std::string& stage, int position) {
    constexpr std::array<const char*, 6> order{"map", "tokenizer", "read", "repack", "upload", "warm-up"};
    const auto found = std::find(order.begin(), order.end(), stage);
    const auto index = found != order.end() ? std::size_t(found - order.begin()) : std::size_t(position);
    return palette.stages[index % palette.stages.size()];
}

void paint_stage_bar(QPainter& p, const QRectF& area, const std::vector<LoadStage>& stages,
                     const Palette& palette) {
    double total = 0;
    for (const auto& s : stages)
        total += s.seconds;
    if (total <= 0) return;
    p.save();
    p.setRenderHint(QPainter::Antialiasing, true);
    p.setPen(palette.data_outline.alpha() > 0 ? QPen(palette.data_outline, 1) : QPen(Qt::NoPen));
    double x = area.left();
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const double width = area.width() * stages[i].seconds / total;
        const double gap = width > 5 ? 2 : 0;
        p.setBrush(stage_color(palette, stages[i].name, int(i)));
        p.drawRoundedRect(QRectF(x, area.top(), std::max(width - gap, 1.0), area.height()), 3, 3);
        x += width;
    }
    p.restore();
}

QImage render_stage_bar(const std::vector<LoadStage>& stages, const QSize& size, const Palette& palette,
                        qreal ratio) {
    QImage image(size * ratio, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(ratio);
    image.fill(palette.panel);
    QPainter painter(&image);
    paint_stage_bar(painter, QRectF(QPointF(0, 0), QSizeF(size)), stages, palette);
    return image;
}

StageBar::StageBar(const Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(theme, &Theme::changed, this, [this] { update(); });
}

void StageBar::set_stages(std::vector<LoadStage> stages) {
    stages_ = std::move(stages);
    update();
}

QSize StageBar::sizeHint() const {
    return {200, theme_->palette().metrics.stage_bar_height};
}

void StageBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    paint_stage_bar(painter, QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), stages_, theme_->palette());
}

}  // namespace recto::ui
