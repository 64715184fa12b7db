// What this build is: for `version`, for reports, and for the window's About.
#pragma once
#include <string>

namespace recto {

std::string version();  // "0.1.0"
std::string commit();   // short hash, "+" behind it when the tree was changed; "unknown" without git
std::string build_description();  // compiler, build type, CUDA or not

}  // namespace recto
