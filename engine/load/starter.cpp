#include "engine/load/starter.h"

#include <cstdlib>

namespace recto {

std::filesystem::path starter_model_path() {
    if (const char* named = std::getenv("RECTO_STARTER_MODEL"); named && *named) return named;
    std::filesystem::path data;
    // The XDG specification declares relative values invalid.
    if (const char* xdg = std::getenv("XDG_DATA_HOME"); xdg && *xdg == '/') {
        data = xdg;
    } else {
        const char* home = std::getenv("HOME");
        data = std::filesystem::path(home ? home : "/") / ".local/share";
    }
    return data / "recto" / "models" / starter_file_name;
}

}  // namespace recto
