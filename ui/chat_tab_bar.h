// The tabs above the chat: colour, title, close. Holds no chat: it shows what it is told.
#pragma once
#include <QTabBar>

#include "ui/models/owner_palette.h"
#include "ui/store/records.h"

namespace recto::ui {

class Theme;

// The one tab that is no chat. Chats' ids are positive.
constexpr ChatId benchmark_tab = -1;

class ChatTabBar : public QTabBar {
    Q_OBJECT
  public:
    ChatTabBar(const Theme* theme, QWidget* parent = nullptr);
    int add_chat(ChatId id);
    int index_of(ChatId id) const;    // -1: no tab
    ChatId chat_at(int index) const;  // 0: none
    void describe(ChatId id, const QString& title, const QString& state, bool has_color, OwnerStyle style);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

  Q_SIGNALS:
    void close_wanted(int index);
    void menu_wanted(int index, QPoint global);

  protected:
    void paintEvent(QPaintEvent* event) override;
    void tabInserted(int index) override;
    void tabRemoved(int index) override;
    QSize tabSizeHint(int index) const override;
    QSize minimumTabSizeHint(int index) const override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void changeEvent(QEvent* event) override;

  private:
    struct Look {
        ChatId id = 0;
        bool has_color = false;
        OwnerStyle style;
    };
    Look look(int index) const;
    void add_close_button(int index);
    void restyle();
    const Theme* theme_;
    QHash<ChatId, Look> looks_;
};

}  // namespace recto::ui
