// How one KV block looks: the pure part of the block map. State by lightness, owner by hue and pattern, fill
// by height, shared by diagonal stripes in the owners' hues, cached dim with a dot, free hollow.
#pragma once
#include <QHash>
#include <QImage>
#include <QRect>
#include <QSize>
#include <cstdint>

#include "engine/engine.h"
#include "engine/kv/block_pool.h"
#include "ui/theme/palette.h"

class QPainter;

namespace recto::ui {

struct CellLook {
    BlockState state = BlockState::free;
    std::uint8_t fill = 0;  // tokens in it
    std::uint16_t ref_count = 0;
    std::int16_t owner = -1;   // OwnerStyle::number; -1: nobody
    std::int16_t second = -1;  // the other chat of a block that two chats share
    bool faded = false;        // another chat is the chosen one

    friend bool operator==(const CellLook&, const CellLook&) = default;
};

// Where cells are, in device pixels: edges are whole numbers, or a grid looks uneven at 125 %.
struct BlockGrid {
    int columns = 1;
    int rows = 0;
    QSize cell;   // device pixels
    int gap = 1;  // device pixels

    QRect rect(int index) const {
        return {(index % columns) * (cell.width() + gap), (index / columns) * (cell.height() + gap),
                cell.width(), cell.height()};
    }
    int row_height() const { return cell.height() + gap; }
    int height() const { return rows == 0 ? 0 : rows * row_height() - gap; }
    int index_at(QPoint device_pixel) const;  // -1 in a gap's far side or outside; may exceed the cell count
};

// width in device-independent pixels. Cells are never narrower than 8 device-independent pixels.
BlockGrid block_grid(int cells, int width, const Metrics& metrics, qreal ratio);

// Draws one cell into `target` (device pixels). Pure.
void paint_cell(QPainter& painter, const QRect& target, const CellLook& cell, int block_size,
                const Palette& palette, qreal ratio);

// A full block of one owner, for marks in lists and legends. Pure.
void paint_owner_mark(QPainter& painter, const QRect& target, const QColor& hue, OwnerPattern pattern,
                      const Palette& palette, qreal ratio);

// Cells that look alike are drawn once and copied: a rounded, patterned cell costs 30 times its copy.
class CellSprites {
  public:
    void reset(const QSize& cell, int block_size, const Palette& palette, qreal ratio);
    const QImage& sprite(const CellLook& cell);

  private:
    QSize size_;
    int block_size_ = 16;
    Palette palette_;
    qreal ratio_ = 1;
    QHash<quint64, QImage> images_;
};

}  // namespace recto::ui
