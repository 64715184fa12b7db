// Load time by stage: one bar whose parts are as long as the stages took.
#pragma once
#include <QImage>
#include <QWidget>
#include <vector>

#include "engine/model/model.h"
#include "ui/theme/palette.h"

namespace recto::ui {

class Theme;

QColor stage_color(const Palette& palette, const std::string& stage, int position);
void paint_stage_bar(QPainter& painter, const QRectF& area, const std::vector<LoadStage>& stages,
                     const Palette& palette);
QImage render_stage_bar(const std::vector<LoadStage>& stages, const QSize& size, const Palette& palette,
                        qreal ratio = 1.0);

class StageBar : public QWidget {
    Q_OBJECT
  public:
    StageBar(const Theme* theme, QWidget* parent = nullptr);
    void set_stages(std::vector<LoadStage> stages);
    const std::vector<LoadStage>& stages() const { return stages_; }
    QSize sizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;

  private:
    const Theme* theme_;
    std::vector<LoadStage> stages_;
};

}  // namespace recto::ui
