// A line of text that gives way where there is little room: it ends in an ellipsis, and does not keep a
// window from being narrow.
#pragma once
#include <QLabel>

namespace recto::ui {

class ShrinkingLabel : public QLabel {
    Q_OBJECT
  public:
    using QLabel::QLabel;
    QSize minimumSizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;
};

}  // namespace recto::ui
