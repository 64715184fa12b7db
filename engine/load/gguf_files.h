// A GGUF model on disk: one file, or all parts of a split one ("NAME-00001-of-00003.gguf").
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/load/gguf.h"
#include "engine/load/mapped_file.h"

namespace recto {

class GgufFiles {
  public:
    // Any part may be named; the others are looked for beside it. Error(input).
    explicit GgufFiles(const std::filesystem::path& path);
    // One file's bytes in memory, which must outlive the object (fuzz targets, tests).
    GgufFiles(std::span<const std::byte> bytes, std::string label);

    const Gguf& metadata() const { return *parts_.front(); }  // of the first part
    const GgufTensor* find(std::string_view name) const;      // in any part; null if there is none
    std::vector<GgufTensor> tensors() const;                  // of all parts, in file order
    std::uint64_t bytes() const;
    void prefetch() const;
    void release() const;

  private:
    void add_part(const std::filesystem::path& path);

    std::vector<std::unique_ptr<const MappedFile>> maps_;
    std::vector<std::unique_ptr<const Gguf>> parts_;
    std::uint64_t bytes_ = 0;
};

}  // namespace recto
