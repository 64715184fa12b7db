// One SQLite connection of the chat store, on the thread that opened it. Errors throw SqlError with one
// sentence.
#pragma once
#include <QSqlDatabase>
#include <QSqlQuery>
#include <QString>
#include <QVariantList>
#include <functional>

#include "engine/error.h"

namespace recto::ui {

class SqlError : public Error {
  public:
    SqlError(const QString& sentence, int code)
        : Error(ErrorKind::runtime, sentence.toStdString()), code_(code & 0xff) {}
    int code() const { return code_; }  // SQLite's primary result code
    // The statement itself is impossible (constraint, type, size): trying again would not help.
    bool refused() const { return code_ == 19 || code_ == 20 || code_ == 18; }
    bool damaged() const { return code_ == 11 || code_ == 26; }  // corrupt, or no database at all

  private:
    int code_;
};

class Database {
  public:
    enum class Mode : std::uint8_t { read_write, read_only };
    Database(const QString& path, Mode mode);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    const QString& path() const { return path_; }
    // Runs one statement with its values bound in order.
    QSqlQuery run(const QString& sql, const QVariantList& values = {});
    QVariant value(const QString& sql, const QVariantList& values = {});  // first column of the first row
    int schema_number() { return value(QStringLiteral("PRAGMA user_version")).toInt(); }
    // All of `work`, or nothing of it.
    void transaction(const std::function<void()>& work);
    [[noreturn]] void fail(const QSqlQuery& query) const;

  private:
    QString path_, connection_;
    QSqlDatabase db_;
};

// WAL needs shared memory, which network file systems do not have.
bool is_network_file_system(const QString& folder);

}  // namespace recto::ui
