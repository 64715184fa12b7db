// The left side: new chat, search, the chats, the model card.
#pragma once
#include <QWidget>

#include "ui/models/session.h"

class QLineEdit;
class QListView;
class QPushButton;

namespace recto::ui {

class ChatListDelegate;
class ChatListModel;
class ModelCard;
class Theme;

class Sidebar : public QWidget {
    Q_OBJECT
  public:
    Sidebar(const Theme* theme, Session* session, QWidget* parent = nullptr);
    ModelCard* model_card() const { return card_; }
    QLineEdit* search() const { return search_; }
    QListView* list() const { return list_; }
    ChatListModel* model() const { return model_; }
    void set_open_chat(ChatId id);
    void focus_search();
    Chat* selected_chat() const;  // of the list; null: none

  Q_SIGNALS:
    void new_chat_wanted();
    void chat_wanted(recto::ui::Chat* chat);
    void rename_wanted(recto::ui::Chat* chat);
    void delete_wanted(recto::ui::Chat* chat);

  protected:
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void retranslate();
    void restyle();
    void show_menu(const QPoint& position);
    void activate(const QModelIndex& index);
    bool search_key(int key);
    bool list_key(int key);
    const Theme* theme_;
    ChatListModel* model_;
    ChatListDelegate* delegate_;
    QPushButton* new_chat_;
    QLineEdit* search_;
    QListView* list_;
    ModelCard* card_;
};

}  // namespace recto::ui
