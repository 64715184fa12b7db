// Pickle checkpoints (.bin, .pt) can run code when they are opened, so they are refused, with how to convert
// them.
#pragma once
#include <filesystem>

namespace recto {

// Error(input) if the file, or a weight file of the folder, is a pickle, by its name or its first bytes.
void refuse_pickles(const std::filesystem::path& path);

}  // namespace recto
