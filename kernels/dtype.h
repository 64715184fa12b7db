// Element types of dense tensors, and exact conversions between them.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace recto {

enum class DType : std::uint8_t { f32, f16, bf16, i32, i8, f8_e4m3 };

constexpr std::size_t dtype_bytes(DType t) {
    switch (t) {
        case DType::f32:
            return 4;
        case DType::i32:
            return 4;
        case DType::f16:
            return 2;
        case DType::bf16:
            return 2;
        case DType::i8:
        case DType::f8_e4m3:
            return 1;
    }
    return 0;
}
const char* dtype_name(DType t);  // "float32", "float16", "bfloat16", "int32", "int8", "fp8_e4m3"

// IEEE 754 binary16 and bfloat16 held as bits. Widening is exact; narrowing rounds half to even.
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);
inline float bf16_to_f32(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t(bits) << 16);
}
std::uint16_t f32_to_bf16(float value);
// Of the one of these two that `type` is.
inline float widen_16(std::uint16_t bits, DType type) {
    return type == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}
inline std::uint16_t narrow_16(float value, DType type) {
    return type == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
}

// FP8 E4M3 (OCP 8-bit floating point specification 1.0): 3 bits of mantissa, exponents −6 … 8, subnormals of
// 2^-9, no infinity. Narrowing rounds half to even and saturates at ±448; NaN stays NaN.
float e4m3_to_f32(std::uint8_t bits);
std::uint8_t f32_to_e4m3(float value);

// The value that a floating-point type holds of this one.
float as_stored(float value, DType type);

}  // namespace recto
