#include "ui/window_actions.h"

#include <QMenuBar>

namespace recto::ui {

WindowActions::WindowActions(QMenuBar* bar, QWidget* window) : QObject(window), bar_(bar), window_(window) {}

QMenu* WindowActions::add_menu(const char* name, Text text, QMenu* parent) {
    QMenu* menu = parent == nullptr ? bar_->addMenu(QString()) : parent->addMenu(QString());
    menu->setObjectName(QString::fromLatin1(name));
    texts_.push_back([menu, text = std::move(text)] { menu->setTitle(text()); });
    texts_.back()();
    return menu;
}

QAction* WindowActions::add(QMenu* menu, const char* name, Text text, const QList<QKeySequence>& keys,
                            std::function<void()> run) {
    auto* action = new QAction(this);
    action->setObjectName(QString::fromLatin1(name));
    action->setShortcuts(keys);
    action->setShortcutContext(Qt::WindowShortcut);
    connect(action, &QAction::triggered, window_, [run = std::move(run)] { run(); });
    texts_.push_back([action, text = std::move(text)] { action->setText(text()); });
    texts_.back()();
    if (menu != nullptr) menu->addAction(action);
    window_->addAction(action);
    actions_.push_back(action);
    return action;
}

QAction* WindowActions::action(const char* name) const {
    return findChild<QAction*>(QString::fromLatin1(name), Qt::FindDirectChildrenOnly);
}

void WindowActions::retranslate() {
    for (const auto& text : texts_)
        text();
}

std::vector<std::pair<QString, QString>> WindowActions::shortcuts() const {
    std::vector<std::pair<QString, QString>> list;
    for (const QAction* action : actions_) {
        QStringList keys;
        for (const QKeySequence& key : action->shortcuts())
            keys << key.toString(QKeySequence::NativeText);
        if (keys.isEmpty()) continue;
        QString text = action->text();
        list.emplace_back(text.remove(QLatin1Char('&')), keys.join(QStringLiteral("  ")));
    }
    return list;
}

}  // namespace recto::ui
