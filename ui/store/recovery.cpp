#include "ui/store/recovery.h"

#include <QDateTime>
#include <QFile>
#include <QFileInfo>
#include <QSqlRecord>
#include <QStringList>
#include <algorithm>

#include "ui/store/schema.h"
#include "ui/store/store_text.h"

namespace recto::ui {

namespace {

// How far to look behind an unreadable row for the next readable one.
constexpr qint64 rows_behind_damage = 20'000;

QStringList shared_columns(Database& from, Database& to, const QString& table) {
    QStringList have, wanted;
    for (QSqlQuery q = from.run(QStringLiteral("PRAGMA table_info(%1)").arg(table)); q.next();)
        have.append(q.value(1).toString());
    for (QSqlQuery q = to.run(QStringLiteral("PRAGMA table_info(%1)").arg(table)); q.next();)
        if (have.contains(q.value(1).toString())) wanted.append(q.value(1).toString());
    return wanted;
}

// Qt reads an empty blob as a null value, which would be stored as NULL.
QVariant stored_value(const QSqlQuery& q, int column) {
    const QVariant value = q.value(column);
    const bool empty_blob = value.typeId() == QMetaType::QByteArray && value.toByteArray().isEmpty();
    return empty_blob ? QVariant(QByteArray("")) : value;
}

struct Copied {
    int rows = 0, lost = 0;
};

// Row by row along the table itself: no index is trusted, and a row that cannot be read costs only itself.
Copied copy_table(Database& from, Database& to, const QString& table) {
    Copied copied;
    QStringList columns;
    try {
        columns = shared_columns(from, to, table);
    } catch (const SqlError&) {
        return copied;  // the table's description is gone, and its rows with it
    }
    if (columns.isEmpty()) return copied;
    const QString list = columns.join(QStringLiteral(", "));
    const QString marks = QStringList(columns.size(), QStringLiteral("?")).join(QLatin1Char(','));
    const QString next_sql =
        QStringLiteral("SELECT rowid, %1 FROM %2 NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT 1");
    const QString this_sql = QStringLiteral("SELECT rowid, %1 FROM %2 NOT INDEXED WHERE rowid = ?");
    const QString put_sql = QStringLiteral("INSERT INTO %1(%2) VALUES(%3)").arg(table, list, marks);
    qint64 last = 0, give_up_at = 0;
    bool jumping = false;
    while (!jumping || last < give_up_at) {
        QVariantList values;
        try {
            QSqlQuery q =
                from.run((jumping ? this_sql : next_sql).arg(list, table), {jumping ? last + 1 : last});
            if (!q.next()) {
                if (!jumping) break;
                ++last;
                continue;
            }
            for (int i = 1; i <= columns.size(); ++i)
                values.append(stored_value(q, i));
            last = q.value(0).toLongLong();
        } catch (const SqlError& e) {
            if (!e.damaged()) throw;
            if (!jumping) {
                jumping = true;
                give_up_at = last + rows_behind_damage;
            }
            ++copied.lost;
            ++last;
            continue;
        }
        jumping = false;
        try {
            to.run(put_sql, values);
            ++copied.rows;
        } catch (const SqlError& e) {
            if (!e.refused()) throw;
            ++copied.lost;  // noise that looked like a row
        }
    }
    return copied;
}

}  // namespace

QString find_damage(Database& db) {
    try {
        const QString answer = db.value(QStringLiteral("PRAGMA quick_check(1)")).toString();
        return answer == QStringLiteral("ok") ? QString() : answer;
    } catch (const SqlError& e) {
        if (!e.damaged()) throw;
        return QString::fromUtf8(e.what());
    }
}

QString rebuild_database(const QString& path) {
    const QString stamp = QDateTime::currentDateTimeUtc().toString(QStringLiteral("yyyyMMdd-HHmmss"));
    const QString fresh_path = path + QStringLiteral(".rebuilt"),
                  kept_path = path + QStringLiteral(".damaged-") + stamp;
    QFile::remove(fresh_path);
    Copied chats, messages;
    {
        Database to(fresh_path, Database::Mode::read_write);
        to.run(QStringLiteral("PRAGMA journal_mode = DELETE"));
        migrate(to, current_schema(), {});
        try {
            Database from(path, Database::Mode::read_write);  // its log belongs to it
            to.transaction([&] {
                chats = copy_table(from, to, QStringLiteral("chats"));
                messages = copy_table(from, to, QStringLiteral("messages"));
                copy_table(from, to, QStringLiteral("deltas"));
                // A message whose chat is lost is still shown.
                to.run(QStringLiteral(
                    "INSERT INTO chats SELECT DISTINCT chat_id, 'Recovered chat ' || chat_id, 1, "
                    "min(created), max(created), '', '{}', '', '', '', 0, NULL, NULL FROM messages "
                    "WHERE chat_id NOT IN (SELECT id FROM chats) GROUP BY chat_id"));
            });
        } catch (const SqlError& e) {
            if (!e.damaged()) throw;  // nothing of it is a database: an empty one takes its place
        }
    }
    for (const char* suffix : {"", "-wal", "-shm"}) {
        const QString part = path + QLatin1String(suffix);
        if (QFileInfo::exists(part)) QFile::rename(part, kept_path + QLatin1String(suffix));
    }
    if (!QFile::rename(fresh_path, path))
        throw SqlError(
            StoreText::tr("%1: the rebuilt chats could not be put here from %2.").arg(path, fresh_path), 14);
    return StoreText::
        tr("The chat database was damaged: %1 chats and %2 messages were saved, %3 rows could not be read. "
           "The damaged file is kept as %4.")
            .arg(chats.rows)
            .arg(messages.rows)
            .arg(chats.lost + messages.lost)
            .arg(kept_path);
}

}  // namespace recto::ui
