// Where a message is written: a field that grows from one line to 40 % of the pane, pasted texts as chips,
// what it costs in tokens, and one button that sends or stops.
#pragma once
#include <QFrame>
#include <QList>

#include "ui/chat/context_meter.h"
#include "ui/chat/text_field.h"

class QHBoxLayout;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace recto::ui {

// A long text that was pasted: part of the message, shown as one word.
struct PastedText {
    QString text;
    int tokens = -1;  // -1: not counted
};

class InputBox : public QWidget {
    Q_OBJECT
  public:
    explicit InputBox(Theme* theme, QWidget* parent = nullptr);

    TextField* field() const { return field_; }
    QPushButton* sampling_button() const { return sampling_; }
    QPushButton* prompt_button() const { return prompt_; }

    QString text() const;  // as it would be sent: what was pasted, then what was written
    void set_text(const QString& text);
    void clear();
    const QList<PastedText>& chips() const { return chips_; }

    void set_send_key(SendKey key);
    void set_pane_height(int height);              // the field's limit is 40 % of it
    void set_busy(bool busy, bool stopping);       // the button stops
    void set_blocked_reason(const QString& text);  // why nothing can be sent; empty: it can
    void set_context(const ContextUse& use);
    void set_token_count(int tokens, int remaining);  // of text(); tokens < 0: not known
    void set_sampling_summary(const QString& text);
    void set_has_system_prompt(bool has);

  Q_SIGNALS:
    void send_requested(const QString& text);
    void stop_requested();
    void text_changed(const QString& text);  // for the draft and the token count
    void recall_requested();                 // ↑ in the empty field

  protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void send();
    void add_chip(const QString& text);
    void rebuild_chips();
    void fit_height();
    void fit_column();
    void update_state();
    void retranslate();
    void apply_theme();
    QString chip_label(const PastedText& chip) const;

    Theme* theme_;
    QFrame* frame_;
    TextField* field_;
    QWidget* chip_row_;
    QVBoxLayout* chip_layout_;
    QList<PastedText> chips_;
    QLabel* note_;  // tokens, or why nothing can be sent
    ContextMeter* meter_;
    QPushButton *sampling_, *prompt_, *send_;
    SendKey send_key_ = SendKey::enter;
    int pane_height_ = 0;
    bool busy_ = false, stopping_ = false, has_prompt_ = false;
    QString blocked_;
    int tokens_ = -1, remaining_ = 0;
};

}  // namespace recto::ui
