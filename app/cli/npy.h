// Writes NumPy's .npy format (version 1.0) row by row: a logits file can be larger than memory.
#pragma once
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace recto::cli {

class NpyWriter {
  public:
    // float32 [rows, cols], C order. Error(runtime) when the file cannot be written.
    NpyWriter(const std::string& path, std::int64_t rows, std::int64_t cols);
    void write(std::span<const float> values);
    void close();  // Error(runtime) when anything was not written

  private:
    std::string path_;
    std::ofstream out_;
};

}  // namespace recto::cli
