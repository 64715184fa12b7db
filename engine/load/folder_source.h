#pragma once
#include <filesystem>
#include <memory>

#include "engine/load/model_source.h"

namespace recto {

// A Hugging Face folder: config.json and safetensors. Error(input) for a model that Recto does not run or
// whose tensors do not fit its configuration.
std::unique_ptr<ModelSource> make_folder_source(const std::filesystem::path& folder);

}  // namespace recto
