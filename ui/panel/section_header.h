// A section's title on the left, a value or controls on the right.
#pragma once
#include <QWidget>

class QHBoxLayout;
class QLabel;

namespace recto::ui {

class Theme;

class SectionHeader : public QWidget {
    Q_OBJECT
  public:
    SectionHeader(const Theme* theme, QWidget* parent = nullptr);
    void set_title(const QString& title);
    void set_value(const QString& value);
    QString value() const;
    void add_control(QWidget* control);

  private:
    void restyle();
    const Theme* theme_;
    QHBoxLayout* row_;
    QLabel* title_;
    QLabel* value_;
};

}  // namespace recto::ui
