// A plain-text field of several lines: grows with its text, safe with input methods, pastes plain text.
// Used for the message, for editing one in place and for the system prompt.
#pragma once
#include <QPlainTextEdit>

#include "ui/chat/composition_guard.h"
#include "ui/settings/settings.h"

namespace recto::ui {

class TextField : public QPlainTextEdit {
    Q_OBJECT
  public:
    // A paste above either limit is handed out as large_paste() where that is wanted.
    static constexpr qsizetype large_paste_characters = 4000;
    static constexpr qsizetype large_paste_lines = 100;

    explicit TextField(QWidget* parent = nullptr);

    CompositionGuard& guard() { return *guard_; }
    // Text as it would be read, or a word being composed.
    bool has_text() const { return !document()->isEmpty() || guard_->composing(); }
    bool is_blank() const;

    void set_send_key(SendKey key) { send_key_ = key; }
    void set_submits(bool submits) { submits_ = submits; }  // Enter (or Ctrl+Enter) emits submitted()
    void set_escape_cancels(bool cancels) {
        cancels_ = cancels;
    }  // Esc emits cancelled() and goes no further
    void set_hands_out_large_pastes(bool on) { hands_out_pastes_ = on; }
    void set_tab_moves_on(bool on) { setTabChangesFocus(on); }

    int height_for_text() const;  // with frame and margins, of all lines
    int height_for_lines(int lines) const;

  Q_SIGNALS:
    void submitted();
    void cancelled();
    void up_in_empty();
    void large_paste(const QString& text);
    void height_wanted();

  protected:
    bool event(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void insertFromMimeData(const QMimeData* source) override;
    bool canInsertFromMimeData(const QMimeData* source) const override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;

  private:
    CompositionGuard* guard_;
    SendKey send_key_ = SendKey::enter;
    bool submits_ = false;
    bool cancels_ = false;
    bool hands_out_pastes_ = false;
};

}  // namespace recto::ui
