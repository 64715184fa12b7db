// Keeps an input method's keys away from a text field's own. Every text field owns one.
//
// "Composing" is what the field's own input method events say. While composing, Enter, Esc, Tab, Space,
// arrows, digits and page keys belong to the input method: no shortcut fires, nothing is sent, and a Return
// that reaches the field anyway is swallowed (a stock field would insert a newline and drop the word). A
// Return right behind a commit is the one that confirmed the word, and is swallowed too.
#pragma once
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <functional>

class QKeyEvent;
class QWidget;

namespace recto::ui {

class CompositionGuard : public QObject {
    Q_OBJECT
  public:
    static constexpr int longest_wait_ms = 100;

    explicit CompositionGuard(QWidget* field);

    bool composing() const { return !preedit_.isEmpty(); }
    const QString& preedit() const { return preedit_; }

    // Ends the composition so that its word is part of the text, then calls. At once, or when the input
    // method has answered, after longest_wait_ms at the latest. Before reading a field's text: always this.
    void commit_then(std::function<void()> then);

  Q_SIGNALS:
    void composing_changed(bool composing);

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    bool swallows(const QKeyEvent& key) const;
    void take_event(const QString& preedit, bool commits);
    void finish_waiting();

    QPointer<QWidget> field_;
    QString preedit_;
    bool just_committed_ = false;
    QTimer wait_;
    std::function<void()> then_;
};

}  // namespace recto::ui
