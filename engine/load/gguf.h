// One GGUF file, parsed: key/value pairs and tensor infos, all as views of the file's bytes.
// Layout and limits follow llama.cpp's ggml/src/gguf.cpp (versions 2 and 3, little-endian); every count, length and
// offset is checked against the bytes that are left before it is used, so that parsing a file never takes more
// memory than a small multiple of its header.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/load/gguf_type.h"

namespace recto {

enum class GgufValueType : std::uint32_t {
    u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9,
    u64 = 10, i64 = 11, f64 = 12,
};

struct GgufValue {
    GgufValueType type{};
    GgufValueType element{};           // of arrays
    std::uint64_t count = 0;           // of arrays
    std::span<const std::byte> data;   // a scalar's or string's bytes; all elements of an array as the file has them
};

struct GgufTensor {
    std::string_view name;
    const GgufTypeInfo* type = nullptr;
    int dimensions = 0;
    std::array<std::int64_t, 4> dims{1, 1, 1, 1};  // dims[0] is contiguous: a [rows, cols] weight is (cols, rows)
    std::span<const std::byte> data;
};

class Gguf {
  public:
    // `file` must outlive the object. Error(input).
    Gguf(std::span<const std::byte> file, std::string label);

    const std::string& label() const { return label_; }
    const std::vector<GgufTensor>& tensors() const { return tensors_; }
    const GgufTensor* find(std::string_view name) const;  // null if there is none

    bool has(std::string_view key) const { return values_.contains(key); }
    // Empty if the key is absent; Error(input) if it holds something else. Integers of any width are accepted.
    std::optional<std::int64_t> integer(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;  // also from an integer
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> text(std::string_view key) const;
    std::optional<std::vector<std::string>> texts(std::string_view key) const;
    std::optional<std::vector<float>> floats(std::string_view key) const;
    std::optional<std::vector<std::int32_t>> integers(std::string_view key) const;

  private:
    const GgufValue* value(std::string_view key) const;
    [[noreturn]] void wrong_type(std::string_view key, const char* expected) const;

    std::string label_;
    std::map<std::string_view, GgufValue> values_;
    std::vector<GgufTensor> tensors_;
    std::map<std::string_view, std::size_t> tensor_index_;
};

}  // namespace recto
