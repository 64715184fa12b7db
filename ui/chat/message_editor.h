// Editing a message in place: the text over the message, and what to do with it.
#pragma once
#include <QWidget>

#include "ui/store/records.h"

class QPushButton;

namespace recto::ui {

class TextField;
class Theme;

class MessageEditor : public QWidget {
    Q_OBJECT
  public:
    MessageEditor(Theme* theme, Role role, const QString& text, QWidget* parent = nullptr);
    TextField* field() const { return field_; }
    int wanted_height(int longest) const;

  Q_SIGNALS:
    void accepted(const QString& text);
    void rejected();
    void height_wanted();

  private:
    void accept();
    TextField* field_;
    QPushButton* save_;
    QPushButton* cancel_;
};

}  // namespace recto::ui
