// Writes NumPy's .npy format (version 1.0) row by row: a logits file can be larger than memory. It grows
// beside its place as FILE.part and takes it when it is whole, so that no half file looks like one.
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
    ~NpyWriter();  // takes away what was not closed
    NpyWriter(const NpyWriter&) = delete;
    NpyWriter& operator=(const NpyWriter&) = delete;

  private:
    std::string path_, growing_;  // the same where the place is a device or a pipe
    bool whole_ = false;
    std::ofstream out_;
};

}  // namespace recto::cli
