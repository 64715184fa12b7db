// The system prompt of this chat. Taken over when the panel closes.
#pragma once
#include "ui/chat/popover.h"

class QLabel;
class QPushButton;

namespace recto::ui {

class TextField;

class PromptPopover : public Popover {
    Q_OBJECT
  public:
    PromptPopover(Theme* theme, QWidget* window_area);
    void set_prompt(const QString& text);
    TextField* field() const { return field_; }

  Q_SIGNALS:
    void prompt_changed(const QString& text);

  protected:
    void changeEvent(QEvent* event) override;

  private:
    void retranslate();
    void take();
    QLabel* title_;
    TextField* field_;
    QLabel* help_;
    QPushButton* done_;
    QString prompt_;
};

}  // namespace recto::ui
