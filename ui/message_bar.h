// One sentence at the bottom of the window with what can be done about it: undo, stop, show. The newest
// replaces the one before.
#pragma once
#include <QFrame>
#include <functional>
#include <utility>
#include <vector>

class QHBoxLayout;
class QLabel;

namespace recto::ui {

class Theme;

class MessageBar : public QFrame {
    Q_OBJECT
  public:
    using Action = std::pair<QString, std::function<void()>>;
    MessageBar(const Theme* theme, QWidget* parent = nullptr);
    // Stays until dismissed, replaced, or an action was chosen. `severe` is announced and drawn as a warning.
    void show_message(const QString& sentence, std::vector<Action> actions = {}, bool severe = false);
    void dismiss();
    QString sentence() const;

  private:
    void restyle();
    const Theme* theme_;
    QHBoxLayout* row_;
    QLabel* label_;
    std::vector<QWidget*> buttons_;
    bool severe_ = false;
};

}  // namespace recto::ui
