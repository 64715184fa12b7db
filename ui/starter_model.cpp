#include "ui/starter_model.h"

#include <QDir>
#include <QFileInfo>

#include "engine/load/starter.h"

namespace recto::ui {
namespace {

const QLatin1String starter_file(recto::starter_file_name);

}  // namespace

QString default_models_folder() {
    return ProfilePaths::standard().data + QStringLiteral("/models");
}

QString starter_model_path() {
    return default_models_folder() + QLatin1Char('/') + starter_file;
}

bool is_starter_model(const QString& path) {
    return QFileInfo(path).fileName() == starter_file;
}

}  // namespace recto::ui
