#include "ui/models/transcript_model.h"

namespace recto::ui {

TranscriptModel::TranscriptModel(Chat* chat, QObject* parent)
    : QAbstractListModel(parent), chat_(chat), rows_(chat->message_count()) {
    connect(chat, &Chat::opened, this, [this] {
        beginResetModel();
        rows_ = chat_->message_count();
        endResetModel();
    });
    connect(chat, &Chat::path_changed, this, [this](int first) {
        if (first < rows_) {
            beginRemoveRows({}, first, rows_ - 1);
            rows_ = first;
            endRemoveRows();
        }
        const int wanted = chat_->message_count();
        if (wanted == rows_) return;
        beginInsertRows({}, rows_, wanted - 1);
        rows_ = wanted;
        endInsertRows();
    });
    connect(chat, &Chat::message_added, this, [this](int row) {
        beginInsertRows({}, row, row);
        rows_ = row + 1;
        endInsertRows();
    });
    connect(chat, &Chat::messages_changed, this,
            [this](int first, int last) { Q_EMIT dataChanged(index(first), index(last)); });
    connect(chat, &Chat::text_appended, this, [this](int row, const QString&) {
        Q_EMIT dataChanged(index(row), index(row), {text_role, Qt::DisplayRole, chars_role});
    });
    connect(chat, &QObject::destroyed, this, [this] {
        beginResetModel();
        rows_ = 0;
        endResetModel();
    });
}

int TranscriptModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : rows_;
}

QVariant TranscriptModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || !chat_ || index.row() >= chat_->message_count()) return {};
    const int row = index.row();
    const MessageRecord& m = chat_->message(row);
    switch (role) {
        case Qt::DisplayRole:
        case text_role:
            return m.content;
        case message_id_role:
            return qint64(m.id);
        case role_role:
            return int(m.role);
        case loaded_role:
            return m.loaded;
        case chars_role:
            return m.chars;
        case state_role:
            return int(m.state);
        case version_role:
            return chat_->version_index(row) + 1;
        case version_count_role:
            return chat_->version_count(row);
        case stats_role:
            return statistics_line(m);
        case stats_help_role:
            return statistics_help(m);
        case error_role:
            return m.error;
        case note_role:
            return m.note;
        case model_role:
            return m.model_name;
        case template_role:
            return m.template_id;
        case created_role:
            return m.created;
        case live_role:
            return m.id == chat_->answering();
        default:
            return {};
    }
}

QHash<int, QByteArray> TranscriptModel::roleNames() const {
    return {{Qt::DisplayRole, "display"}, {message_id_role, "message_id"},
            {role_role, "role"},          {text_role, "text"},
            {loaded_role, "loaded"},      {chars_role, "chars"},
            {state_role, "state"},        {version_role, "version"},
            {stats_role, "stats"},        {version_count_role, "version_count"},
            {error_role, "error"},        {stats_help_role, "stats_help"},
            {note_role, "note"},          {model_role, "model"},
            {template_role, "template"},  {created_role, "created"},
            {live_role, "live"}};
}

}  // namespace recto::ui
