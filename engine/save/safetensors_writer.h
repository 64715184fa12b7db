// Writes safetensors files as the reference library lays them out (huggingface/safetensors src/tensor.rs): an
// 8-byte length, a JSON header, then the tensors without gaps, larger elements first so that each lies at a
// multiple of its element's size. Model folders get shards of at most 5 GB with an index, as transformers
// does.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/save/byte_sink.h"
#include "engine/save/output_folder.h"
#include "kernels/dtype.h"

namespace recto {

enum class SaveType : std::uint8_t { f32, f16, bf16, i64, i32, i16 };
// Of the two 16-bit types.
inline std::uint16_t narrow_16(float value, SaveType type) {
    return narrow_16(value, type == SaveType::f16 ? DType::f16 : DType::bf16);
}

struct SaveTensor {
    std::string name;
    SaveType type = SaveType::f32;
    std::vector<std::int64_t> shape;  // row-major
    ByteSource bytes;                 // exactly as many as type and shape say
};
std::uint64_t save_bytes(const SaveTensor& tensor);

constexpr std::uint64_t default_shard_bytes = 5'000'000'000;

// "model.safetensors", or "model-00001-of-0000N.safetensors" … with "model.safetensors.index.json". A tensor
// is never split. Error(runtime) if the disk is full or the folder cannot be written.
void write_safetensors(OutputFolder& out, std::vector<SaveTensor> tensors, const SaveProgress& progress = {},
                       std::uint64_t shard_bytes = default_shard_bytes);

}  // namespace recto
