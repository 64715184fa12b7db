#include "ui/chat/transcript_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <unordered_map>

#include "ui/chat/transcript_view.h"

namespace recto::ui {

namespace {

class MessageInterface : public QAccessibleInterface, public QAccessibleActionInterface {
  public:
    MessageInterface(TranscriptView* view, int row) : view_(view), row_(row) {}

    bool isValid() const override { return view_ && row_ < view_->transcript().count(); }
    QObject* object() const override { return nullptr; }
    QWindow* window() const override { return view_ ? view_->window()->windowHandle() : nullptr; }
    QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(view_); }
    QAccessibleInterface* child(int) const override { return nullptr; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    QAccessible::Role role() const override { return QAccessible::ListItem; }
    void setText(QAccessible::Text, const QString&) override {}

    QRect rect() const override {
        const QRect rect = view_->message_rect(row_);
        return {view_->viewport()->mapToGlobal(rect.topLeft()), rect.size()};
    }

    QString text(QAccessible::Text kind) const override {
        if (!isValid()) return {};
        if (kind == QAccessible::Name) return view_->message_title(row_);
        if (kind == QAccessible::Value) return view_->transcript().text(row_);
        if (kind == QAccessible::Description) return view_->transcript().item(row_).data().stats;
        return {};
    }

    QAccessible::State state() const override {
        QAccessible::State state;
        state.focusable = state.selectable = state.readOnly = state.multiLine = true;
        state.focused = view_->hasFocus() && view_->focused_message() == row_;
        state.offscreen = !view_->message_rect(row_).intersects(view_->viewport()->rect());
        return state;
    }

    void* interface_cast(QAccessible::InterfaceType type) override {
        return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this)
                                                    : nullptr;
    }
    QStringList actionNames() const override { return {setFocusAction()}; }
    void doAction(const QString& name) override {
        if (name != setFocusAction()) return;
        view_->setFocus();
        view_->focus_message(row_);
    }
    QStringList keyBindingsForAction(const QString&) const override { return {}; }

  private:
    QPointer<TranscriptView> view_;
    int row_;
};

class TranscriptInterface : public QAccessibleWidget {
  public:
    explicit TranscriptInterface(TranscriptView* view) : QAccessibleWidget(view, QAccessible::List) {}
    ~TranscriptInterface() override {
        for (const auto& [row, id] : children_)
            QAccessible::deleteAccessibleInterface(id);
    }

    int childCount() const override { return view()->transcript().count(); }

    QAccessibleInterface* child(int row) const override {
        if (row < 0 || row >= childCount()) return nullptr;
        const auto known = children_.find(row);
        if (known != children_.end()) return QAccessible::accessibleInterface(known->second);
        auto* message = new MessageInterface(view(), row);
        children_[row] = QAccessible::registerAccessibleInterface(message);
        return message;
    }

    int indexOfChild(const QAccessibleInterface* child) const override {
        for (const auto& [row, id] : children_)
            if (QAccessible::accessibleInterface(id) == child) return row;
        return -1;
    }

    QAccessibleInterface* childAt(int x, int y) const override {
        const QPoint point = view()->viewport()->mapFromGlobal(QPoint(x, y));
        for (int row = 0; row < childCount(); ++row)
            if (view()->message_rect(row).contains(point)) return child(row);
        return nullptr;
    }

    QAccessibleInterface* focusChild() const override {
        return view()->hasFocus() ? child(view()->focused_message()) : nullptr;
    }

  private:
    TranscriptView* view() const { return static_cast<TranscriptView*>(widget()); }
    mutable std::unordered_map<int, QAccessible::Id> children_;
};

QAccessibleInterface* make_interface(const QString& class_name, QObject* object) {
    if (class_name != QLatin1String("recto::ui::TranscriptView")) return nullptr;
    auto* view = qobject_cast<TranscriptView*>(object);
    return view ? new TranscriptInterface(view) : nullptr;
}

}  // namespace

// Qt ignores a factory that is installed already.
void install_transcript_accessibility() {
    QAccessible::installFactory(make_interface);
}

}  // namespace recto::ui
