// Small line and stacked-area plots over time: the pure drawing, and a widget around it.
#pragma once
#include <QImage>
#include <QString>
#include <QWidget>
#include <vector>

#include "ui/theme/palette.h"

namespace recto::ui {

struct PlotSeries {
    QString name;
    QColor color;
    bool dashed = false;
    OwnerPattern pattern = OwnerPattern::solid;  // stacked areas
    std::vector<double> values;                  // newest last; shorter series end at the right edge
    bool right_axis = false;                     // lines of another size than the others
};

struct PlotData {
    std::vector<PlotSeries> series;  // all over the same points in time
    int points = 61;                 // values across the whole width
    bool stacked = false;
    double least_top = 1;  // the axis never ends below this
    double most_top = 0;   // nor above this; 0: no bound
};

// The end of an axis: 1, 2, 3, 4, 5, 6 or 8 times a power of ten (of two when most_top is given: blocks).
double plot_top(const PlotData& data, bool right_axis = false);

void paint_plot(QPainter& painter, const QRectF& area, const PlotData& data, const Palette& palette);
QImage render_plot(const PlotData& data, const QSize& size, const Palette& palette, qreal ratio = 1.0);

class Theme;

class PlotWidget : public QWidget {
    Q_OBJECT
  public:
    PlotWidget(const Theme* theme, QWidget* parent = nullptr);
    void set_data(PlotData data);
    const PlotData& data() const { return data_; }
    QSize sizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;

  private:
    const Theme* theme_;
    PlotData data_;
};

}  // namespace recto::ui
