// A file mapped read-only. Nothing is read before it is touched. A file that another program shortens while
// it is mapped ends the process with SIGBUS when the lost part is touched; writers of model files replace,
// not shorten.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace recto {

class MappedFile {
  public:
    // Error(input) if there is no such regular file or it cannot be read.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::span<const std::byte> bytes() const { return {data_, size_}; }
    void prefetch() const;  // asks the kernel to read the whole file ahead
    void release() const;   // gives the pages back; they are mapped again, from the page cache, when touched

  private:
    std::filesystem::path path_;
    const std::byte* data_ = nullptr;  // [size_]
    std::size_t size_ = 0;
};

// A small text file (configuration, vocabulary). Error(input) if it is larger than `limit_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes = std::size_t(256)
                                                                                        << 20);

}  // namespace recto
