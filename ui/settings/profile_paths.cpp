#include "ui/settings/profile_paths.h"

#include <QDir>

namespace recto::ui {

namespace {

QString base(const char* variable, const QString& below_home) {
    const QString value = qEnvironmentVariable(variable);
    return !value.isEmpty() && QDir::isAbsolutePath(value) ? value : QDir::home().filePath(below_home);
}

QString recto_in(const QString& folder) {
    return QDir(folder).filePath(QStringLiteral("recto"));
}

}  // namespace

ProfilePaths ProfilePaths::standard() {
    ProfilePaths paths;
    paths.config = recto_in(base("XDG_CONFIG_HOME", QStringLiteral(".config")));
    paths.data = recto_in(base("XDG_DATA_HOME", QStringLiteral(".local/share")));
    paths.state = recto_in(base("XDG_STATE_HOME", QStringLiteral(".local/state")));
    paths.cache = recto_in(base("XDG_CACHE_HOME", QStringLiteral(".cache")));
    // The specification gives the runtime folder no default; the state folder is private too.
    const QString runtime = qEnvironmentVariable("XDG_RUNTIME_DIR");
    paths.runtime =
        QDir::isAbsolutePath(runtime) ? recto_in(runtime) : QDir(paths.state).filePath(QStringLiteral("run"));
    return paths;
}

ProfilePaths ProfilePaths::in(const QString& folder) {
    const QDir dir(QDir(folder).absolutePath());
    return {dir.filePath(QStringLiteral("config")), dir.filePath(QStringLiteral("data")),
            dir.filePath(QStringLiteral("state")), dir.filePath(QStringLiteral("cache")),
            dir.filePath(QStringLiteral("run"))};
}

}  // namespace recto::ui
