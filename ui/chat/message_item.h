// One message of the transcript: its parsed blocks, the layouts of those that were looked at, and heights
// (measured or estimated) of all. A message is a column of parts: one for each block, then its footer.
// Parts tile the message from 0 to height().
#pragma once
#include <QDateTime>
#include <QElapsedTimer>
#include <memory>
#include <vector>

#include "ui/chat/block_layout.h"
#include "ui/markdown/document.h"
#include "ui/store/records.h"

namespace recto::ui {

// What a row of the transcript model says, without the text itself.
struct MessageData {
    MessageId id = 0;
    Role role = Role::user;
    MessageState state = MessageState::done;
    bool loaded = false;
    bool live = false;  // it grows now
    int chars = 0;
    int version = 1;  // 1-based
    int version_count = 1;
    QString stats, stats_help, error, note;
    QDateTime created;

    bool operator==(const MessageData&) const = default;
};

enum class MessageAction : quint8 {
    none,
    copy,
    edit,
    regenerate,
    continue_answer,
    previous_version,
    next_version
};

struct ActionBox {
    MessageAction action = MessageAction::none;  // none: a label
    QRectF rect;                                 // message coordinates
    QString label;
    bool enabled = true;
};

struct LayoutContext {
    const Palette* palette = nullptr;
    qreal width = 0;           // of the transcript's column
    bool busy = false;         // an answer is under way: what would start another is disabled
    bool continuable = false;  // the last answer can go on; for the last message only
    QString live_line;         // what the growing answer shows instead of statistics
};

// The look of one message around its text. Pure.
struct MessageLook {
    bool focused = false;
    bool hovered = false;  // a person's message shows its actions when pointed at or focused
    MessageAction hovered_action = MessageAction::none;
    int hovered_code = -1;  // part whose Copy button is pointed at
};

class MessageItem {
  public:
    static constexpr int relayout_interval_ms = 250;  // of an open block longer than
    static constexpr int long_block = 4000;           // UTF-16 units

    const MessageData& data() const { return data_; }
    // True if the height or the footer may have changed.
    bool set_data(const MessageData& data);

    bool parsed() const { return parsed_; }
    // The whole text; what was taken before is taken over when it only grew. Returns 0, or the milliseconds
    // to wait because a long open block was laid out just now (then nothing has changed).
    int take_text(const QString& text, const LayoutContext& context, bool at_once = false);

    int part_count() const { return int(blocks().size()) + 1; }
    int footer() const { return int(blocks().size()); }
    int first_open_part() const {
        return document_ ? int(document_->frozen()) : 0;
    }  // later text changes none before
    const std::vector<markdown::Block>& blocks() const;
    qreal part_top(int part) const;
    qreal part_bottom(int part) const;
    qreal height() const;
    qreal footer_top() const { return height() - footer_height_; }
    int part_at(qreal y) const;
    bool measured(int part) const;
    void measure(int part, const LayoutContext& context);  // makes the layout
    void drop_layout(int part);                            // keeps the height
    void invalidate(const LayoutContext& context);         // other width, palette or zoom: estimates again
    void invalidate_footer() { footer_measured_ = false; }

    // An editor over the body takes this much room instead of the text; 0: none.
    void set_editor_height(qreal height);
    qreal editor_height() const { return editor_height_; }
    QRectF body_rect(const LayoutContext& context) const;  // where an editor goes

    BlockLayout* layout(int part) const;
    QPointF block_origin(int part, const LayoutContext& context) const;
    QRectF bubble(const LayoutContext& context) const;  // empty for answers
    const std::vector<ActionBox>& actions() const { return actions_; }
    QRectF stats_rect() const { return stats_rect_; }

    void paint(QPainter& painter, QPointF at, QRectF visible, const LayoutContext& context,
               const MessageLook& look, const std::vector<TextRange>& selected,
               int first_selected_part) const;

    int text_length(int part) const { return part < footer() ? int(blocks()[size_t(part)].text.size()) : 0; }

  private:
    qreal block_width(const LayoutContext& context) const;
    qreal estimate_unparsed(const LayoutContext& context) const;
    void lay_out_footer(const LayoutContext& context);
    void add_action(MessageAction action, const QString& label, bool enabled, const LayoutContext& context,
                    QPointF& at);
    void paint_footer(QPainter& painter, QPointF at, const LayoutContext& context,
                      const MessageLook& look) const;
    void restack() const;

    MessageData data_;
    bool parsed_ = false;
    std::unique_ptr<markdown::Document> document_;  // answers
    std::vector<markdown::Block> plain_;            // what a person typed
    bool finished_ = false;
    qsizetype taken_ = 0;  // length of the text taken so far
    QString tail_;         // and its end, to tell growth from replacement
    QElapsedTimer last_take_;

    struct Part {
        std::unique_ptr<BlockLayout> layout;
        float height = 0;  // without the gap above
        bool measured = false;
    };
    std::vector<Part> parts_;
    mutable std::vector<float> tops_;  // of parts, footer included, then the height
    mutable bool stacked_ = false;
    qreal editor_height_ = 0;

    bool footer_measured_ = false;
    qreal footer_height_ = 0;
    qreal estimated_ = 0;  // height before parsing
    qreal line_height_ = 0;
    std::unique_ptr<QTextLayout> stats_, note_, error_;
    QPointF stats_at_, note_at_, error_at_;
    QRectF stats_rect_;
    qreal context_mark_y_ = -1;
    std::vector<ActionBox> actions_;  // relative to the footer's top
};

}  // namespace recto::ui
