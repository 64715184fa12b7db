#include "engine/load/safetensors.h"

#include <algorithm>
#include <limits>

#include "engine/load/byte_reader.h"
#include "engine/load/safetensors_header.h"

namespace recto {

namespace {

constexpr std::uint64_t max_header_bytes = 100'000'000;

struct DtypeBits {
    const char* name;
    std::uint64_t bits;
};
constexpr DtypeBits dtypes[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
};

std::uint64_t dtype_bits(const SafetensorsEntry& entry, const std::string& label) {
    for (const auto& dtype : dtypes)
        if (entry.dtype == dtype.name) return dtype.bits;
    refuse(label, "tensor " + shown(entry.name) + " has the dtype " + shown(entry.dtype) +
                      ", which the format does not define");
}

// shape × dtype in bytes.
std::uint64_t bytes_of(const SafetensorsEntry& entry, const std::string& label) {
    std::uint64_t bits = dtype_bits(entry, label);
    bool overflow = false;
    // The product of the shape alone must fit too, and as a signed number.
    std::uint64_t elements = 1;
    for (const std::uint64_t dim : entry.shape)
        overflow = overflow || __builtin_mul_overflow(elements, dim, &elements) ||
                   dim > std::uint64_t(std::numeric_limits<std::int64_t>::max());
    overflow = overflow || __builtin_mul_overflow(elements, bits, &bits);
    if (overflow)
        refuse(label, "tensor " + shown(entry.name) + " has a shape whose product is larger than 2^64 bits");
    if (bits % 8 != 0) refuse(label, "tensor " + shown(entry.name) + " does not end at a whole byte");
    return bits / 8;
}

}  // namespace

Safetensors::Safetensors(std::span<const std::byte> file, std::string label) : label_(std::move(label)) {
    ByteReader in(file, label_);
    const auto header_bytes = in.number<std::uint64_t>("the header's length");
    if (header_bytes > max_header_bytes)
        refuse(label_, "a safetensors header of at most " + std::to_string(max_header_bytes) +
                           " bytes was expected, its length is given as " + std::to_string(header_bytes));
    const auto header = in.take(header_bytes, "the header");
    auto entries =
        read_safetensors_header({reinterpret_cast<const char*>(header.data()), header.size()}, label_);
    const auto data = file.subspan(in.position());

    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.offsets < b.offsets; });
    std::uint64_t expected = 0;
    tensors_.reserve(entries.size());
    for (auto& entry : entries) {
        const std::uint64_t begin = entry.offsets[0], end = entry.offsets[1];
        if (begin != expected)
            refuse(label_, "tensor " + shown(entry.name) + " should begin at data offset " +
                               std::to_string(expected) + ", where the one before it ends, its header says " +
                               std::to_string(begin));
        if (end < begin || end > data.size())
            refuse(label_, "tensor " + shown(entry.name) + " should end between data offsets " +
                               std::to_string(begin) + " and " + std::to_string(data.size()) +
                               ", its header says " + std::to_string(end) +
                               "; the file is cut off or damaged");
        if (const auto bytes = bytes_of(entry, label_); bytes != end - begin)
            refuse(label_, "tensor " + shown(entry.name) + " should take " + std::to_string(bytes) +
                               " bytes by its shape and dtype, its offsets span " +
                               std::to_string(end - begin));
        expected = end;
        tensors_.push_back({std::move(entry.name),
                            std::move(entry.dtype),
                            {entry.shape.begin(), entry.shape.end()},
                            data.subspan(begin, end - begin)});
    }
    if (expected != data.size())
        refuse(label_, "its tensors should fill the " + std::to_string(data.size()) +
                           " bytes of data, they end at " + std::to_string(expected) +
                           "; the file is damaged or has something appended");
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        index_.emplace(tensors_[i].name, i);
}

const SafeTensor* Safetensors::find(std::string_view name) const {
    const auto it = index_.find(name);
    return it == index_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace recto
