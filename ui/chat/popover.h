// A panel that stands over the chat above its button. It belongs to the window (no popup grab: input methods
// keep working); Esc, its button or a click elsewhere closes it.
#pragma once
#include <QFrame>
#include <QPointer>

class QVBoxLayout;

namespace recto::ui {

class Theme;

class Popover : public QFrame {
    Q_OBJECT
  public:
    Popover(Theme* theme, QWidget* window_area);
    void toggle_above(QWidget* button);
    void close_popover();

  Q_SIGNALS:
    void opened();
    void closed();

  protected:
    QVBoxLayout* column() const { return column_; }
    Theme* theme() const { return theme_; }
    void watch(QWidget* child);  // Esc inside it closes the popover
    bool eventFilter(QObject* watched, QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

  private:
    void place();
    Theme* theme_;
    QVBoxLayout* column_;
    QPointer<QWidget> button_;
};

}  // namespace recto::ui
