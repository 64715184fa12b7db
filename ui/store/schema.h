// The tables of the chat store and how older files become newer ones.
#pragma once
#include <QStringList>
#include <vector>

#include "ui/store/database.h"

namespace recto::ui {

struct Migration {
    QStringList statements;  // from the schema number before it to the next
};
using Schema = std::vector<Migration>;  // [0] makes number 1 out of an empty file

const Schema& current_schema();

// Brings the file to the newest number, each migration in one transaction. A file that held data is first
// copied to `backups` (VACUUM INTO: never the .sqlite alone, its newest rows may be in the log). Returns what
// was done, one sentence, or nothing. SqlError.
QString migrate(Database& db, const Schema& schema, const QString& backups);

// Writes a snapshot into `backups` and keeps the newest `keep`. Returns its path.
QString back_up(Database& db, const QString& backups, int keep = 3);

}  // namespace recto::ui
