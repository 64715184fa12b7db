// Writes NumPy's .npy format (version 1.0) row by row: a logits file can be larger than memory.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "app/cli/result_file.h"

namespace recto::cli {

class NpyWriter {
  public:
    // float32 [rows, cols], C order. Error(runtime) when the file cannot be written.
    NpyWriter(const std::string& path, std::int64_t rows, std::int64_t cols);
    void write(std::span<const float> values) { file_.write(std::as_bytes(values)); }
    void close() { file_.close(); }  // the array is at its place

  private:
    ResultFile file_;
};

}  // namespace recto::cli
