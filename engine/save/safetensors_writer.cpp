#include "engine/save/safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace recto {

namespace {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

struct TypeInfo {
    SaveType type;
    const char* name;
    std::uint64_t bytes;
};
constexpr TypeInfo types[] = {
    {SaveType::f32, "F32", 4}, {SaveType::f16, "F16", 2}, {SaveType::bf16, "BF16", 2},
    {SaveType::i64, "I64", 8}, {SaveType::i32, "I32", 4}, {SaveType::i16, "I16", 2},
};

const TypeInfo& info_of(SaveType type) {
    return *std::find_if(std::begin(types), std::end(types), [&](const auto& t) { return t.type == type; });
}

using Shard = std::vector<SaveTensor>;

std::vector<Shard> cut_into_shards(std::vector<SaveTensor> tensors, std::uint64_t shard_bytes) {
    std::vector<Shard> shards;
    std::uint64_t filled = 0;
    for (auto& tensor : tensors) {
        const std::uint64_t bytes = save_bytes(tensor);
        if (shards.empty() || (filled > 0 && filled + bytes > shard_bytes)) {
            shards.emplace_back();
            filled = 0;
        }
        filled += bytes;
        shards.back().push_back(std::move(tensor));
    }
    if (shards.empty()) shards.emplace_back();
    for (auto& shard : shards)
        std::stable_sort(shard.begin(), shard.end(), [](const auto& a, const auto& b) {
            return info_of(a.type).bytes > info_of(b.type).bytes;
        });
    return shards;
}

std::string header_of(const Shard& shard) {
    // Added at the end without the search for an equal key that operator[] makes: mixtures have 50,000
    // tensors.
    nlohmann::ordered_json::object_t header;
    header.emplace_back("__metadata__", nlohmann::ordered_json{{"format", "pt"}});
    std::uint64_t begin = 0;
    for (const auto& tensor : shard) {
        const std::uint64_t end = begin + save_bytes(tensor);
        header.emplace_back(tensor.name, nlohmann::ordered_json{{"dtype", info_of(tensor.type).name},
                                                                {"shape", tensor.shape},
                                                                {"data_offsets", {begin, end}}});
        begin = end;
    }
    std::string text = nlohmann::ordered_json(std::move(header)).dump();
    constexpr std::size_t alignment = 64;  // of the first tensor in the file
    text.append((alignment - (8 + text.size()) % alignment) % alignment, ' ');
    return text;
}

std::string shard_name(std::size_t shard, std::size_t count) {
    if (count == 1) return "model.safetensors";
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard + 1, count);
    return name;
}

class Progress {
  public:
    Progress(const SaveProgress& report, std::uint64_t total) : report_(report), total_(total) {}
    void add(std::uint64_t bytes) {
        done_ += bytes;
        if (report_) report_(total_ == 0 ? 1.0 : double(done_) / double(total_));
    }

  private:
    const SaveProgress& report_;
    std::uint64_t total_, done_ = 0;
};

void write_shard(OutputFolder& out, const std::string& name, const Shard& shard, Progress& progress) {
    OutputFile file(out.reserve(name), (out.path() / name).string());
    const std::string header = header_of(shard);
    const std::uint64_t length = header.size();
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(header);
    for (const auto& tensor : shard) {
        [[maybe_unused]] const std::uint64_t begin = file.size();
        tensor.bytes([&](std::span<const std::byte> bytes) {
            file.write(bytes);
            progress.add(bytes.size());
        });
        assert(file.size() - begin == save_bytes(tensor));
    }
    file.close();
}

}  // namespace

std::uint64_t save_bytes(const SaveTensor& tensor) {
    std::uint64_t n = info_of(tensor.type).bytes;
    for (const auto dim : tensor.shape)
        n *= std::uint64_t(dim);
    return n;
}

void write_safetensors(OutputFolder& out, std::vector<SaveTensor> tensors, const SaveProgress& progress,
                       std::uint64_t shard_bytes) {
    std::uint64_t total = 0;
    for (const auto& tensor : tensors)
        total += save_bytes(tensor);
    out.require_free(total);
    Progress written(progress, total);
    const auto shards = cut_into_shards(std::move(tensors), shard_bytes);
    nlohmann::ordered_json::object_t map;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const std::string name = shard_name(i, shards.size());
        for (const auto& tensor : shards[i])
            map.emplace_back(tensor.name, name);
        write_shard(out, name, shards[i], written);
    }
    if (shards.size() == 1) return;
    const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
    out.write("model.safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace recto
