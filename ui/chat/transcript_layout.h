// All messages of a transcript, one below the other, and a viewport over them. Only what the viewport shows
// is parsed and laid out; the rest has estimated heights. When an estimate turns out wrong, the line at the
// top of the viewport stays where it is: the viewport hangs on an anchor, not on a number of pixels.
// No widget: it is driven by one and tested without one.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "ui/chat/message_item.h"

namespace recto::ui {

// A place in the text: ordered, so that selections can be compared.
struct TextPlace {
    int item = -1;
    int part = 0;
    int offset = 0;
    auto operator<=>(const TextPlace&) const = default;
};

class TranscriptLayout {
  public:
    // text: of a row; empty while it is not loaded. needed: rows whose text is missing though they are shown.
    std::function<QString(int row)> text;
    std::function<void(int first, int last)> needed;

    LayoutContext context;

    int count() const { return int(items_.size()); }
    MessageItem& item(int row) { return *items_[size_t(row)]; }
    const MessageItem& item(int row) const { return *items_[size_t(row)]; }

    void clear();
    void insert(int row, const std::vector<MessageData>& rows);
    void remove(int first, int last);
    void set_data(int row, const MessageData& data);
    // The row's text changed. Returns 0 or the milliseconds to wait (see MessageItem::take_text).
    int text_changed(int row, bool at_once = false);

    void set_viewport(qreal column_width, qreal viewport_height);
    void set_palette(const Palette* palette);
    void invalidate_footers();
    void set_editor_height(int row, qreal height);

    void scroll_by(qreal dy);
    void scroll_to(qreal y);
    void scroll_to_end();
    void show_item(int row, bool at_top = false);  // scrolls as little as needed
    void show_range(qreal top, qreal bottom);
    // Makes what the viewport shows real. Call before painting.
    void lay_out();

    qreal offset() const;  // content y of the viewport's top
    qreal total_height() const;
    qreal viewport_height() const { return viewport_; }
    bool at_end() const;            // within one line
    qreal item_top(int row) const;  // of the message itself, below the gap
    int item_at(qreal y) const;     // nearest; -1: empty
    void ensure_parsed(int row);

    TextPlace place_at(QPointF content_point);
    QRectF place_rect(TextPlace place);  // content coordinates; measures the block
    TextPlace first_place() const { return {0, 0, 0}; }
    TextPlace last_place();
    QString selected_text(TextPlace from, TextPlace to);

    qsizetype laid_out() const { return qsizetype(recent_.size()); }  // blocks with a layout

  private:
    struct Anchor {
        int item = 0;
        int part = 0;
        qreal delta = 0;  // from the part's top to the viewport's top
    };
    static constexpr size_t kept_layouts = 600;

    qreal gap_before(int row) const;
    qreal span_top(int row, int part) const;  // parts tile the whole content: the first one takes the gap
    qreal span_height(int row, int part) const;
    bool step(int& row, int& part, int direction);
    void measure(int row, int part);
    void normalize();
    void pin_to_end();
    void restack() const;
    void dirty() { stacked_ = false; }
    void trim();

    std::vector<std::unique_ptr<MessageItem>> items_;
    mutable std::vector<qreal> tops_;
    mutable bool stacked_ = false;
    Anchor anchor_;
    qreal viewport_ = 0;
    std::deque<std::pair<int, int>> recent_;  // parts with a layout, oldest first
};

}  // namespace recto::ui
