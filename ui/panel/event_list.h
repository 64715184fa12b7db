// The pool's events, newest on top. Only the rows in sight are made into text.
#pragma once
#include <QAbstractScrollArea>

#include "ui/models/pool_event_model.h"

namespace recto::ui {

class Theme;

class EventList : public QAbstractScrollArea {
    Q_OBJECT
  public:
    EventList(const Theme* theme, PoolEventModel* model, QWidget* parent = nullptr);
    void refresh();  // the model has grown or was cleared
    QString line(int from_newest) const;
    QSize sizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

  private:
    int row_height() const;
    void update_range();
    const Theme* theme_;
    PoolEventModel* model_;
    int known_rows_ = 0;
};

}  // namespace recto::ui
