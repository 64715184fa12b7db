#include "ui/store/chat_rows.h"
#include "ui/store/store_text.h"

#include <QJsonDocument>
#include <QSqlQuery>
#include <QTimeZone>
#include <QVariant>
#include <QtEndian>
#include <cstring>

namespace recto::ui::rows {

namespace {

QVariant time_value(const QDateTime& time) {
    return time.isValid() ? QVariant(time.toMSecsSinceEpoch()) : QVariant();
}

QDateTime read_time(const QVariant& value) {
    return value.isNull() ? QDateTime() : QDateTime::fromMSecsSinceEpoch(value.toLongLong(), Qt::UTC);
}

QVariant id_value(std::int64_t id) {
    return id > 0 ? QVariant(qlonglong(id)) : QVariant();
}

// A null QString would be stored as NULL.
QString text(const QString& value) {
    return value.isNull() ? QLatin1String("") : value;
}

QString json_text(const QJsonObject& json) {
    return QString::fromUtf8(QJsonDocument(json).toJson(QJsonDocument::Compact));
}

QJsonObject read_json(const QVariant& value) {
    return QJsonDocument::fromJson(value.toString().toUtf8()).object();
}

Role read_role(const QString& name, QString& note) {
    for (const Role role : {Role::system, Role::user, Role::assistant})
        if (role_name(role) == name) return role;
    note += StoreText::tr("Unknown role \"%1\". ").arg(name);
    return Role::user;
}

MessageState read_state(const QString& name, QString& note) {
    for (const MessageState state : {MessageState::done, MessageState::streaming, MessageState::stopped,
                                     MessageState::failed, MessageState::context_full})
        if (message_state_name(state) == name) return state;
    note += StoreText::tr("Unknown state \"%1\". ").arg(name);
    return MessageState::done;
}

constexpr int skeleton_columns = 9;
QString skeleton_sql() {
    return QStringLiteral("id, chat_id, parent_id, shown_child, role, state, created, chars, note");
}

MessageRecord read_skeleton(const QSqlQuery& q) {
    MessageRecord m;
    m.id = q.value(0).toLongLong();
    m.chat = q.value(1).toLongLong();
    m.parent = q.value(2).toLongLong();
    m.shown_child = q.value(3).toLongLong();
    m.note = q.value(8).toString();
    m.role = read_role(q.value(4).toString(), m.note);
    m.state = read_state(q.value(5).toString(), m.note);
    m.created = read_time(q.value(6));
    m.chars = q.value(7).toInt();
    return m;
}

MessageRecord read_full(const QSqlQuery& q) {
    MessageRecord m = read_skeleton(q);
    int i = skeleton_columns;
    m.loaded = true;
    m.content = q.value(i++).toString();
    m.token_ids = unpack_ids(q.value(i++).toByteArray());
    m.finish_reason = q.value(i++).toString();
    m.error = q.value(i++).toString();
    m.model_name = q.value(i++).toString();
    m.model_path = q.value(i++).toString();
    m.model_hash = q.value(i++).toString();
    m.template_id = q.value(i++).toString();
    m.sampling = read_json(q.value(i++));
    m.system_prompt = q.value(i++).toString();
    m.timings = AnswerTimings::from_json(read_json(q.value(i++)));
    return m;
}

// What has grown since the row was written.
void add_deltas(Database& db, MessageId id, QString& content, std::vector<std::int32_t>& ids) {
    QSqlQuery q =
        db.run(QStringLiteral("SELECT content, token_ids FROM deltas WHERE message_id = ? ORDER BY id"),
               {qlonglong(id)});
    while (q.next()) {
        content += q.value(0).toString();
        const std::vector<std::int32_t> more = unpack_ids(q.value(1).toByteArray());
        ids.insert(ids.end(), more.begin(), more.end());
    }
}

// Moves a message's deltas into its row.
void fold_deltas(Database& db, MessageId id) {
    QSqlQuery q =
        db.run(QStringLiteral("SELECT content, token_ids FROM messages WHERE id = ?"), {qlonglong(id)});
    if (!q.next()) return;
    QString content = q.value(0).toString();
    std::vector<std::int32_t> ids = unpack_ids(q.value(1).toByteArray());
    q.finish();
    add_deltas(db, id, content, ids);
    db.run(QStringLiteral("UPDATE messages SET content = ?, token_ids = ?, chars = ? WHERE id = ?"),
           {text(content), pack_ids(ids), int(content.size()), qlonglong(id)});
    db.run(QStringLiteral("DELETE FROM deltas WHERE message_id = ?"), {qlonglong(id)});
}

}  // namespace

QByteArray pack_ids(const std::vector<std::int32_t>& ids) {
    QByteArray bytes(qsizetype(ids.size() * 4), Qt::Uninitialized);
    qToLittleEndian<qint32>(ids.data(), qsizetype(ids.size()), bytes.data());
    return bytes;
}

std::vector<std::int32_t> unpack_ids(const QByteArray& bytes) {
    std::vector<std::int32_t> ids(std::size_t(bytes.size()) / 4);
    qFromLittleEndian<qint32>(bytes.constData(), qsizetype(ids.size()), ids.data());
    return ids;
}

QList<ChatRecord> read_chats(Database& db) {
    QSqlQuery q = db.run(QStringLiteral(
        "SELECT id, title, renamed, created, updated, system_prompt, sampling, draft, model, "
        "template_id, position, shown_root, trashed_at FROM chats ORDER BY updated DESC, id DESC"));
    QList<ChatRecord> chats;
    while (q.next()) {
        ChatRecord c;
        c.id = q.value(0).toLongLong();
        c.title = q.value(1).toString();
        c.renamed = q.value(2).toBool();
        c.created = read_time(q.value(3));
        c.updated = read_time(q.value(4));
        c.system_prompt = q.value(5).toString();
        c.sampling = read_json(q.value(6));
        c.draft = q.value(7).toString();
        c.model = q.value(8).toString();
        c.template_id = q.value(9).toString();
        c.position = q.value(10).toDouble();
        c.shown_root = q.value(11).toLongLong();
        c.trashed_at = read_time(q.value(12));
        chats.append(c);
    }
    return chats;
}

QList<MessageRecord> read_skeletons(Database& db, ChatId chat) {
    QSqlQuery q =
        db.run(QStringLiteral("SELECT %1 FROM messages WHERE chat_id = ? ORDER BY id").arg(skeleton_sql()),
               {qlonglong(chat)});
    QList<MessageRecord> messages;
    while (q.next())
        messages.append(read_skeleton(q));
    return messages;
}

QList<MessageRecord> read_messages(Database& db, ChatId chat, const QList<MessageId>& ids, int* damaged) {
    const QString sql = QStringLiteral(
                            "SELECT %1, content, token_ids, finish_reason, error, model_name, model_path, "
                            "model_hash, template_id, sampling, system_prompt, timings "
                            "FROM messages WHERE id = ? AND chat_id = ?")
                            .arg(skeleton_sql());
    QList<MessageRecord> messages;
    for (const MessageId id : ids) {
        try {
            QSqlQuery q = db.run(sql, {qlonglong(id), qlonglong(chat)});
            if (!q.next()) continue;
            MessageRecord message = read_full(q);
            q.finish();
            if (message.state == MessageState::streaming)
                add_deltas(db, id, message.content, message.token_ids);
            message.chars = int(message.content.size());
            messages.append(std::move(message));
        } catch (const SqlError& e) {
            if (!e.damaged()) throw;
            ++*damaged;  // this row only
        }
    }
    return messages;
}

void write_chat(Database& db, const ChatRecord& c) {
    db.run(
        QStringLiteral(
            "INSERT INTO chats(id, title, renamed, created, updated, system_prompt, sampling, draft, model, "
            "template_id, position, shown_root, trashed_at) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT(id) DO UPDATE SET title = excluded.title, renamed = excluded.renamed, "
            "updated = excluded.updated, system_prompt = excluded.system_prompt, sampling = "
            "excluded.sampling, "
            "draft = excluded.draft, model = excluded.model, template_id = excluded.template_id, "
            "position = excluded.position, shown_root = excluded.shown_root, trashed_at = "
            "excluded.trashed_at"),
        {qlonglong(c.id), text(c.title), c.renamed, time_value(c.created), time_value(c.updated),
         text(c.system_prompt), json_text(c.sampling), text(c.draft), text(c.model), text(c.template_id),
         c.position, id_value(c.shown_root), time_value(c.trashed_at)});
}

void write_draft(Database& db, ChatId chat, const QString& draft) {
    db.run(QStringLiteral("UPDATE chats SET draft = ? WHERE id = ?"), {text(draft), qlonglong(chat)});
}

void insert_message(Database& db, const MessageRecord& m) {
    db.run(QStringLiteral(
               "INSERT INTO messages(id, chat_id, parent_id, shown_child, role, state, created, chars, note, "
               "content, token_ids, finish_reason, error, model_name, model_path, model_hash, template_id, "
               "sampling, system_prompt, timings) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
           {qlonglong(m.id),       qlonglong(m.chat),
            id_value(m.parent),    id_value(m.shown_child),
            role_name(m.role),     message_state_name(m.state),
            time_value(m.created), int(m.content.size()),
            text(m.note),          text(m.content),
            pack_ids(m.token_ids), text(m.finish_reason),
            text(m.error),         text(m.model_name),
            text(m.model_path),    text(m.model_hash),
            text(m.template_id),   json_text(m.sampling),
            text(m.system_prompt), json_text(m.timings.to_json())});
    show_child(db, m.chat, m.parent, m.id);
    db.run(QStringLiteral("UPDATE chats SET updated = ? WHERE id = ?"),
           {time_value(m.created), qlonglong(m.chat)});
}

void append_delta(Database& db, MessageId message, const QString& content,
                  const std::vector<std::int32_t>& token_ids) {
    db.run(QStringLiteral("INSERT INTO deltas(message_id, content, token_ids) VALUES(?,?,?)"),
           {qlonglong(message), text(content), pack_ids(token_ids)});
}

void finish_message(Database& db, const MessageRecord& m) {
    fold_deltas(db, m.id);
    db.run(QStringLiteral(
               "UPDATE messages SET state = ?, note = ?, finish_reason = ?, error = ?, model_name = ?, "
               "model_path = ?, model_hash = ?, template_id = ?, sampling = ?, system_prompt = ?, "
               "timings = ? WHERE id = ?"),
           {message_state_name(m.state), text(m.note), text(m.finish_reason), text(m.error),
            text(m.model_name), text(m.model_path), text(m.model_hash), text(m.template_id),
            json_text(m.sampling), text(m.system_prompt), json_text(m.timings.to_json()), qlonglong(m.id)});
}

void reopen_message(Database& db, MessageId message) {
    db.run(QStringLiteral("UPDATE messages SET state = 'streaming', note = '', error = '' WHERE id = ?"),
           {qlonglong(message)});
}

void show_child(Database& db, ChatId chat, MessageId parent, MessageId child) {
    if (parent > 0)
        db.run(QStringLiteral("UPDATE messages SET shown_child = ? WHERE id = ?"),
               {id_value(child), qlonglong(parent)});
    else
        db.run(QStringLiteral("UPDATE chats SET shown_root = ? WHERE id = ?"),
               {id_value(child), qlonglong(chat)});
}

int close_interrupted(Database& db) {
    QSqlQuery q = db.run(QStringLiteral("SELECT id FROM messages WHERE state = 'streaming'"));
    QList<MessageId> ids;
    while (q.next())
        ids.append(q.value(0).toLongLong());
    q.finish();
    if (ids.isEmpty()) return 0;
    db.transaction([&] {
        for (const MessageId id : ids) {
            fold_deltas(db, id);
            db.run(QStringLiteral(
                       "UPDATE messages SET state = 'stopped', finish_reason = 'interrupted' WHERE id = ?"),
                   {qlonglong(id)});
        }
    });
    return int(ids.size());
}

}  // namespace recto::ui::rows
