#include "ui/chat/transcript_layout.h"

#include <algorithm>
#include <cmath>

namespace recto::ui {

namespace {

constexpr qreal top_pad = 22, bottom_pad = 22;

}  // namespace

void TranscriptLayout::clear() {
    items_.clear();
    recent_.clear();
    anchor_ = {};
    dirty();
}

void TranscriptLayout::insert(int row, const std::vector<MessageData>& rows) {
    if (row < count()) recent_.clear();
    std::vector<std::unique_ptr<MessageItem>> fresh;
    for (const MessageData& data : rows) {
        fresh.push_back(std::make_unique<MessageItem>());
        fresh.back()->set_data(data);
        if (context.palette) fresh.back()->invalidate(context);
    }
    if (row <= anchor_.item && count() > 0) anchor_.item += int(rows.size());
    items_.insert(items_.begin() + row, std::make_move_iterator(fresh.begin()),
                  std::make_move_iterator(fresh.end()));
    dirty();
}

void TranscriptLayout::remove(int first, int last) {
    items_.erase(items_.begin() + first, items_.begin() + last + 1);
    recent_.clear();
    if (anchor_.item > last)
        anchor_.item -= last - first + 1;
    else if (anchor_.item >= first)
        anchor_ = {std::max(0, first - 1), 0, 0};
    dirty();
}

void TranscriptLayout::set_data(int row, const MessageData& data) {
    const bool was_parsed = item(row).parsed();
    if (!item(row).set_data(data)) return;
    if (!was_parsed && context.palette) item(row).invalidate(context);
    dirty();
}

int TranscriptLayout::text_changed(int row, bool at_once) {
    MessageItem& message = item(row);
    if (!message.parsed()) return 0;  // whoever looks at it first parses it
    const int wait = message.take_text(text(row), context, at_once);
    if (anchor_.item == row) anchor_.part = std::min(anchor_.part, message.footer());
    dirty();
    return wait;
}

void TranscriptLayout::set_viewport(qreal column_width, qreal viewport_height) {
    viewport_ = viewport_height;
    if (column_width == context.width) return;
    context.width = column_width;
    if (context.palette) set_palette(context.palette);
}

void TranscriptLayout::set_palette(const Palette* palette) {
    context.palette = palette;
    const qreal before = anchor_.item < count() ? span_height(anchor_.item, anchor_.part) : 0;
    recent_.clear();
    for (auto& item : items_)
        item->invalidate(context);
    dirty();
    if (before > 0 && item(anchor_.item).parsed()) {
        measure(anchor_.item, anchor_.part);
        anchor_.delta *= span_height(anchor_.item, anchor_.part) / before;
    }
}

void TranscriptLayout::invalidate_footers() {
    for (auto& item : items_)
        item->invalidate_footer();
}

void TranscriptLayout::set_editor_height(int row, qreal height) {
    item(row).set_editor_height(height);
    dirty();
}

qreal TranscriptLayout::gap_before(int row) const {
    if (row == 0) return top_pad;
    // The row of a person's message's actions is part of the distance.
    return item(row - 1).data().role == Role::user ? 0 : context.palette->metrics.message_gap;
}

qreal TranscriptLayout::span_top(int row, int part) const {
    restack();
    return tops_[size_t(row)] + (part == 0 ? 0 : gap_before(row) + item(row).part_top(part));
}

qreal TranscriptLayout::span_height(int row, int part) const {
    return item(row).part_bottom(part) - item(row).part_top(part) + (part == 0 ? gap_before(row) : 0);
}

bool TranscriptLayout::step(int& row, int& part, int direction) {
    if (direction > 0) {
        if (part < item(row).footer()) {
            ++part;
        } else if (row + 1 < count()) {
            ++row;
            ensure_parsed(row);
            part = 0;
        } else {
            return false;
        }
    } else if (part > 0) {
        --part;
    } else if (row > 0) {
        --row;
        ensure_parsed(row);
        part = item(row).footer();
    } else {
        return false;
    }
    return true;
}

void TranscriptLayout::ensure_parsed(int row) {
    MessageItem& message = item(row);
    if (message.parsed()) return;
    if (!message.data().loaded) {
        if (needed) needed(row, row);
        return;
    }
    message.take_text(text(row), context, true);
    dirty();
}

void TranscriptLayout::measure(int row, int part) {
    ensure_parsed(row);
    MessageItem& message = item(row);
    part = std::min(part, message.footer());
    if (message.measured(part)) return;
    const qreal before = message.height();
    LayoutContext own = context;
    own.continuable = context.continuable && row == count() - 1;
    message.measure(part, own);
    if (part < message.footer()) recent_.push_back({row, part});
    if (message.height() != before) dirty();
}

void TranscriptLayout::scroll_by(qreal dy) {
    if (count() == 0) return;
    anchor_.delta += dy;
    normalize();
}

void TranscriptLayout::scroll_to(qreal y) {
    if (count() == 0) return;
    y = std::clamp<qreal>(y, 0, std::max<qreal>(0, total_height() - viewport_));
    restack();
    const auto next = std::upper_bound(tops_.begin(), tops_.begin() + count(), y);
    const int row = std::max(0, int(next - tops_.begin()) - 1);
    // A message that was never parsed is one part: remember how far into it the place was.
    const qreal before = item(row).height();
    const qreal inside = y - tops_[size_t(row)];
    ensure_parsed(row);
    const qreal scale = before > 0 ? item(row).height() / before : 1;
    const qreal place = std::max<qreal>(0, (inside - gap_before(row)) * scale);
    const int part = item(row).part_at(place);
    anchor_ = {row, part,
               part == 0 ? std::min(inside, place + gap_before(row)) : place - item(row).part_top(part)};
    measure(row, part);
    normalize();
}

// Brings the anchor to the part that the viewport's top lies in, measuring every part on the way.
void TranscriptLayout::normalize() {
    measure(anchor_.item, anchor_.part);
    anchor_.part = std::min(anchor_.part, item(anchor_.item).footer());
    while (anchor_.delta < 0) {
        int row = anchor_.item, part = anchor_.part;
        if (!step(row, part, -1)) {
            anchor_.delta = 0;
            break;
        }
        measure(row, part);
        anchor_ = {row, part, anchor_.delta + span_height(row, part)};
    }
    for (;;) {
        const qreal height = span_height(anchor_.item, anchor_.part);
        if (anchor_.delta < height) break;
        int row = anchor_.item, part = anchor_.part;
        if (!step(row, part, +1)) break;
        measure(row, part);
        anchor_ = {row, part, anchor_.delta - height};
    }
}

void TranscriptLayout::pin_to_end() {
    if (count() == 0) return;
    int row = count() - 1;
    ensure_parsed(row);
    int part = item(row).footer();
    qreal covered = bottom_pad;
    for (;;) {
        measure(row, part);
        covered += span_height(row, part);
        if (covered >= viewport_ || !step(row, part, -1)) break;
    }
    anchor_ = {row, part, std::max<qreal>(0, covered - viewport_)};
}

void TranscriptLayout::scroll_to_end() {
    pin_to_end();
}

void TranscriptLayout::lay_out() {
    if (count() == 0 || !context.palette || context.width <= 0) return;
    anchor_.item = std::min(anchor_.item, count() - 1);
    normalize();
    int row = anchor_.item, part = anchor_.part;
    qreal y = -anchor_.delta;
    for (;;) {
        measure(row, part);
        y += span_height(row, part);
        if (y >= viewport_) break;
        if (!step(row, part, +1)) {
            if (y + bottom_pad < viewport_) pin_to_end();
            break;
        }
    }
    trim();
}

void TranscriptLayout::trim() {
    const qreal top = offset() - viewport_, bottom = offset() + 2 * viewport_;
    for (size_t tries = recent_.size(); recent_.size() > kept_layouts && tries > 0; --tries) {
        const auto [row, part] = recent_.front();
        recent_.pop_front();
        if (row >= count() || part >= item(row).footer() || !item(row).layout(part)) continue;
        const qreal y = span_top(row, part);
        if (y > bottom || y + span_height(row, part) < top)
            item(row).drop_layout(part);
        else
            recent_.push_back({row, part});
    }
}

void TranscriptLayout::restack() const {
    if (stacked_) return;
    tops_.resize(items_.size() + 1);
    qreal y = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
        tops_[i] = y;
        y += gap_before(int(i)) + items_[i]->height();
    }
    tops_[items_.size()] = y;
    stacked_ = true;
}

qreal TranscriptLayout::offset() const {
    return count() == 0 ? 0 : std::round(span_top(anchor_.item, anchor_.part) + anchor_.delta);
}

qreal TranscriptLayout::total_height() const {
    if (count() == 0) return 0;
    restack();
    return std::ceil(tops_.back() + bottom_pad);
}

bool TranscriptLayout::at_end() const {
    return count() == 0 || offset() + viewport_ + text_line_height(*context.palette) >= total_height();
}

qreal TranscriptLayout::item_top(int row) const {
    restack();
    return tops_[size_t(row)] + gap_before(row);
}

int TranscriptLayout::item_at(qreal y) const {
    if (count() == 0) return -1;
    restack();
    const auto next = std::upper_bound(tops_.begin(), tops_.begin() + count(), y);
    return std::max(0, int(next - tops_.begin()) - 1);
}

void TranscriptLayout::show_item(int row, bool at_top) {
    ensure_parsed(row);
    const qreal top = item_top(row), height = item(row).height();
    if (at_top || height >= viewport_ || top < offset()) {
        const bool whole_visible = top >= offset() && top + height <= offset() + viewport_;
        if (!whole_visible || at_top) {
            anchor_ = {row, 0, gap_before(row) - 12};
            normalize();
        }
    } else {
        show_range(top, top + height);
    }
    lay_out();
}

void TranscriptLayout::show_range(qreal top, qreal bottom) {
    if (top < offset())
        scroll_by(top - offset() - 4);
    else if (bottom > offset() + viewport_)
        scroll_by(bottom - offset() - viewport_ + 4);
    lay_out();
}

TextPlace TranscriptLayout::place_at(QPointF point) {
    const int row = item_at(point.y());
    if (row < 0) return {};
    ensure_parsed(row);
    MessageItem& message = item(row);
    if (message.footer() == 0) return {row, 0, 0};
    const int part = message.part_at(point.y() - item_top(row));
    if (part == message.footer()) return {row, part - 1, message.text_length(part - 1)};
    measure(row, part);
    const QPointF local = point - QPointF(0, item_top(row)) - message.block_origin(part, context);
    return {row, part, message.layout(part)->position_at(local)};
}

QRectF TranscriptLayout::place_rect(TextPlace place) {
    if (place.item < 0 || place.item >= count()) return {};
    measure(place.item, place.part);
    MessageItem& message = item(place.item);
    const BlockLayout* layout = message.layout(place.part);
    if (!layout) return QRectF(0, item_top(place.item), 1, text_line_height(*context.palette));
    return layout->cursor_rect(place.offset)
        .translated(message.block_origin(place.part, context))
        .translated(0, item_top(place.item));
}

TextPlace TranscriptLayout::last_place() {
    if (count() == 0) return {};
    const int row = count() - 1;
    ensure_parsed(row);
    const int part = std::max(0, item(row).footer() - 1);
    return {row, part, item(row).text_length(part)};
}

QString TranscriptLayout::selected_text(TextPlace from, TextPlace to) {
    QString out;
    if (to < from) std::swap(from, to);
    for (int row = std::max(0, from.item); row <= to.item && row < count(); ++row) {
        ensure_parsed(row);
        const auto& blocks = item(row).blocks();
        bool first = true;
        for (int part = row == from.item ? from.part : 0; part < int(blocks.size()); ++part) {
            if (row == to.item && part > to.part) break;
            const markdown::Block& block = blocks[size_t(part)];
            const int begin = row == from.item && part == from.part ? from.offset : 0;
            const int end = row == to.item && part == to.part ? to.offset : int(block.text.size());
            if (first)
                out += out.isEmpty() ? QString() : QStringLiteral("\n\n");
            else if (!out.endsWith(u'\n') || !block.joins_previous)
                out += block.tight || block.joins_previous ? QStringLiteral("\n") : QStringLiteral("\n\n");
            first = false;
            if (begin == 0 && end > 0 && !block.marker.isEmpty())
                out += QString((block.indent - 1) * 2, u' ') + block.marker + u' ';
            QString piece = block.text.mid(begin, end - begin);
            if (piece.endsWith(u'\n') && !block.joins_next) piece.chop(1);
            out += piece;
        }
    }
    return out;
}

}  // namespace recto::ui
