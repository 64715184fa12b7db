// Saving what can be read from a damaged chat database.
#pragma once
#include <QString>

#include "ui/store/database.h"

namespace recto::ui {

// Empty when SQLite's quick_check finds nothing.
QString find_damage(Database& db);

// Copies every readable row into a new file that takes the place of `path`; the damaged file is kept beside
// it. Returns one sentence that says so. Call with no connection open on `path`.
QString rebuild_database(const QString& path);

}  // namespace recto::ui
