#include "engine/save/gguf_writer.h"

#include <cassert>
#include <span>

#include "engine/load/gguf.h"

namespace recto {

namespace {

constexpr std::uint64_t alignment = 32;

template <class T>
void put(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_string(std::string& bytes, std::string_view text) {
    put<std::uint64_t>(bytes, text.size());
    bytes += text;
}

std::uint64_t padded(std::uint64_t n) {
    return (n + alignment - 1) / alignment * alignment;
}

std::string header_of(const GgufPairs& pairs, const std::vector<GgufSaveTensor>& tensors) {
    std::string header = "GGUF";
    put<std::uint32_t>(header, 3);
    put<std::uint64_t>(header, tensors.size());
    put<std::uint64_t>(header, pairs.count());
    header += pairs.bytes();
    std::uint64_t offset = 0;
    for (const auto& tensor : tensors) {
        put_string(header, tensor.name);
        put(header, std::uint32_t(tensor.shape.size()));
        for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim)
            put(header, *dim);
        put(header, std::uint32_t(tensor.type));
        put(header, offset);
        offset += padded(save_bytes(tensor));
    }
    header.resize(padded(header.size()));
    return header;
}

}  // namespace

void GgufPairs::begin(std::string_view key, std::uint32_t type) {
    ++count_;
    put_string(bytes_, key);
    put(bytes_, type);
}

void GgufPairs::array(std::uint32_t type, std::uint64_t count) {
    put(bytes_, type);
    put(bytes_, count);
}

void GgufPairs::u32(std::string_view key, std::uint32_t value) {
    begin(key, std::uint32_t(GgufValueType::u32));
    put(bytes_, value);
}

void GgufPairs::f32(std::string_view key, float value) {
    begin(key, std::uint32_t(GgufValueType::f32));
    put(bytes_, value);
}

void GgufPairs::boolean(std::string_view key, bool value) {
    begin(key, std::uint32_t(GgufValueType::boolean));
    put<std::uint8_t>(bytes_, value ? 1 : 0);
}

void GgufPairs::text(std::string_view key, std::string_view value) {
    begin(key, std::uint32_t(GgufValueType::string));
    put_string(bytes_, value);
}

void GgufPairs::texts(std::string_view key, const std::vector<std::string>& values) {
    begin(key, std::uint32_t(GgufValueType::array));
    array(std::uint32_t(GgufValueType::string), values.size());
    for (const auto& value : values)
        put_string(bytes_, value);
}

void GgufPairs::floats(std::string_view key, const std::vector<float>& values) {
    begin(key, std::uint32_t(GgufValueType::array));
    array(std::uint32_t(GgufValueType::f32), values.size());
    for (const float value : values)
        put(bytes_, value);
}

void GgufPairs::integers(std::string_view key, const std::vector<std::int32_t>& values) {
    begin(key, std::uint32_t(GgufValueType::array));
    array(std::uint32_t(GgufValueType::i32), values.size());
    for (const std::int32_t value : values)
        put(bytes_, value);
}

std::uint64_t save_bytes(const GgufSaveTensor& tensor) {
    const GgufTypeInfo* type = gguf_type_info(std::uint32_t(tensor.type));
    std::uint64_t elements = 1;
    for (const auto dim : tensor.shape)
        elements *= std::uint64_t(dim);
    assert(tensor.shape.back() % type->elements == 0);
    return elements / std::uint64_t(type->elements) * std::uint64_t(type->bytes);
}

void write_gguf(OutputFolder& out, const std::string& name, const GgufPairs& pairs,
                const std::vector<GgufSaveTensor>& tensors, const SaveProgress& progress) {
    std::uint64_t total = 0;
    for (const auto& tensor : tensors)
        total += padded(save_bytes(tensor));
    out.require_free(total);
    OutputFile file(out.reserve(name), (out.path() / name).string());
    file.write(header_of(pairs, tensors));
    const std::uint64_t data = file.size();
    for (const auto& tensor : tensors) {
        [[maybe_unused]] const std::uint64_t begin = file.size();
        tensor.bytes([&](std::span<const std::byte> bytes) {
            file.write(bytes);
            if (progress) progress(double(file.size() - data) / double(total));
        });
        assert(file.size() - begin == save_bytes(tensor));
        file.zeros(padded(file.size()) - file.size());
    }
    file.close();
}

}  // namespace recto
