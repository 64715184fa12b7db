// The shown path of one chat, a row for each message.
#pragma once
#include <QAbstractListModel>
#include <QPointer>

#include "ui/models/chat.h"

namespace recto::ui {

class TranscriptModel : public QAbstractListModel {
    Q_OBJECT
  public:
    enum Roles {
        message_id_role = Qt::UserRole + 1,  // qint64
        role_role,                           // int of Role
        text_role,                           // QString; empty until loaded
        loaded_role,                         // bool
        chars_role,          // int: length of the text, known before it is loaded (for estimated heights)
        state_role,          // int of MessageState
        version_role,        // int, 1-based
        version_count_role,  // int
        stats_role,          // the line under an answer; empty for others
        stats_help_role,     // formulas
        error_role,          // failed: one sentence
        note_role,           // what recovery has to say
        model_role,          // name of the model that answered
        template_role,
        created_role,  // QDateTime
        live_role,     // bool: it grows now
    };
    explicit TranscriptModel(Chat* chat, QObject* parent = nullptr);
    Chat* chat() const { return chat_; }

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QHash<int, QByteArray> roleNames() const override;

  private:
    QPointer<Chat> chat_;
    int rows_ = 0;
};

}  // namespace recto::ui
