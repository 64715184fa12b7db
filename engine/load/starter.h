// Where the starter model lives: SmolLM2-135M-Instruct, Apache-2.0, fetched once by app/run.
#pragma once
#include <filesystem>

namespace recto {

inline constexpr const char* starter_file_name = "SmolLM2-135M-Instruct.Q4_1.gguf";

// $RECTO_STARTER_MODEL, else $XDG_DATA_HOME/recto/models/…, else ~/.local/share/recto/models/…. It need not
// exist.
std::filesystem::path starter_model_path();

}  // namespace recto
