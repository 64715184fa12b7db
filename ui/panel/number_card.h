// One large number with its meaning below it.
#pragma once
#include <QFrame>

class QLabel;

namespace recto::ui {

class Theme;

class NumberCard : public QFrame {
    Q_OBJECT
  public:
    NumberCard(const Theme* theme, QWidget* parent = nullptr);
    void set_caption(const QString& caption, const QString& formula);  // the formula is the tool tip
    void set_number(const QString& number);
    QString number() const;

  private:
    void restyle();
    const Theme* theme_;
    QLabel* number_;
    QLabel* caption_;
};

}  // namespace recto::ui
