#include "engine/build_info.h"

namespace recto {

std::string version() {
    return RECTO_VERSION;
}
std::string commit() {
    return RECTO_COMMIT;
}

std::string build_description() {
    std::string text = "GCC " __VERSION__ ", " RECTO_BUILD_TYPE;
#ifdef __clang__
    text = "Clang " __clang_version__ ", " RECTO_BUILD_TYPE;
#endif
#ifdef RECTO_HAVE_CUDA
    text += ", with CUDA";
#else
    text += ", without CUDA";
#endif
    return text;
}

}  // namespace recto
