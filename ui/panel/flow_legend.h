// Swatches with text that flow over as many lines as the width needs: the map's legend and the load stages.
#pragma once
#include <QWidget>
#include <vector>

#include "ui/theme/palette.h"

namespace recto::ui {

enum class Swatch : std::uint8_t { owner, shared, cached, free, color };

struct LegendEntry {
    Swatch swatch = Swatch::color;
    int owner = -1;  // Swatch::owner
    QColor color;    // Swatch::color
    QString text;
    friend bool operator==(const LegendEntry&, const LegendEntry&) = default;
};

// Paints into `width` and returns the height it took. A null painter only measures.
int paint_legend(QPainter* painter, int width, const std::vector<LegendEntry>& entries,
                 const Palette& palette, qreal ratio);

class Theme;

class FlowLegend : public QWidget {
    Q_OBJECT
  public:
    FlowLegend(const Theme* theme, QWidget* parent = nullptr);
    void set_entries(std::vector<LegendEntry> entries);
    const std::vector<LegendEntry>& entries() const { return entries_; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;

  private:
    const Theme* theme_;
    std::vector<LegendEntry> entries_;
};

}  // namespace recto::ui
