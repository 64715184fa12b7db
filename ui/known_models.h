// The models that can be chosen without a file dialog.
#pragma once
#include <QString>
#include <QStringList>

namespace recto::ui {

class Settings;

// Paths that exist, each once: the ones loaded lately (newest first), then the GGUF files and the model
// folders directly in the person's models folder and in Recto's own, by name.
QStringList known_models(const Settings& settings);

// A GGUF file's or a folder's name, without .gguf.
QString model_path_title(const QString& path);

}  // namespace recto::ui
