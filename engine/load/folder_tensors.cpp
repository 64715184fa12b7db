#include "engine/load/folder_tensors.h"

#include <algorithm>

#include "engine/load/pickle.h"
#include "engine/load/refuse.h"
#include "engine/load/safetensors_index.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& file, const fs::path& folder) {
    const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
    return end == folder.end();
}

// Links may stay inside the folder or lead into the blob store of the Hugging Face cache (CACHE/blobs for a
// folder CACHE/snapshots/COMMIT), nowhere else.
void check_link(const fs::path& folder, const fs::path& file) {
    std::error_code error;
    const fs::path real = fs::canonical(file, error);
    if (error) refuse(file.string(), "the model needs this file, but it is missing");
    const fs::path real_folder = fs::canonical(folder, error);
    if (is_inside(real, real_folder)) return;
    if (real_folder.parent_path().filename() == "snapshots" &&
        is_inside(real, real_folder.parent_path().parent_path() / "blobs"))
        return;
    refuse(file.string(),
           "a file inside the model's folder was expected, this is a link to " + real.string());
}

std::vector<std::string> files_ending_in(const fs::path& folder, const std::string& ending) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const auto name = entry.path().filename().string();
        if (name.ends_with(ending)) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

FolderTensors::FolderTensors(const fs::path& folder) {
    std::error_code error;
    const fs::path index = folder / "model.safetensors.index.json";
    const auto others = files_ending_in(folder, ".safetensors");
    if (fs::exists(index, error)) {
        open_index(folder, index);
    } else if (fs::exists(folder / "model.safetensors", error)) {
        place_all(open_shard(folder, "model.safetensors"));
    } else if (others.size() == 1) {
        place_all(open_shard(folder, others.front()));
    } else {
        refuse_pickles(folder);
        refuse(folder.string(),
               others.empty() ? "weights were expected (model.safetensors, or shards with "
                                "model.safetensors.index.json), found none"
                              : "it has " + std::to_string(others.size()) +
                                    " safetensors files but no model.safetensors.index.json that lists them");
    }
}

FolderTensors::FolderTensors(std::span<const std::byte> file, const std::string& label) {
    shards_.push_back({nullptr, file.size(), std::make_unique<const Safetensors>(file, label)});
    place_all(0);
}

std::size_t FolderTensors::open_shard(const fs::path& folder, const std::string& file) {
    const fs::path path = folder / file;
    check_link(folder, path);
    Shard shard;
    shard.map = std::make_unique<const MappedFile>(path);
    shard.bytes = shard.map->bytes().size();
    shard.tensors = std::make_unique<const Safetensors>(shard.map->bytes(), path.string());
    shards_.push_back(std::move(shard));
    return shards_.size() - 1;
}

void FolderTensors::place_all(std::size_t shard) {
    for (const auto& tensor : shards_[shard].tensors->tensors())
        places_[tensor.name] = {&tensor, shard};
}

void FolderTensors::open_index(const fs::path& folder, const fs::path& index) {
    std::map<std::string, std::size_t> opened;
    for (const auto& [name, file] : read_safetensors_index(read_text_file(index), index.string())) {
        auto it = opened.find(file);
        if (it == opened.end()) it = opened.emplace(file, open_shard(folder, file)).first;
        const Safetensors& tensors = *shards_[it->second].tensors;
        const SafeTensor* tensor = tensors.find(name);
        if (tensor == nullptr)
            refuse(index.string(), "it says that tensor " + shown(name) + " lies in " + file +
                                       ", but that file has no such tensor");
        places_[name] = {tensor, it->second};
    }
}

const SafeTensor* FolderTensors::find(const std::string& name) const {
    const auto it = places_.find(name);
    return it == places_.end() ? nullptr : it->second.tensor;
}

const std::string& FolderTensors::label_of(const std::string& name) const {
    return shards_[places_.at(name).shard].tensors->label();
}

std::vector<const SafeTensor*> FolderTensors::tensors() const {
    std::vector<const SafeTensor*> all;
    for (std::size_t shard = 0; shard < shards_.size(); ++shard)
        for (const auto& tensor : shards_[shard].tensors->tensors())
            if (find(tensor.name) == &tensor) all.push_back(&tensor);
    return all;
}

std::uint64_t FolderTensors::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& shard : shards_)
        sum += shard.bytes;
    return sum;
}

void FolderTensors::prefetch() const {
    for (const auto& shard : shards_)
        if (shard.map) shard.map->prefetch();
}

void FolderTensors::release() const {
    for (const auto& shard : shards_)
        if (shard.map) shard.map->release();
}

}  // namespace recto
