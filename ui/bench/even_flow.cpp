#include "ui/bench/even_flow.h"

#include <algorithm>

namespace recto::ui {

EvenFlow::EvenFlow(int gap, QWidget* parent) : QLayout(parent), gap_(gap) {
    setContentsMargins(0, 0, 0, 0);
}

EvenFlow::~EvenFlow() = default;

void EvenFlow::addItem(QLayoutItem* item) {
    items_.emplace_back(item);
    invalidate();
}

QLayoutItem* EvenFlow::itemAt(int index) const {
    return index >= 0 && index < count() ? items_[std::size_t(index)].get() : nullptr;
}

QLayoutItem* EvenFlow::takeAt(int index) {
    if (index < 0 || index >= count()) return nullptr;
    QLayoutItem* item = items_[std::size_t(index)].release();
    items_.erase(items_.begin() + index);
    invalidate();
    return item;
}

std::vector<QLayoutItem*> EvenFlow::shown() const {
    std::vector<QLayoutItem*> items;
    for (const auto& item : items_)
        if (!item->isEmpty()) items.push_back(item.get());
    return items;
}

int EvenFlow::least_width() const {
    int width = 1;
    for (const QLayoutItem* item : shown())
        width = std::max({width, item->sizeHint().width(), item->minimumSize().width()});
    return width;
}

int EvenFlow::row_height(int width) const {
    int height = 1;
    for (const QLayoutItem* item : shown())
        height = std::max(
            height, item->hasHeightForWidth() ? item->heightForWidth(width) : item->sizeHint().height());
    return height;
}

int EvenFlow::columns_for(int width) const {
    const int n = int(shown().size());
    if (n == 0) return 1;
    const int fit = std::clamp((width + gap_) / (least_width() + gap_), 1, n);
    const int rows = (n + fit - 1) / fit;
    return (n + rows - 1) / rows;
}

int EvenFlow::heightForWidth(int width) const {
    const int n = int(shown().size());
    if (n == 0) return 0;
    const int columns = columns_for(width);
    const int rows = (n + columns - 1) / columns;
    return rows * row_height((width + gap_) / columns - gap_) + (rows - 1) * gap_;
}

QSize EvenFlow::sizeHint() const {
    const int n = std::max(int(shown().size()), 1), width = least_width();
    return {n * width + (n - 1) * gap_, row_height(width)};
}

QSize EvenFlow::minimumSize() const {
    return {least_width(), row_height(least_width())};
}

void EvenFlow::setGeometry(const QRect& area) {
    QLayout::setGeometry(area);
    const int columns = columns_for(area.width());
    const int height = row_height((area.width() + gap_) / columns - gap_);
    int number = 0;
    for (QLayoutItem* item : shown()) {
        const int column = number % columns, row = number / columns;
        // Edges from one division each, so that the columns fill the width to the pixel.
        const int left = (area.width() + gap_) * column / columns;
        const int right = (area.width() + gap_) * (column + 1) / columns - gap_;
        item->setGeometry(
            QRect(area.left() + left, area.top() + row * (height + gap_), right - left, height));
        ++number;
    }
}

}  // namespace recto::ui
