// The weight files of a Hugging Face folder: model.safetensors, or the shards of an index.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/load/mapped_file.h"
#include "engine/load/safetensors.h"

namespace recto {

class FolderTensors {
  public:
    // Error(input). A folder with pickles only is refused with how to convert it.
    explicit FolderTensors(const std::filesystem::path& folder);
    // One file that is in memory already, which must outlive the object.
    FolderTensors(std::span<const std::byte> file, const std::string& label);

    const SafeTensor* find(const std::string& name) const;  // null if there is none
    std::vector<const SafeTensor*> tensors() const;         // every one that find() gives, by file
    // The file that a tensor lies in, for messages.
    const std::string& label_of(const std::string& name) const;
    std::uint64_t bytes() const;
    void prefetch() const;
    void release() const;

  private:
    struct Shard {
        std::unique_ptr<const MappedFile> map;  // null for a file in memory
        std::uint64_t bytes = 0;
        std::unique_ptr<const Safetensors> tensors;
    };
    struct Place {
        const SafeTensor* tensor = nullptr;
        std::size_t shard = 0;
    };

    std::size_t open_shard(const std::filesystem::path& folder, const std::string& file);
    void open_index(const std::filesystem::path& folder, const std::filesystem::path& index);
    void place_all(std::size_t shard);

    std::vector<Shard> shards_;
    std::map<std::string, Place> places_;
};

}  // namespace recto
