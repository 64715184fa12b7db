#include "ui/panel/plot.h"

#include <QLocale>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

double largest(const PlotData& data, bool right_axis) {
    double top = 0;
    if (!data.stacked) {
        for (const auto& s : data.series)
            if (s.right_axis == right_axis)
                for (const double v : s.values)
                    top = std::max(top, v);
        return top;
    }
    for (int i = 0; i < data.points; ++i) {  // i points before the newest
        double sum = 0;
        for (const auto& s : data.series)
            if (i < int(s.values.size())) sum += s.values[s.values.size() - 1 - std::size_t(i)];
        top = std::max(top, sum);
    }
    return top;
}

struct Axes {
    QRectF inner;
    double top, right_top;  // right_top 0: no right axis
    int points;
    double x(int from_right) const {
        return inner.right() - inner.width() * from_right / std::max(points - 1, 1);
    }
    double y(double value, bool right_axis = false) const {
        return inner.bottom() - inner.height() * std::clamp(value / (right_axis ? right_top : top), 0.0, 1.0);
    }
};

QString axis_text(double value) {
    return QLocale().toString(value, 'f', value == std::round(value) ? 0 : 1);
}

void paint_grid(QPainter& p, const QRectF& area, const Axes& axes, const Palette& palette) {
    p.setFont(palette.fonts.tiny);
    for (int i = 0; i <= 2; ++i) {
        const double y = std::round(axes.y(axes.top * i / 2)) + 0.5;
        QPen pen(palette.line, 1);
        pen.setCosmetic(true);
        p.setPen(pen);
        p.drawLine(QPointF(axes.inner.left(), y), QPointF(axes.inner.right(), y));
        p.setPen(palette.dim);
        p.drawText(QRectF(area.left(), y - 10, axes.inner.left() - area.left() - 6, 20),
                   Qt::AlignLeft | Qt::AlignVCenter, axis_text(axes.top * i / 2));
        if (axes.right_top > 0)
            p.drawText(QRectF(axes.inner.right() + 4, y - 10, area.right() - axes.inner.right() - 4, 20),
                       Qt::AlignRight | Qt::AlignVCenter, axis_text(axes.right_top * i / 2));
    }
}

QBrush area_brush(const PlotSeries& s, const Palette& palette) {
    if (s.pattern == OwnerPattern::solid) return QBrush(s.color);
    QImage tile(8, 8, QImage::Format_ARGB32_Premultiplied);
    tile.fill(s.color);
    QPainter p(&tile);
    const QColor ink =
        contrast_ratio(s.color, Qt::black) > 6.0 ? QColor(0, 0, 0, 70) : QColor(255, 255, 255, 70);
    if (s.pattern == OwnerPattern::dots) {
        p.fillRect(2, 2, 2, 2, ink);
        p.fillRect(6, 6, 2, 2, ink);
    } else {
        p.fillRect(0, 3, 8, 1, ink);
        p.fillRect(0, 7, 8, 1, ink);
        if (s.pattern == OwnerPattern::cross_hatch) {
            p.fillRect(3, 0, 1, 8, ink);
            p.fillRect(7, 0, 1, 8, ink);
        }
    }
    Q_UNUSED(palette);
    return QBrush(tile);
}

void paint_areas(QPainter& p, const Axes& axes, const PlotData& data, const Palette& palette) {
    std::vector<double> base(std::size_t(data.points), 0.0);  // by distance from the newest
    for (const auto& s : data.series) {
        const int n = std::min<int>(int(s.values.size()), data.points);
        if (n == 0) continue;
        QPolygonF shape;
        for (int i = n - 1; i >= 0; --i)
            shape << QPointF(axes.x(i), axes.y(base[std::size_t(i)]));
        std::vector<double> top = base;
        for (int i = 0; i < n; ++i) {
            top[std::size_t(i)] += s.values[s.values.size() - 1 - std::size_t(i)];
            shape << QPointF(axes.x(i), axes.y(top[std::size_t(i)]));
        }
        p.setPen(palette.data_outline.alpha() > 0 ? QPen(palette.data_outline, 0) : QPen(Qt::NoPen));
        p.setBrush(area_brush(s, palette));
        p.drawPolygon(shape);
        base = std::move(top);
    }
}

void paint_lines(QPainter& p, const Axes& axes, const PlotData& data) {
    p.setBrush(Qt::NoBrush);
    for (const auto& s : data.series) {
        const int n = std::min<int>(int(s.values.size()), data.points);
        QPolygonF line;
        for (int i = n - 1; i >= 0; --i)
            line << QPointF(axes.x(i), axes.y(s.values[s.values.size() - 1 - std::size_t(i)], s.right_axis));
        QPen pen(s.color, 1.8);
        if (s.dashed) pen.setDashPattern({2, 1.6});
        p.setPen(pen);
        p.drawPolyline(line);
    }
}

}  // namespace

double plot_top(const PlotData& data, bool right_axis) {
    const double need = std::max(largest(data, right_axis), data.least_top);
    if (data.most_top > 0) {
        double top = 16;
        while (top < need)
            top *= 2;
        return std::min(std::max(top, 2.0), std::max(data.most_top, 2.0));
    }
    const double power = std::pow(10.0, std::floor(std::log10(need)));
    for (const double step : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0})
        if (need <= step * power) return step * power;
    return 10 * power;
}

void paint_plot(QPainter& p, const QRectF& area, const PlotData& data, const Palette& palette) {
    p.save();
    p.setRenderHint(QPainter::Antialiasing, true);
    const bool right =
        std::any_of(data.series.begin(), data.series.end(), [](const auto& s) { return s.right_axis; });
    const double top = plot_top(data), right_top = right ? plot_top(data, true) : 0;
    const QFontMetricsF metrics(palette.fonts.tiny);
    const auto width = [&](double value) {
        return std::max(30.0, metrics.horizontalAdvance(axis_text(value)) + 8);
    };
    const Axes axes{area.adjusted(width(top), 7, right ? -width(right_top) : -1, -8), top, right_top,
                    data.points};
    paint_grid(p, area, axes, palette);
    p.setClipRect(axes.inner.adjusted(0, -2, 1, 2));
    data.stacked ? paint_areas(p, axes, data, palette) : paint_lines(p, axes, data);
    p.restore();
}

QImage render_plot(const PlotData& data, const QSize& size, const Palette& palette, qreal ratio) {
    QImage image(size * ratio, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(ratio);
    image.fill(palette.panel);
    QPainter painter(&image);
    paint_plot(painter, QRectF(QPointF(0, 0), QSizeF(size)), data, palette);
    return image;
}

PlotWidget::PlotWidget(const Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(theme, &Theme::changed, this, [this] { updateGeometry(); });
}

void PlotWidget::set_data(PlotData data) {
    data_ = std::move(data);
    update();
}

QSize PlotWidget::sizeHint() const {
    return {260, theme_->palette().metrics.plot_height};
}

void PlotWidget::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    paint_plot(painter, QRectF(rect()), data_, theme_->palette());
}

}  // namespace recto::ui
