#include "engine/load/gguf.h"

#include <bit>
#include <cstring>
#include <limits>

#include "engine/load/byte_reader.h"

namespace recto {

namespace {

constexpr std::uint64_t max_string_bytes = std::uint64_t(1) << 30;
constexpr std::uint64_t max_array_elements = std::uint64_t(1) << 30;
constexpr std::size_t max_name_bytes = 63;
constexpr std::uint64_t smallest_pair_bytes = 8 + 1 + 4 + 1;    // key of one byte, type, a u8
constexpr std::uint64_t smallest_tensor_bytes = 8 + 4 + 4 + 8;  // name, n_dims, type, offset

// Bytes of a scalar; 0 for strings, arrays and unknown types.
std::uint64_t scalar_bytes(GgufValueType type) {
    switch (type) {
        case GgufValueType::u8:
        case GgufValueType::i8:
        case GgufValueType::boolean:
            return 1;
        case GgufValueType::u16:
        case GgufValueType::i16:
            return 2;
        case GgufValueType::u32:
        case GgufValueType::i32:
        case GgufValueType::f32:
            return 4;
        case GgufValueType::u64:
        case GgufValueType::i64:
        case GgufValueType::f64:
            return 8;
        case GgufValueType::string:
        case GgufValueType::array:
            return 0;
    }
    return 0;
}

template <class T>
T load(std::span<const std::byte> data, std::uint64_t index = 0) {
    T value;
    std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
    return value;
}

struct Counts {
    std::uint64_t tensors = 0;
    std::uint64_t pairs = 0;
};

std::uint64_t checked_count(std::int64_t count, const char* what, std::uint64_t left, std::uint64_t smallest,
                            const std::string& label) {
    if (count < 0 || std::uint64_t(count) > left / smallest)
        refuse(label, "its header announces " + std::to_string(count) + " " + what +
                          ", more than fit into the " + std::to_string(left) +
                          " bytes left; the file is cut off or damaged");
    return std::uint64_t(count);
}

Counts read_header(ByteReader& in, const std::string& label) {
    const auto magic = in.take(4, "the magic number");
    if (std::memcmp(magic.data(), "GGUF", 4) != 0)
        refuse(label, "a GGUF file was expected, but it begins with " +
                          shown({reinterpret_cast<const char*>(magic.data()), 4}) + " instead of \"GGUF\"");
    const auto version = in.number<std::uint32_t>("the version");
    if ((version & 0xFFFFU) == 0)
        refuse(label,
               "a little-endian GGUF file was expected, this one is big-endian; convert it with "
               "gguf-convert-endian");
    if (version != 2 && version != 3)
        refuse(label, "GGUF version 2 or 3 was expected, this file has version " + std::to_string(version) +
                          "; convert the model again");
    const auto tensors = in.number<std::int64_t>("the number of tensors");
    const auto pairs = in.number<std::int64_t>("the number of key/value pairs");
    Counts counts;
    counts.tensors = checked_count(tensors, "tensors", in.left(), smallest_tensor_bytes, label);
    counts.pairs = checked_count(pairs, "key/value pairs", in.left(), smallest_pair_bytes, label);
    return counts;
}

std::string_view read_string(ByteReader& in, const char* what, const std::string& label) {
    const auto text = in.text(what);
    if (text.size() > max_string_bytes)
        refuse(label, std::string(what) + " has " + std::to_string(text.size()) +
                          " bytes; at most 2^30 are allowed");
    return text;
}

// Leaves `in` behind the array; `value` gets type, count and bytes.
void read_array(ByteReader& in, std::span<const std::byte> file, std::string_view key,
                const std::string& label, GgufValue& value) {
    value.element = GgufValueType(in.number<std::uint32_t>("an array's element type"));
    value.count = in.number<std::uint64_t>("an array's length");
    const bool strings = value.element == GgufValueType::string;
    const std::uint64_t smallest = strings ? 8 : scalar_bytes(value.element);
    if (smallest == 0)
        refuse(label, "the array " + shown(key) + " has elements of type " +
                          std::to_string(std::uint32_t(value.element)) +
                          ", which GGUF does not define for arrays");
    if (value.count > max_array_elements || value.count > in.left() / smallest)
        refuse(label, "the array " + shown(key) + " announces " + std::to_string(value.count) +
                          " elements, but only " + std::to_string(in.left()) +
                          " bytes are left; the file is cut off or damaged");
    const auto begin = in.position();
    if (strings) {
        for (std::uint64_t i = 0; i < value.count; ++i)
            (void)read_string(in, "a string in an array", label);
    } else {
        (void)in.take(value.count * smallest, "an array");
    }
    value.data = file.subspan(begin, in.position() - begin);
}

GgufValue read_value(ByteReader& in, std::span<const std::byte> file, std::string_view key,
                     const std::string& label) {
    GgufValue value;
    value.type = GgufValueType(in.number<std::uint32_t>("a value's type"));
    if (value.type == GgufValueType::string) {
        const auto text = read_string(in, "a string value", label);
        value.data = std::as_bytes(std::span(text));
    } else if (value.type == GgufValueType::array) {
        read_array(in, file, key, label, value);
    } else if (const auto bytes = scalar_bytes(value.type); bytes > 0) {
        value.data = in.take(bytes, "a value");
        if (value.type == GgufValueType::boolean && load<std::uint8_t>(value.data) > 1)
            refuse(label, "the key " + shown(key) +
                              " should be true or false (a byte 1 or 0), found the byte " +
                              std::to_string(load<std::uint8_t>(value.data)));
    } else {
        refuse(label, "the key " + shown(key) + " has a value of type " +
                          std::to_string(std::uint32_t(value.type)) + "; GGUF defines types 0 to 12");
    }
    return value;
}

struct PlacedTensor {
    GgufTensor tensor;
    std::uint64_t offset = 0;  // from the start of the data
    std::uint64_t bytes = 0;
};

// Elements of the tensor. Error(input) for negative sizes and overflow.
std::uint64_t read_dims(ByteReader& in, GgufTensor& tensor, const std::string& label) {
    const auto n = in.number<std::uint32_t>("a tensor's number of dimensions");
    if (n > 4)
        refuse(label, "tensor " + shown(tensor.name) + " has " + std::to_string(n) +
                          " dimensions; at most 4 are allowed");
    tensor.dimensions = int(n);
    std::int64_t product = 1;
    bool empty = false;
    for (std::uint32_t i = 0; i < n; ++i) {
        const auto dim = in.number<std::int64_t>("a tensor's dimension");
        if (dim < 0)
            refuse(label,
                   "tensor " + shown(tensor.name) + " has the negative dimension " + std::to_string(dim));
        tensor.dims[i] = dim;
        // A zero must not hide the overflow of the others.
        if (dim == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(product, dim, &product)) {
            refuse(label, "tensor " + shown(tensor.name) + " has more than 2^63 elements");
        }
    }
    return empty ? 0 : std::uint64_t(product);
}

PlacedTensor read_tensor_info(ByteReader& in, const std::string& label) {
    PlacedTensor placed;
    GgufTensor& tensor = placed.tensor;
    tensor.name = in.text("a tensor's name");
    if (tensor.name.size() > max_name_bytes)
        refuse(label, "the tensor name " + shown(tensor.name) + " has " + std::to_string(tensor.name.size()) +
                          " bytes; at most 63 are allowed");
    const std::uint64_t elements = read_dims(in, tensor, label);
    const auto type = in.number<std::uint32_t>("a tensor's type");
    tensor.type = gguf_type_info(type);
    if (tensor.type == nullptr)
        refuse(label, "tensor " + shown(tensor.name) + " has " + gguf_type_name(type) +
                          " data, which is not supported; supported are " + gguf_type_names());
    if (tensor.dims[0] % tensor.type->elements != 0)
        refuse(label, "tensor " + shown(tensor.name) + " has rows of " + std::to_string(tensor.dims[0]) +
                          " elements, which is not a multiple of " + tensor.type->name + "'s block of " +
                          std::to_string(tensor.type->elements));
    const std::uint64_t blocks = elements / std::uint64_t(tensor.type->elements);
    if (__builtin_mul_overflow(blocks, std::uint64_t(tensor.type->bytes), &placed.bytes))
        refuse(label, "tensor " + shown(tensor.name) + " has more than 2^64 bytes");
    placed.offset = in.number<std::uint64_t>("a tensor's offset");
    return placed;
}

std::uint64_t padding_to(std::uint64_t position, std::uint64_t alignment) {
    return (alignment - (position & (alignment - 1))) & (alignment - 1);
}

// Gives each tensor its bytes. Offsets must be the running sum of the padded sizes, as every writer makes
// them: this rules out overlaps and holes.
std::vector<GgufTensor> place_tensors(std::vector<PlacedTensor> placed, std::span<const std::byte> data,
                                      std::uint64_t alignment, const std::string& label) {
    std::vector<GgufTensor> tensors;
    tensors.reserve(placed.size());
    std::uint64_t expected = 0;
    for (auto& p : placed) {
        if (p.offset != expected)
            refuse(label, "tensor " + shown(p.tensor.name) + " should begin at data offset " +
                              std::to_string(expected) + ", the file says " + std::to_string(p.offset));
        if (p.offset > data.size() || p.bytes > data.size() - p.offset)
            refuse(label, "tensor " + shown(p.tensor.name) + " should take " + std::to_string(p.bytes) +
                              " bytes at data offset " + std::to_string(p.offset) +
                              ", but the data ends at " + std::to_string(data.size()) +
                              "; the file is cut off or damaged");
        p.tensor.data = data.subspan(p.offset, p.bytes);
        const std::uint64_t end = p.offset + p.bytes;
        expected = end + padding_to(end, alignment);
        tensors.push_back(p.tensor);
    }
    return tensors;
}

}  // namespace

Gguf::Gguf(std::span<const std::byte> file, std::string label) : label_(std::move(label)) {
    ByteReader in(file, label_);
    const Counts counts = read_header(in, label_);
    for (std::uint64_t i = 0; i < counts.pairs; ++i) {
        const auto key = read_string(in, "a key", label_);
        if (key.empty()) refuse(label_, "key number " + std::to_string(i) + " is empty");
        if (!values_.emplace(key, read_value(in, file, key, label_)).second)
            refuse(label_, "the key " + shown(key) + " occurs twice");
    }

    std::vector<PlacedTensor> placed;
    placed.reserve(counts.tensors);
    for (std::uint64_t i = 0; i < counts.tensors; ++i) {
        placed.push_back(read_tensor_info(in, label_));
        if (!tensor_index_.emplace(placed.back().tensor.name, i).second)
            refuse(label_, "the tensor name " + shown(placed.back().tensor.name) + " occurs twice");
    }

    const std::int64_t alignment = integer("general.alignment").value_or(32);
    if (alignment <= 0 || alignment > std::numeric_limits<std::uint32_t>::max() ||
        !std::has_single_bit(std::uint64_t(alignment)))
        refuse(label_, "general.alignment should be a power of two, found " + std::to_string(alignment));
    const std::uint64_t data_begin = in.position() + padding_to(in.position(), std::uint64_t(alignment));
    const auto data = data_begin < file.size() ? file.subspan(data_begin) : std::span<const std::byte>();
    tensors_ = place_tensors(std::move(placed), data, std::uint64_t(alignment), label_);
}

const GgufTensor* Gguf::find(std::string_view name) const {
    const auto it = tensor_index_.find(name);
    return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

const GgufValue* Gguf::value(std::string_view key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
}

void Gguf::wrong_type(std::string_view key, const char* expected) const {
    refuse(label_, "the key " + shown(key) + " should hold " + expected + ", it holds something else");
}

namespace {

// One integer at `index`; false if the type is no integer or the value does not fit.
bool integer_at(GgufValueType type, std::span<const std::byte> data, std::uint64_t index, std::int64_t& out) {
    switch (type) {
        case GgufValueType::u8:
            out = load<std::uint8_t>(data, index);
            return true;
        case GgufValueType::i8:
            out = load<std::int8_t>(data, index);
            return true;
        case GgufValueType::u16:
            out = load<std::uint16_t>(data, index);
            return true;
        case GgufValueType::i16:
            out = load<std::int16_t>(data, index);
            return true;
        case GgufValueType::u32:
            out = load<std::uint32_t>(data, index);
            return true;
        case GgufValueType::i32:
            out = load<std::int32_t>(data, index);
            return true;
        case GgufValueType::i64:
            out = load<std::int64_t>(data, index);
            return true;
        case GgufValueType::u64: {
            const auto value = load<std::uint64_t>(data, index);
            out = std::int64_t(value);
            return value <= std::uint64_t(std::numeric_limits<std::int64_t>::max());
        }
        default:
            return false;
    }
}

}  // namespace

std::optional<std::int64_t> Gguf::integer(std::string_view key) const {
    const GgufValue* v = value(key);
    if (v == nullptr) return std::nullopt;
    std::int64_t result = 0;
    if (!integer_at(v->type, v->data, 0, result)) wrong_type(key, "a whole number");
    return result;
}

std::optional<double> Gguf::number(std::string_view key) const {
    const GgufValue* v = value(key);
    if (v == nullptr) return std::nullopt;
    if (v->type == GgufValueType::f32) return load<float>(v->data);
    if (v->type == GgufValueType::f64) return load<double>(v->data);
    std::int64_t result = 0;
    if (!integer_at(v->type, v->data, 0, result)) wrong_type(key, "a number");
    return double(result);
}

std::optional<bool> Gguf::boolean(std::string_view key) const {
    const GgufValue* v = value(key);
    if (v == nullptr) return std::nullopt;
    if (v->type != GgufValueType::boolean) wrong_type(key, "true or false");
    return load<std::uint8_t>(v->data) != 0;
}

std::optional<std::string_view> Gguf::text(std::string_view key) const {
    const GgufValue* v = value(key);
    if (v == nullptr) return std::nullopt;
    if (v->type != GgufValueType::string) wrong_type(key, "a string");
    return std::string_view(reinterpret_cast<const char*>(v->data.data()), v->data.size());
}

std::optional<std::vector<std::string>> Gguf::texts(std::string_view key) const {
    const GgufValue* v = value(key);
    if (v == nullptr) return std::nullopt;
    if (v->type != GgufValueType::array || v->element != GgufValueType::string)
        wrong_type(key, "an array of strings");
    std::vector<std::string> result;
    result.reserve(v->count);
    ByteReader in(v->data, label_);
    for (std::uint64_t i = 0; i < v->count; ++i)
        result.emplace_back(in.text("a string in an array"));
    return result;
}

std::optional<std::vector<float>> Gguf::floats(std::string_view key) const {
    const GgufValue* v = value(key);
    if (v == nullptr) return std::nullopt;
    if (v->type != GgufValueType::array || v->element != GgufValueType::f32)
        wrong_type(key, "an array of 32-bit floating-point numbers");
    std::vector<float> result(v->count);
    if (!result.empty()) std::memcpy(result.data(), v->data.data(), v->data.size());
    return result;
}

std::optional<std::vector<std::int32_t>> Gguf::integers(std::string_view key) const {
    const GgufValue* v = value(key);
    if (v == nullptr) return std::nullopt;
    if (v->type != GgufValueType::array) wrong_type(key, "an array of whole numbers");
    std::vector<std::int32_t> result(v->count);
    for (std::uint64_t i = 0; i < v->count; ++i) {
        std::int64_t element = 0;
        if (!integer_at(v->element, v->data, i, element) || element != std::int64_t(std::int32_t(element)))
            wrong_type(key, "an array of 32-bit whole numbers");
        result[i] = std::int32_t(element);
    }
    return result;
}

}  // namespace recto
