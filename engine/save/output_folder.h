// Files that appear whole or not at all: each is written under a temporary name and gets its own when
// everything is written. What fails on the way (a full disk, no permission, an interruption) leaves nothing
// behind.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recto {

class OutputFolder {
  public:
    // Makes the folder if there is none. Error(argument) if it exists and holds something, or is no folder;
    // Error(runtime) if it cannot be made.
    explicit OutputFolder(const std::filesystem::path& folder);
    // For one file in a folder that may hold others: Error(argument) if a file of this name exists.
    static std::unique_ptr<OutputFolder> for_file(const std::filesystem::path& file);
    ~OutputFolder();
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;

    const std::filesystem::path& path() const { return folder_; }
    // Error(runtime) with the numbers if the disk has less than this free.
    void require_free(std::uint64_t bytes) const;
    // The temporary path of a file named `name`, which commit() renames.
    std::filesystem::path reserve(const std::string& name);
    void write(const std::string& name, std::string_view content);
    // Gives every file its name, in the order of reserve(). Error(runtime).
    void commit();

  private:
    OutputFolder() = default;
    void make_folder();

    std::filesystem::path folder_;
    bool made_folder_ = false;
    bool committed_ = false;
    std::vector<std::string> names_;  // reserved, not yet renamed
};

// Appends bytes to a new file. Errors say which file, and why.
class OutputFile {
  public:
    // `shown` is the name for messages: the one that the file will have.
    // `fresh`: there must be nothing yet at `path`, no link either.
    OutputFile(const std::filesystem::path& path, std::string shown, bool fresh = false);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
    void zeros(std::uint64_t count);
    std::uint64_t size() const { return size_; }
    void close();  // Error(runtime) if the last bytes did not arrive

  private:
    [[noreturn]] void fail(int error) const;

    std::string shown_;
    int fd_ = -1;
    std::uint64_t size_ = 0;
};

}  // namespace recto
