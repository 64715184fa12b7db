// The shapes of well-known models, for make-model: sizes and settings as their published config.json says,
// weights and vocabulary apart.
#pragma once
#include <string>
#include <vector>

#include "engine/load/model_config.h"

namespace recto {

std::vector<std::string> model_shape_names();
// Error(argument) naming the known ones. `layers` > 0 replaces the number of layers.
ModelConfig model_shape(const std::string& name, int layers = 0);

}  // namespace recto
