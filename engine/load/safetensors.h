// One safetensors file, parsed: tensors as views of the file's bytes. Refuses what the reference library
// refuses (huggingface/safetensors src/tensor.rs): bad header lengths, gaps, overlaps, sizes that do not fit,
// unknown dtypes; duplicate names too. Tensors may lie at any alignment.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recto {

struct SafeTensor {
    std::string name;
    std::string dtype;                // as the file writes it: "BF16"
    std::vector<std::int64_t> shape;  // row-major; empty for a scalar
    std::span<const std::byte> data;
};

class Safetensors {
  public:
    // `file` must outlive the object. Error(input).
    Safetensors(std::span<const std::byte> file, std::string label);

    const std::string& label() const { return label_; }
    const std::vector<SafeTensor>& tensors() const { return tensors_; }  // in the order of their data
    const SafeTensor* find(std::string_view name) const;                 // null if there is none

  private:
    std::string label_;
    std::vector<SafeTensor> tensors_;
    std::map<std::string_view, std::size_t> index_;
};

}  // namespace recto
