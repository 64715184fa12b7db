// The transcript of one chat: one scroll area that draws the messages of a model with TranscriptModel's
// roles. No widget per message. Reading never changes anything; what a person asks for goes out as a signal.
#pragma once
#include <QAbstractItemModel>
#include <QAbstractScrollArea>
#include <QPointer>
#include <QPushButton>
#include <QTimer>

#include "ui/chat/transcript_layout.h"

class QMenu;

namespace recto::ui {

class MessageEditor;
class Theme;

class TranscriptView : public QAbstractScrollArea {
    Q_OBJECT
  public:
    explicit TranscriptView(Theme* theme, QWidget* parent = nullptr);
    ~TranscriptView() override;

    void set_model(QAbstractItemModel* model);
    QAbstractItemModel* model() const { return model_; }

    // What would start an answer is disabled meanwhile.
    void set_busy(bool busy);
    // The last answer can go on where it ended.
    void set_continuable(bool continuable);
    // Shown under the growing answer: "decoding · 61 tok/s · 74 tokens".
    void set_live_line(const QString& line);

    bool following() const { return following_; }
    void scroll_to_end();
    void show_message(int row);
    int focused_message() const { return focused_; }  // -1: none
    void focus_message(int row);
    void edit_message(int row);
    bool editing() const { return editor_ != nullptr; }
    void cancel_edit();

    bool has_selection() const { return selection_from_ != selection_to_; }
    QString selected_text();
    void select(TextPlace from, TextPlace to);
    void select_all();
    void clear_selection();
    void copy();  // the selection, or the focused message
    void copy_message(int row);
    void copy_code(int row, int part);
    void act(int row, MessageAction action);

    // For tests and accessibility.
    TranscriptLayout& transcript() { return layout_; }
    QRect message_rect(int row) const;     // viewport coordinates
    QString message_title(int row) const;  // "You, 14:02: Why does a paged…"
    void relayout();

    static bool is_safe_address(const QString& address);  // http, https, mailto

  Q_SIGNALS:
    void regenerate_requested(int row);
    void continue_requested();
    void version_requested(int row, int index);  // 0-based
    void edit_submitted(int row, const QString& text);
    void rows_needed(int first, int last);  // shown, but not loaded
    void link_hovered(const QString& address);
    void link_activated(const QString& address);  // after a click, and only if safe

  protected:
    bool event(QEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void changeEvent(QEvent* event) override;

  private:
    struct Hit {
        int row = -1;
        MessageAction action = MessageAction::none;
        bool enabled = false;
        int code = -1;  // part whose Copy button it is
        QString link;
        bool text = false;
        bool stats = false;
        bool operator==(const Hit&) const = default;
    };

    MessageData read_row(int row) const;
    void reset_rows();
    void on_rows_inserted(int first, int last);
    void on_rows_removed(int first, int last);
    void on_data_changed(int first, int last, const QList<int>& roles);
    void schedule_relayout();
    void schedule_from(int row, int part);  // only this message changed, from this part on
    void schedule();
    void apply_changes();
    void update_context();
    void apply_theme();
    void sync_scroll_bar();
    void place_editor();
    void place_follow_button();
    void stop_following();
    QPointF to_content(QPointF viewport_point) const;
    QPointF origin() const;  // viewport coordinates of the content's top left
    Hit hit_at(QPointF viewport_point);
    void set_hover(const Hit& hit);
    TextPlace place_at(QPointF viewport_point) { return layout_.place_at(to_content(viewport_point)); }
    void extend_selection(int key, Qt::KeyboardModifiers modifiers);
    void move_focus(int direction);
    bool handle_scroll_key(int key);
    void fill_menu(QMenu& menu, int row, const Hit& hit);
    void scroll_sideways(const Hit& hit, QPointF viewport_point, qreal dx);
    QString tool_tip(const Hit& hit) const;
    void announce_focus();

    Theme* theme_;
    QPointer<QAbstractItemModel> model_;
    TranscriptLayout layout_;
    qreal column_x_ = 0;
    bool following_ = true;
    bool syncing_ = false;
    bool relayout_scheduled_ = false;
    bool changed_all_ = true;
    int changed_row_ = -1, changed_part_ = 0;
    bool new_text_ = false;
    qreal restore_offset_ = -1;  // where the reader was before rows went; < 0: nowhere
    int needed_first_ = -1, needed_last_ = -1;
    QTimer late_text_;  // a long open block waits for its next layout
    std::vector<int> late_rows_;

    int focused_ = -1;
    bool ring_ = false;  // focus came by keyboard
    Hit hover_;
    Hit pressed_;
    TextPlace selection_from_, selection_to_;  // anchor and cursor
    bool selecting_ = false;
    QTimer autoscroll_;
    QPointF drag_point_;
    QElapsedTimer last_double_click_;

    QPushButton* follow_button_;
    MessageEditor* editor_ = nullptr;
    int editing_row_ = -1;
};

}  // namespace recto::ui
