// The menu bar and its shortcuts: only what works. Texts are functions, so that they follow the language.
#pragma once
#include <QAction>
#include <QHash>
#include <QKeySequence>
#include <QMenu>
#include <QObject>
#include <functional>
#include <vector>

class QMenuBar;
class QWidget;

namespace recto::ui {

class WindowActions : public QObject {
    Q_OBJECT
  public:
    using Text = std::function<QString()>;
    WindowActions(QMenuBar* bar, QWidget* window);

    QMenu* add_menu(const char* name, Text text, QMenu* parent = nullptr);
    // `name` is the object name and what action() finds. An action without a menu lives by its shortcut.
    QAction* add(QMenu* menu, const char* name, Text text, const QList<QKeySequence>& keys,
                 std::function<void()> run);
    QAction* action(const char* name) const;
    void retranslate();
    // Name and keys of every action that has keys, in menu order: the list on F1.
    std::vector<std::pair<QString, QString>> shortcuts() const;

  private:
    QMenuBar* bar_;
    QWidget* window_;
    std::vector<std::function<void()>> texts_;
    std::vector<QAction*> actions_;
};

}  // namespace recto::ui
