#include "ui/store/schema.h"
#include "ui/store/store_text.h"

#include <QDateTime>
#include <QDir>
#include <QFile>

namespace recto::ui {

const Schema& current_schema() {
    // Times are milliseconds since 1970 UTC. AUTOINCREMENT: an id is never given twice, also after a purge.
    // An answer's text grows in `deltas` and moves into its row at the end, so that a long answer is not
    // written again every second.
    static const Schema schema{
        Migration{{
            QStringLiteral(
                "CREATE TABLE chats("
                "id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, renamed INTEGER NOT NULL, "
                "created INTEGER NOT NULL, updated INTEGER NOT NULL, system_prompt TEXT NOT NULL, "
                "sampling TEXT NOT NULL, draft TEXT NOT NULL, model TEXT NOT NULL, "
                "template_id TEXT NOT NULL, position REAL NOT NULL, shown_root INTEGER, "
                "trashed_at INTEGER)"),
            QStringLiteral("CREATE TABLE messages("
                           "id INTEGER PRIMARY KEY AUTOINCREMENT, "
                           "chat_id INTEGER NOT NULL REFERENCES chats(id) ON DELETE CASCADE, "
                           "parent_id INTEGER REFERENCES messages(id), shown_child INTEGER, "
                           "role TEXT NOT NULL, state TEXT NOT NULL, created INTEGER NOT NULL, "
                           "chars INTEGER NOT NULL, note TEXT NOT NULL, content TEXT NOT NULL, "
                           "token_ids BLOB NOT NULL, finish_reason TEXT NOT NULL, error TEXT NOT NULL, "
                           "model_name TEXT NOT NULL, model_path TEXT NOT NULL, model_hash TEXT NOT NULL, "
                           "template_id TEXT NOT NULL, sampling TEXT NOT NULL, system_prompt TEXT NOT NULL, "
                           "timings TEXT NOT NULL)"),
            QStringLiteral("CREATE INDEX messages_of_chat ON messages(chat_id, id)"),
            QStringLiteral("CREATE INDEX messages_of_parent ON messages(parent_id)"),
            QStringLiteral("CREATE TABLE deltas("
                           "id INTEGER PRIMARY KEY, message_id INTEGER NOT NULL REFERENCES messages(id) "
                           "ON DELETE CASCADE, content TEXT NOT NULL, token_ids BLOB NOT NULL)"),
            QStringLiteral("CREATE INDEX deltas_of_message ON deltas(message_id, id)"),
        }},
    };
    return schema;
}

QString back_up(Database& db, const QString& backups, int keep) {
    QDir dir(backups);
    if (!dir.mkpath(QStringLiteral(".")))
        throw SqlError(StoreText::tr("%1: cannot be made.").arg(backups), 14);
    QFile::setPermissions(backups, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    const QString stamp = QDateTime::currentDateTimeUtc().toString(QStringLiteral("yyyyMMdd-HHmmss-zzz"));
    const QString path =
        dir.filePath(QStringLiteral("chats-%1-schema%2.sqlite").arg(stamp).arg(db.schema_number()));
    db.run(QStringLiteral("VACUUM INTO ?"), {path});
    const QStringList all = dir.entryList({QStringLiteral("chats-*.sqlite")}, QDir::Files, QDir::Name);
    for (qsizetype i = 0; i + keep < all.size(); ++i)
        dir.remove(all[i]);
    return path;
}

QString migrate(Database& db, const Schema& schema, const QString& backups) {
    const int from = db.schema_number();
    const int to = int(schema.size());
    if (from >= to) return {};
    QString backup;
    if (from > 0) backup = back_up(db, backups);
    for (int number = from; number < to; ++number) {
        db.transaction([&] {
            for (const QString& statement : schema[std::size_t(number)].statements)
                db.run(statement);
            db.run(QStringLiteral("PRAGMA user_version = %1").arg(number + 1));
        });
    }
    if (from == 0) return {};
    return StoreText::tr("The chats were brought from schema %1 to %2; the file as it was is kept as %3.")
        .arg(from)
        .arg(to)
        .arg(backup);
}

}  // namespace recto::ui
