// Paints the rows of the chat list: headings, and chats with their colour, title and state.
#pragma once
#include <QStyledItemDelegate>

namespace recto::ui {

class Theme;

class ChatListDelegate : public QStyledItemDelegate {
    Q_OBJECT
  public:
    explicit ChatListDelegate(const Theme* theme, QObject* parent = nullptr);
    void set_open_chat(qint64 id) { open_ = id; }  // drawn as chosen
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

  private:
    const Theme* theme_;
    qint64 open_ = 0;
};

}  // namespace recto::ui
