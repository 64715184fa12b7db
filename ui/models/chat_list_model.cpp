#include "ui/models/chat_list_model.h"

#include <QDateTime>
#include <QLocale>
#include <algorithm>

namespace recto::ui {

namespace {

// Case and full-width forms folded (NFKC turns "Ａ" into "A").
QString folded(const QString& text) {
    return text.normalized(QString::NormalizationForm_KC).toCaseFolded();
}

QString short_state(const Chat& chat) {
    switch (chat.state()) {
        case ChatState::generating:
            return chat.speed_tok_s() > 0
                       ? ChatListModel::tr("%1 tok/s").arg(QLocale().toString(chat.speed_tok_s(), 'f', 0))
                       : ChatListModel::tr("generating");
        case ChatState::waiting:
            return ChatListModel::tr("waiting for blocks");
        default:
            return chat.state_text();
    }
}

}  // namespace

ChatListModel::ChatListModel(Session* session, QObject* parent)
    : QAbstractListModel(parent), session_(session) {
    connect(session, &Session::ready, this, &ChatListModel::rebuild);
    connect(session, &Session::chat_added, this, &ChatListModel::rebuild);
    connect(session, &Session::chat_removed, this, &ChatListModel::rebuild);
    connect(session, &Session::chat_changed, this, &ChatListModel::refresh);
    rows_ = wanted_rows();
}

bool ChatListModel::matches(const Chat& chat) const {
    return filter_.isEmpty() || folded(chat.title()).contains(folded(filter_));
}

std::vector<ChatListModel::Row> ChatListModel::wanted_rows() const {
    const QDate today = QDate::currentDate();
    std::vector<Row> found;
    const QList<Chat*> chats = session_->chats();
    for (Chat* chat : chats) {
        if (!matches(*chat)) continue;
        const QDateTime& updated = chat->record().updated;
        found.push_back({chat, updated.toLocalTime().date() >= today, updated, chat->title()});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Row& a, const Row& b) { return a.updated > b.updated; });
    std::vector<Row> rows;
    for (const Row& row : found) {
        if (rows.empty() || rows.back().today != row.today) rows.push_back({nullptr, row.today, {}, {}});
        rows.push_back(row);
    }
    return rows;
}

void ChatListModel::rebuild() {
    std::vector<Row> rows = wanted_rows();
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
}

void ChatListModel::refresh(Chat* chat) {
    const QModelIndex index = index_of(chat->id());
    if (index.isValid()) {
        const Row& row = rows_[std::size_t(index.row())];
        if (row.updated == chat->record().updated && row.title == chat->title()) {
            Q_EMIT dataChanged(index, index);  // its state: many times a second while it answers
            return;
        }
    } else if (chat->trashed() || !matches(*chat)) {
        return;
    }
    rebuild();
}

void ChatListModel::set_filter(const QString& text) {
    if (filter_ == text) return;
    filter_ = text;
    rebuild();
}

void ChatListModel::retranslate() {
    rebuild();
}

QModelIndex ChatListModel::index_of(ChatId id) const {
    const auto at =
        std::find_if(rows_.begin(), rows_.end(), [id](const Row& r) { return r.chat && r.chat->id() == id; });
    return at == rows_.end() ? QModelIndex() : index(int(at - rows_.begin()));
}

Chat* ChatListModel::chat_at(const QModelIndex& index) const {
    return index.isValid() && index.row() < int(rows_.size()) ? rows_[std::size_t(index.row())].chat
                                                              : nullptr;
}

int ChatListModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(rows_.size());
}

Qt::ItemFlags ChatListModel::flags(const QModelIndex& index) const {
    if (!chat_at(index)) return Qt::NoItemFlags;
    return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;
}

QVariant ChatListModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= int(rows_.size())) return {};
    const Row& row = rows_[std::size_t(index.row())];
    if (!row.chat) {
        if (role == Qt::DisplayRole || role == Qt::AccessibleTextRole)
            return row.today ? tr("Today") : tr("Earlier");
        if (role == kind_role) return int(RowKind::heading);
        return {};
    }
    const Chat& chat = *row.chat;
    const bool coloured = session_->palette().has(chat.owner());
    switch (role) {
        case Qt::DisplayRole:
            return chat.title();
        case Qt::AccessibleTextRole:
            return tr("%1, %2").arg(chat.title(), short_state(chat));
        case kind_role:
            return int(RowKind::chat);
        case chat_role:
            return QVariant::fromValue(row.chat);
        case chat_id_role:
            return qint64(chat.id());
        case state_role:
            return int(chat.state());
        case state_text_role:
            return short_state(chat);
        case hue_role:
            return coloured ? int(session_->style(chat.owner()).hue) : -1;
        case pattern_role:
            return coloured ? int(session_->style(chat.owner()).pattern) : -1;
        case busy_role:
            return chat.busy();
        default:
            return {};
    }
}

QHash<int, QByteArray> ChatListModel::roleNames() const {
    return {{Qt::DisplayRole, "display"},
            {kind_role, "kind"},
            {chat_role, "chat"},
            {chat_id_role, "chat_id"},
            {state_role, "state"},
            {state_text_role, "state_text"},
            {hue_role, "hue"},
            {pattern_role, "pattern"},
            {busy_role, "busy"}};
}

}  // namespace recto::ui
