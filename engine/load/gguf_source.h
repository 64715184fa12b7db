#pragma once
#include <filesystem>
#include <memory>

#include "engine/load/gguf_files.h"
#include "engine/load/model_source.h"

namespace recto {

// `path` names the model for people. Error(input) for a model that Recto does not run or whose tensors do not fit
// its configuration.
std::unique_ptr<ModelSource> make_gguf_source(std::shared_ptr<const GgufFiles> files,
                                              const std::filesystem::path& path);

}  // namespace recto
