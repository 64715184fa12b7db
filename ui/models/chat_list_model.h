// The chats of a session under headings by time, filtered by a search over titles.
#pragma once
#include <QAbstractListModel>
#include <QDateTime>
#include <QList>
#include <QPointer>

#include "ui/models/session.h"

namespace recto::ui {

class ChatListModel : public QAbstractListModel {
    Q_OBJECT
  public:
    enum Roles {
        kind_role = Qt::UserRole + 1,  // int of RowKind
        chat_role,                     // Chat*; null for headings
        chat_id_role,                  // qint64
        state_role,                    // int of ChatState
        state_text_role,               // "61 tok/s", "idle", "waiting for blocks"
        hue_role,
        pattern_role,  // ints of OwnerHue, OwnerPattern; -1 until it has a colour
        busy_role,     // bool
    };
    enum class RowKind : std::uint8_t { heading, chat };

    explicit ChatListModel(Session* session, QObject* parent = nullptr);
    void set_filter(const QString& text);  // case and full-width forms folded; empty: all
    QString filter() const { return filter_; }
    QModelIndex index_of(ChatId id) const;
    Chat* chat_at(const QModelIndex& index) const;
    void retranslate();  // after a change of language, and at midnight

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;
    QHash<int, QByteArray> roleNames() const override;

  private:
    struct Row {
        Chat* chat = nullptr;
        bool today = false;
        QDateTime updated;  // with the title: what decides the row's place
        QString title;
    };
    bool matches(const Chat& chat) const;
    std::vector<Row> wanted_rows() const;
    void rebuild();
    void refresh(Chat* chat);
    Session* session_;
    QString filter_;
    std::vector<Row> rows_;
};

}  // namespace recto::ui
