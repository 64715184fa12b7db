// The block map: one cell a block that was ever used, scrolled; the untouched tail is one line of text.
// Only cells that changed are drawn, into an image of the visible part; a paint copies that image.
#pragma once
#include <QAbstractScrollArea>
#include <QElapsedTimer>
#include <QTimer>
#include <unordered_map>
#include <vector>

#include "ui/panel/cell_look.h"

namespace recto::ui {

class Theme;

class BlockMapWidget : public QAbstractScrollArea {
    Q_OBJECT
  public:
    BlockMapWidget(const Theme* theme, QWidget* parent = nullptr);

    // cells: the touched blocks 0 … n − 1; total: the pool's size. Takes effect at the next paint.
    void set_cells(std::vector<CellLook> cells, int total, int block_size);
    const std::vector<CellLook>& cells() const { return cells_; }
    int total() const { return total_; }
    int current() const { return current_; }           // the cell under the pointer or the keyboard; -1: none
    QRect cell_rect(int index) const;                  // in the viewport
    int cell_at(QPoint viewport_point) const;          // -1: none
    QString fold_text() const;                         // "1,900 more free"; empty when nothing is folded
    double paint_seconds() const { return paint_s_; }  // GUI time spent here so far: drawing and copying

    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

  Q_SIGNALS:
    void pointed(int block);  // hover or keyboard; -1: left
    void pause_requested();   // Space on the focused map
    void step_requested();    // "."

  protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool viewportEvent(QEvent* event) override;

  private:
    void relayout();
    void redraw_all();
    void draw_cell(QPainter& painter, int index);
    void set_current(int index);
    void end_outlines();
    int fold_height() const;
    int scroll_device() const;
    std::pair<int, int> visible_cells() const;  // first, one past the last

    const Theme* theme_;
    std::vector<CellLook> cells_;
    int total_ = 0;
    int block_size_ = 16;
    BlockGrid grid_;
    CellSprites sprites_;
    QImage image_;  // the visible part, device pixels
    bool image_stale_ = true;
    qreal ratio_ = 0;
    int current_ = -1;
    QElapsedTimer clock_;
    std::unordered_map<int, qint64> outlined_;  // cell → when its outline ends, ms
    QTimer outline_timer_;
    double paint_s_ = 0;
};

}  // namespace recto::ui
