// The frozen layout of one Markdown block: made once for a width and a palette, then only drawn and asked.
// Coordinates are device-independent pixels from the block's top left corner; text positions are UTF-16
// offsets into Block::text.
#pragma once
#include <QPainter>
#include <QTextLayout>
#include <memory>
#include <vector>

#include "ui/markdown/block.h"
#include "ui/theme/palette.h"

namespace recto::ui {

// A half-open run of a block's text; nothing is selected when empty.
struct TextRange {
    int from = 0;
    int to = 0;
    bool empty() const { return from >= to; }
};

class BlockLayout {
  public:
    BlockLayout(const markdown::Block& block, const Palette& palette, qreal width);

    qreal height() const { return height_; }
    qreal natural_width() const {
        return natural_width_;
    }  // what the text needs; at most width for wrapped text
    qreal scroll_range() const { return scroll_range_; }  // > 0: wider than its frame
    qreal horizontal_offset() const { return offset_; }
    void set_horizontal_offset(qreal offset);

    // Pure: everything drawn comes from the arguments and the layout.
    void paint(QPainter& painter, QPointF at, const markdown::Block& block, const Palette& palette,
               TextRange selected, bool copy_hovered = false) const;

    int position_at(QPointF point) const;  // the nearest
    bool is_over_text(QPointF point) const;
    QRectF cursor_rect(int position) const;
    QString link_at(QPointF point, const markdown::Block& block) const;  // address, or empty
    QRectF copy_button() const { return copy_button_; }                  // empty: none

  private:
    struct Piece {  // a run of the text with a layout of its own: a paragraph, a table cell, an overlong line
        std::unique_ptr<QTextLayout> layout;
        QPointF at;
        int start = 0;
        int length = 0;  // in Block::text; the layout may show less
        qreal width = 0;
    };
    void lay_out_text(const markdown::Block& block, const Palette& palette);
    void lay_out_code(const markdown::Block& block, const Palette& palette);
    void lay_out_table(const markdown::Block& block, const Palette& palette);
    void paint_code_ground(QPainter& painter, QPointF at, const markdown::Block& block,
                           const Palette& palette) const;
    void paint_code_label(QPainter& painter, QPointF at, const markdown::Block& block, const Palette& palette,
                          bool copy_hovered) const;
    void paint_table_lines(QPainter& painter, QPointF at, const Palette& palette) const;
    void paint_margin(QPainter& painter, QPointF at, const markdown::Block& block,
                      const Palette& palette) const;
    const Piece* piece_at(QPointF point) const;
    QPointF piece_origin(const Piece& piece) const;

    std::vector<Piece> pieces_;
    qreal width_ = 0;
    qreal inset_ = 0;  // left of the text: quotes and list depth
    qreal height_ = 0;
    qreal natural_width_ = 0;
    qreal scroll_range_ = 0;
    qreal offset_ = 0;
    qreal marker_baseline_ = 0;
    QRectF frame_;  // code and tables
    QRectF copy_button_;
    std::vector<qreal> row_lines_;  // tables: y of the lines between rows
};

// The distance that a block keeps from the one above it.
qreal gap_above(const markdown::Block& block, const markdown::Block* previous);

// Height before any layout exists, from the text's length alone; good to about a line.
qreal estimated_height(const markdown::Block& block, const Palette& palette, qreal width);

// Line distance of running text and of code at this zoom.
qreal text_line_height(const Palette& palette);
qreal code_line_height(const Palette& palette);

}  // namespace recto::ui
