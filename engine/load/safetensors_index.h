// model.safetensors.index.json: which file of a folder holds which tensor.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace recto {

// Tensor name → file name. Error(input) unless every file is a plain name (no separators, no "..", not
// absolute).
std::map<std::string, std::string> read_safetensors_index(std::string_view json, const std::string& label);

}  // namespace recto
