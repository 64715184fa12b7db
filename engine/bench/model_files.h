// Which files a model is, and hashes that name their contents in a report.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace recto {

struct ModelFiles {
    std::vector<std::filesystem::path> weights;  // GGUF parts or safetensors shards, sorted
    std::vector<std::filesystem::path> others;   // configuration, tokenizer, template, sorted
};
// Of a GGUF file (all parts of a split one) or a folder. Error(input) if there is no such file or folder.
ModelFiles model_files(const std::filesystem::path& model);

struct FileHash {
    std::string name;  // without the path
    std::uint64_t bytes = 0;
    std::string sha256;
    bool whole = true;  // false: of the first and the last MiB, one after the other
};
// Files above `whole_limit_bytes` are hashed at both ends only: reading 13 GB would take longer than the
// load.
FileHash hash_file(const std::filesystem::path& file, std::uint64_t whole_limit_bytes = std::uint64_t(64)
                                                                                        << 20);

}  // namespace recto
