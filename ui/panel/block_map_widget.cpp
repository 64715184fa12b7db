#include "ui/panel/block_map_widget.h"

#include <QKeyEvent>
#include <QLocale>
#include <QMouseEvent>
#include <QPaintEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

constexpr int outline_ms = 300;
constexpr int most_rows = 16;  // taller maps scroll
constexpr int least_rows = 3;
constexpr int most_outlines = 128;  // a prefill that touches everything needs no outlines to be seen

class Spent {
  public:
    explicit Spent(double* sum) : sum_(sum) { timer_.start(); }
    ~Spent() { *sum_ += double(timer_.nsecsElapsed()) * 1e-9; }
    Spent(const Spent&) = delete;
    Spent& operator=(const Spent&) = delete;

  private:
    double* sum_;
    QElapsedTimer timer_;
};

}  // namespace

BlockMapWidget::BlockMapWidget(const Theme* theme, QWidget* parent)
    : QAbstractScrollArea(parent), theme_(theme) {
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    clock_.start();
    outline_timer_.setSingleShot(true);
    outline_timer_.setInterval(outline_ms / 2);
    connect(&outline_timer_, &QTimer::timeout, this, [this] { end_outlines(); });
    connect(theme, &Theme::changed, this, [this] {
        ratio_ = 0;  // sprites are of the old palette
        relayout();
    });
}

void BlockMapWidget::set_cells(std::vector<CellLook> cells, int total, int block_size) {
    const Spent spent(&paint_s_);
    const bool shape = cells.size() != cells_.size() || total != total_ || block_size != block_size_;
    const std::vector<CellLook> before = std::exchange(cells_, std::move(cells));
    total_ = total;
    if (block_size != block_size_) {
        block_size_ = block_size;
        ratio_ = 0;
    }
    if (current_ >= int(cells_.size())) set_current(-1);
    if (shape) relayout();

    std::vector<int> changed;
    for (int i = 0; i < int(cells_.size()); ++i)
        if (i >= int(before.size()) || !(before[std::size_t(i)] == cells_[std::size_t(i)]))
            changed.push_back(i);
    if (changed.empty()) return;
    if (int(changed.size()) <= most_outlines && !before.empty()) {
        for (const int i : changed)
            outlined_[i] = clock_.elapsed() + outline_ms;
        if (!outline_timer_.isActive()) outline_timer_.start();
    }
    if (image_stale_) {
        viewport()->update();
        return;
    }
    QPainter painter(&image_);
    const auto [first, last] = visible_cells();
    for (const int i : changed) {
        if (i < first || i >= last) continue;
        draw_cell(painter, i);
        if (changed.size() < 64) viewport()->update(cell_rect(i).adjusted(-1, -1, 1, 1));
    }
    if (changed.size() >= 64) viewport()->update();
}

QRect BlockMapWidget::cell_rect(int index) const {
    if (ratio_ <= 0) return {};
    const QRect device = grid_.rect(index).translated(0, -scroll_device());
    return QRectF(QPointF(device.topLeft()) / ratio_, QSizeF(device.size()) / ratio_).toAlignedRect();
}

int BlockMapWidget::cell_at(QPoint point) const {
    if (ratio_ <= 0) return -1;
    const QPoint device(int(point.x() * ratio_), int(point.y() * ratio_) + scroll_device());
    const int index = grid_.index_at(device);
    return index < int(cells_.size()) ? index : -1;
}

QString BlockMapWidget::fold_text() const {
    const int folded = total_ - int(cells_.size());
    if (folded <= 0) return {};
    const QString count = QLocale().toString(folded);
    return cells_.empty() ? tr("%1 blocks, all free").arg(count) : tr("%1 more free").arg(count);
}

int BlockMapWidget::fold_height() const {
    return fold_text().isEmpty() ? 0 : QFontMetrics(theme_->palette().fonts.small).height() + 6;
}

int BlockMapWidget::heightForWidth(int width) const {
    const qreal ratio = devicePixelRatioF();
    const BlockGrid grid = block_grid(int(cells_.size()), width, theme_->palette().metrics, ratio);
    const int row = int(std::ceil(grid.row_height() / ratio));
    const int rows = std::clamp(grid.rows, 0, most_rows);
    const int content = rows * row + fold_height();
    return std::clamp(content, least_rows * row, most_rows * row + fold_height());
}

QSize BlockMapWidget::sizeHint() const {
    return {260, heightForWidth(std::max(width(), 260))};
}
QSize BlockMapWidget::minimumSizeHint() const {
    return {80, 40};
}

int BlockMapWidget::scroll_device() const {
    return int(std::lround(verticalScrollBar()->value() * ratio_));
}

std::pair<int, int> BlockMapWidget::visible_cells() const {
    const int top = scroll_device() / grid_.row_height();
    const int bottom = (scroll_device() + image_.height()) / grid_.row_height() + 1;
    return {std::min(top * grid_.columns, int(cells_.size())),
            std::min(bottom * grid_.columns, int(cells_.size()))};
}

void BlockMapWidget::relayout() {
    const qreal ratio = devicePixelRatioF();
    const BlockGrid grid =
        block_grid(int(cells_.size()), viewport()->width(), theme_->palette().metrics, ratio);
    if (ratio != ratio_ || grid.cell != grid_.cell)
        sprites_.reset(grid.cell, block_size_, theme_->palette(), ratio);
    ratio_ = ratio;
    grid_ = grid;
    const int content = int(std::ceil(grid_.rows * grid_.row_height() / ratio_)) + fold_height();
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(std::max(1, int(grid_.row_height() / ratio_)));
    verticalScrollBar()->setRange(0, std::max(0, content - viewport()->height()));
    image_stale_ = true;
    if (heightForWidth(width()) != height()) updateGeometry();
    viewport()->update();
}

void BlockMapWidget::redraw_all() {
    const QSize size = (QSizeF(viewport()->size()) * ratio_).toSize();
    if (image_.size() != size) image_ = QImage(size, QImage::Format_ARGB32_Premultiplied);
    image_.fill(theme_->palette().panel);
    QPainter painter(&image_);
    const auto [first, last] = visible_cells();
    for (int i = first; i < last; ++i)
        draw_cell(painter, i);
    image_stale_ = false;
}

void BlockMapWidget::draw_cell(QPainter& painter, int index) {
    const QRect target = grid_.rect(index).translated(0, -scroll_device());
    painter.fillRect(target, theme_->palette().panel);
    painter.drawImage(target.topLeft(), sprites_.sprite(cells_[std::size_t(index)]));
}

void BlockMapWidget::paintEvent(QPaintEvent* event) {
    const Spent spent(&paint_s_);
    if (devicePixelRatioF() != ratio_) relayout();
    if (image_stale_) redraw_all();
    const Palette& palette = theme_->palette();
    QPainter painter(viewport());
    painter.setClipRegion(event->region());
    image_.setDevicePixelRatio(ratio_);
    painter.drawImage(QPointF(0, 0), image_);
    image_.setDevicePixelRatio(1);  // cells are drawn into it in device pixels

    const auto outline = [&](int index, const QColor& color, qreal width) {
        const QRect device = grid_.rect(index).translated(0, -scroll_device());
        const QRectF box(QPointF(device.topLeft()) / ratio_, QSizeF(device.size()) / ratio_);
        painter.setPen(QPen(color, width));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box.adjusted(width / 2 - 1, width / 2 - 1, 1 - width / 2, 1 - width / 2));
    };
    const qint64 now = clock_.elapsed();
    for (const auto& [index, end] : outlined_)
        if (end > now) outline(index, palette.text, 1);
    if (current_ >= 0)
        outline(current_, hasFocus() ? palette.focus : palette.text, palette.metrics.focus_width);

    const QString fold = fold_text();
    if (!fold.isEmpty()) {
        const double y = grid_.rows * grid_.row_height() / ratio_ - verticalScrollBar()->value();
        painter.setFont(palette.fonts.small);
        painter.setPen(palette.dim);
        painter.drawText(QRectF(0, y + 2, viewport()->width(), fold_height()),
                         Qt::AlignLeft | Qt::AlignVCenter, fold);
    }
    if (hasFocus() && current_ < 0) {
        painter.setPen(QPen(palette.focus, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(viewport()->rect().adjusted(0, 0, -1, -1));
    }
}

void BlockMapWidget::end_outlines() {
    const qint64 now = clock_.elapsed();
    for (auto it = outlined_.begin(); it != outlined_.end();) {
        if (it->second > now) {
            ++it;
            continue;
        }
        viewport()->update(cell_rect(it->first).adjusted(-1, -1, 1, 1));
        it = outlined_.erase(it);
    }
    if (!outlined_.empty()) outline_timer_.start();
}

void BlockMapWidget::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    relayout();
}

void BlockMapWidget::scrollContentsBy(int, int) {
    image_stale_ = true;
    viewport()->update();
}

void BlockMapWidget::set_current(int index) {
    if (index == current_) return;
    for (const int i : {current_, index})
        if (i >= 0) viewport()->update(cell_rect(i).adjusted(-2, -2, 2, 2));
    current_ = index;
    Q_EMIT pointed(index);
}

void BlockMapWidget::keyPressEvent(QKeyEvent* event) {
    const int count = int(cells_.size());
    int next = std::max(current_, 0);
    switch (event->key()) {
        case Qt::Key_Left:
            next = current_ < 0 ? 0 : current_ - 1;
            break;
        case Qt::Key_Right:
            next = current_ < 0 ? 0 : current_ + 1;
            break;
        case Qt::Key_Up:
            next = current_ < 0 ? 0 : current_ - grid_.columns;
            break;
        case Qt::Key_Down:
            next = current_ < 0 ? 0 : current_ + grid_.columns;
            break;
        case Qt::Key_Home:
            next = 0;
            break;
        case Qt::Key_End:
            next = count - 1;
            break;
        case Qt::Key_Space:
            Q_EMIT pause_requested();
            return;
        case Qt::Key_Period:
            Q_EMIT step_requested();
            return;
        default:
            QAbstractScrollArea::keyPressEvent(event);
            return;
    }
    if (next < 0 || next >= count) return;
    set_current(next);
    const QRect box = cell_rect(next);
    QScrollBar* bar = verticalScrollBar();
    if (box.top() < 0) bar->setValue(bar->value() + box.top() - 2);
    if (box.bottom() > viewport()->height())
        bar->setValue(bar->value() + box.bottom() - viewport()->height() + 2);
}

void BlockMapWidget::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
}

void BlockMapWidget::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    set_current(-1);
    viewport()->update();
}

bool BlockMapWidget::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::MouseMove)
        set_current(cell_at(static_cast<QMouseEvent*>(event)->position().toPoint()));
    if (event->type() == QEvent::Leave) set_current(-1);
    return QAbstractScrollArea::viewportEvent(event);
}

}  // namespace recto::ui
