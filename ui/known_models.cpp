#include "ui/known_models.h"

#include <QDir>
#include <QFileInfo>

#include "ui/settings/settings.h"
#include "ui/starter_model.h"

namespace recto::ui {
namespace {

constexpr qsizetype folder_limit = 200;  // a longer list is no list to choose from

void add(QStringList& paths, const QString& path) {
    if (!path.isEmpty() && !paths.contains(path) && QFileInfo::exists(path)) paths << path;
}

void add_folder(QStringList& paths, const QString& folder) {
    if (folder.isEmpty()) return;
    const QDir dir(folder);
    qsizetype taken = 0;
    for (const QFileInfo& entry :
         dir.entryInfoList(QDir::Files | QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name | QDir::IgnoreCase)) {
        const bool model =
            entry.isDir() ? QFileInfo::exists(QDir(entry.filePath()).filePath(QStringLiteral("config.json")))
                          : entry.suffix().compare(QStringLiteral("gguf"), Qt::CaseInsensitive) == 0;
        if (model && ++taken > folder_limit) return;
        if (model) add(paths, entry.absoluteFilePath());
    }
}

}  // namespace

QStringList known_models(const Settings& settings) {
    QStringList paths;
    for (const QString& path : settings.recent_models())
        add(paths, path);
    add_folder(paths, settings.models_folder());
    add_folder(paths, default_models_folder());
    return paths;
}

QString model_path_title(const QString& path) {
    QString name = QFileInfo(path).fileName();
    if (name.isEmpty()) name = path;
    if (name.endsWith(QStringLiteral(".gguf"), Qt::CaseInsensitive)) name.chop(5);
    return name;
}

}  // namespace recto::ui
