// Writes GGUF files, version 3 (layout: llama.cpp ggml/include/gguf.h): key/value pairs, tensor infos, then
// the tensors at multiples of 32 bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/load/gguf_type.h"
#include "engine/save/byte_sink.h"
#include "engine/save/output_folder.h"

namespace recto {

class GgufPairs {
  public:
    void u32(std::string_view key, std::uint32_t value);
    void f32(std::string_view key, float value);
    void boolean(std::string_view key, bool value);
    void text(std::string_view key, std::string_view value);
    void texts(std::string_view key, const std::vector<std::string>& values);
    void floats(std::string_view key, const std::vector<float>& values);
    void integers(std::string_view key, const std::vector<std::int32_t>& values);

    std::uint64_t count() const { return count_; }
    const std::string& bytes() const { return bytes_; }

  private:
    void begin(std::string_view key, std::uint32_t type);
    void array(std::uint32_t type, std::uint64_t count);

    std::string bytes_;
    std::uint64_t count_ = 0;
};

struct GgufSaveTensor {
    std::string name;
    GgufType type = GgufType::f32;
    std::vector<std::int64_t> shape;  // row-major, [rows, cols]; cols a multiple of the type's block
    ByteSource bytes;
};
std::uint64_t save_bytes(const GgufSaveTensor& tensor);

// Error(runtime) if the disk is full or the folder cannot be written.
void write_gguf(OutputFolder& out, const std::string& name, const GgufPairs& pairs,
                const std::vector<GgufSaveTensor>& tensors, const SaveProgress& progress = {});

}  // namespace recto
