// Where Recto keeps what (XDG base directories; environment first, then the default; relative values are
// invalid).
#pragma once
#include <QString>

#include "ui/store/records.h"

namespace recto::ui {

struct ProfilePaths {
    QString config;   // settings.json
    QString data;     // chats, attachments, benchmark runs, backups, models fetched by app/run
    QString state;    // window layout, recent files, the running flag
    QString cache;    // may vanish at any time
    QString runtime;  // socket

    static ProfilePaths standard();  // $XDG_…_HOME/recto
    static ProfilePaths in(
        const QString& folder);  // --profile: everything under one folder, a separate instance
    StorePaths store() const { return {data, state}; }
};

}  // namespace recto::ui
