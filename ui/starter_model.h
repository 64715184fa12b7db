// The small model that comes along, so that there is an answer in the first minute.
#pragma once
#include <QString>

#include "ui/settings/profile_paths.h"

namespace recto::ui {

constexpr int starter_kv_blocks = 512;

// Where app/run puts it: $XDG_DATA_HOME/recto/models, by default ~/.local/share/recto/models, whatever the
// profile.
QString starter_model_path();
bool is_starter_model(const QString& path);
QString default_models_folder();

}  // namespace recto::ui
