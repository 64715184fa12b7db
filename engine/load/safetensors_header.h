// The JSON header of a safetensors file, read token by token: nothing is kept but the entries themselves, so
// a hostile header cannot make the reader allocate more than a small multiple of its own length.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace recto {

struct SafetensorsEntry {
    std::string name;
    std::string dtype;
    std::vector<std::uint64_t> shape;
    std::vector<std::uint64_t> offsets;  // begin, end
};

// Error(input) for anything that is not an object of well-formed entries. Sizes are not checked here.
std::vector<SafetensorsEntry> read_safetensors_header(std::string_view json, const std::string& label);

}  // namespace recto
