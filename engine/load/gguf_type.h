// Element types of GGUF tensors: the ones that Recto reads, with the size of their blocks
// (llama.cpp ggml/include/ggml.h, ggml/src/ggml-common.h).
#pragma once
#include <cstdint>
#include <string>

namespace recto {

enum class GgufType : std::uint32_t {
    f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8,
    q2_k = 10, q3_k = 11, q4_k = 12, q5_k = 13, q6_k = 14, iq4_nl = 20, iq4_xs = 23, bf16 = 30,
};

struct GgufTypeInfo {
    GgufType type;
    const char* name;
    int elements;  // of a block, along the contiguous dimension
    int bytes;     // of a block
};

// Null for types that Recto does not read.
const GgufTypeInfo* gguf_type_info(std::uint32_t id);
// Also for types that it does not read: "IQ2_XS"; "type 77" when unknown.
std::string gguf_type_name(std::uint32_t id);
// "F32, F16, …", for messages.
std::string gguf_type_names();

}  // namespace recto
