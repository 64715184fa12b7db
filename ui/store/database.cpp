#include "ui/store/database.h"
#include "ui/store/store_text.h"

#include <QSqlError>
#include <QStorageInfo>
#include <QUuid>

namespace recto::ui {

namespace {

QString sentence(const QString& path, const QSqlError& error) {
    const int code = error.nativeErrorCode().toInt() & 0xff;
    if (code == 13)
        return StoreText::tr("%1: the disk is full. Free some space; nothing is lost meanwhile.").arg(path);
    return QStringLiteral("%1: %2").arg(path,
                                        error.databaseText().isEmpty() ? error.text() : error.databaseText());
}

}  // namespace

Database::Database(const QString& path, Mode mode)
    : path_(path),
      connection_(QStringLiteral("recto-") + QUuid::createUuid().toString(QUuid::WithoutBraces)) {
    db_ = QSqlDatabase::addDatabase(QStringLiteral("QSQLITE"), connection_);
    db_.setDatabaseName(path);
    db_.setConnectOptions(mode == Mode::read_only
                              ? QStringLiteral("QSQLITE_OPEN_READONLY;QSQLITE_BUSY_TIMEOUT=2000")
                              : QStringLiteral("QSQLITE_BUSY_TIMEOUT=2000"));
    if (db_.open()) return;
    const QSqlError error = db_.lastError();
    db_ = QSqlDatabase();
    QSqlDatabase::removeDatabase(connection_);
    throw SqlError(sentence(path, error), error.nativeErrorCode().toInt());
}

Database::~Database() {
    db_.close();
    db_ = QSqlDatabase();
    QSqlDatabase::removeDatabase(connection_);
}

void Database::fail(const QSqlQuery& query) const {
    throw SqlError(sentence(path_, query.lastError()), query.lastError().nativeErrorCode().toInt());
}

QSqlQuery Database::run(const QString& sql, const QVariantList& values) {
    QSqlQuery query(db_);
    query.setForwardOnly(true);
    if (!query.prepare(sql)) fail(query);
    for (const QVariant& value : values)
        query.addBindValue(value);
    if (!query.exec()) fail(query);
    return query;
}

QVariant Database::value(const QString& sql, const QVariantList& values) {
    QSqlQuery query = run(sql, values);
    return query.next() ? query.value(0) : QVariant();
}

void Database::transaction(const std::function<void()>& work) {
    run(QStringLiteral("BEGIN IMMEDIATE"));
    try {
        work();
        run(QStringLiteral("COMMIT"));
    } catch (...) {
        QSqlQuery(db_).exec(QStringLiteral("ROLLBACK"));  // fails only when SQLite has rolled back already
        throw;
    }
}

bool is_network_file_system(const QString& folder) {
    const QByteArray type = QStorageInfo(folder).fileSystemType().toLower();
    for (const char* name : {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph"})
        if (type == name) return true;
    return false;
}

}  // namespace recto::ui
