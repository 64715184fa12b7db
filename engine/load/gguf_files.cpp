#include "engine/load/gguf_files.h"

#include <cstdio>

#include "engine/load/refuse.h"

namespace recto {

namespace {

// "-00001-of-00003.gguf"
constexpr std::size_t suffix_length = 20;

std::string part_suffix(int number, int count) {
    char text[40];
    std::snprintf(text, sizeof text, "-%05d-of-%05d.gguf", number, count);
    return text;
}

int part_count(const Gguf& part) {
    const auto count = part.integer("split.count").value_or(0);
    if (count < 0 || count > 65535)
        refuse(part.label(), "split.count should be 0 to 65535, found " + std::to_string(count));
    return int(count);
}

// The name without its part suffix. Error(input) if it has none.
std::string base_name(const Gguf& part, const std::string& name, int count) {
    const auto number = part.integer("split.no").value_or(-1);
    if (number < 0 || number >= count)
        refuse(part.label(),
               "split.no should be 0 to " + std::to_string(count - 1) + ", found " + std::to_string(number));
    const std::string suffix = part_suffix(int(number) + 1, count);
    if (!name.ends_with(suffix))
        refuse(part.label(), "this is part " + std::to_string(number + 1) + " of " + std::to_string(count) +
                                 ", so its name should end in " + suffix +
                                 "; rename the parts as they were made");
    return name.substr(0, name.size() - suffix_length);
}

}  // namespace

GgufFiles::GgufFiles(const std::filesystem::path& path) {
    auto map = std::make_unique<const MappedFile>(path);
    auto part = std::make_unique<const Gguf>(map->bytes(), path.string());
    if (part_count(*part) > 1) {
        const int count = part_count(*part);
        const auto base = base_name(*part, path.filename().string(), count);
        for (int i = 1; i <= count; ++i)
            add_part(path.parent_path() / (base + part_suffix(i, count)));
    } else {
        bytes_ = map->bytes().size();
        maps_.push_back(std::move(map));
        parts_.push_back(std::move(part));
        return;
    }

    const auto& first = metadata();
    const auto expected = first.integer("split.tensors.count");
    const auto found = std::int64_t(tensors().size());
    if (expected && *expected != found)
        refuse(first.label(), "its parts should hold " + std::to_string(*expected) +
                                  " tensors together, found " + std::to_string(found));
}

void GgufFiles::add_part(const std::filesystem::path& path) {
    auto map = std::make_unique<const MappedFile>(path);
    auto part = std::make_unique<const Gguf>(map->bytes(), path.string());
    const auto number = part->integer("split.no").value_or(-1);
    if (number != std::int64_t(parts_.size()))
        refuse(path.string(), "split.no should be " + std::to_string(parts_.size()) +
                                  " in this part, found " + std::to_string(number));
    for (const auto& tensor : part->tensors())
        if (find(tensor.name) != nullptr)
            refuse(path.string(),
                   "the tensor " + shown(tensor.name) + " is also in another part of the model");
    bytes_ += map->bytes().size();
    maps_.push_back(std::move(map));
    parts_.push_back(std::move(part));
}

GgufFiles::GgufFiles(std::span<const std::byte> bytes, std::string label) : bytes_(bytes.size()) {
    parts_.push_back(std::make_unique<const Gguf>(bytes, std::move(label)));
}

const GgufTensor* GgufFiles::find(std::string_view name) const {
    for (const auto& part : parts_)
        if (const auto* tensor = part->find(name)) return tensor;
    return nullptr;
}

std::vector<GgufTensor> GgufFiles::tensors() const {
    std::vector<GgufTensor> all;
    for (const auto& part : parts_)
        all.insert(all.end(), part->tensors().begin(), part->tensors().end());
    return all;
}

std::uint64_t GgufFiles::bytes() const {
    return bytes_;
}

void GgufFiles::prefetch() const {
    for (const auto& map : maps_)
        map->prefetch();
}

void GgufFiles::release() const {
    for (const auto& map : maps_)
        map->release();
}

}  // namespace recto
