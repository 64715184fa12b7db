#include "kernels/dtype.h"

namespace recto {

const char* dtype_name(DType t) {
    switch (t) {
        case DType::f32:
            return "float32";
        case DType::f16:
            return "float16";
        case DType::bf16:
            return "bfloat16";
        case DType::i32:
            return "int32";
        case DType::i8:
            return "int8";
        case DType::f8_e4m3:
            return "fp8_e4m3";
    }
    return "?";
}

float f16_to_f32(std::uint16_t h) {
    const std::uint32_t sign = std::uint32_t(h & 0x8000U) << 16;
    const std::uint32_t exponent = (h >> 10) & 0x1FU;
    const std::uint32_t mantissa = h & 0x3FFU;
    if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
    // Zero and subnormals: mantissa * 2^-24 is exact in FP32.
    const float magnitude = float(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

std::uint16_t f32_to_f16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return std::uint16_t(sign | 0x7E00U);   // NaN, quiet
    if (magnitude >= 0x477FF000U) return std::uint16_t(sign | 0x7C00U);  // rounds to infinity
    if (magnitude < 0x38800000U) {
        // Subnormal in FP16. Adding 0.5 puts the value's unit 2^-24 at the last mantissa bit, so that the FPU
        // rounds.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
    }
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
    return std::uint16_t(sign | ((rounded - 0x38000000U) >> 13));
}

std::uint16_t f32_to_bf16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return std::uint16_t((bits >> 16) | 0x40U);
    return std::uint16_t((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float e4m3_to_f32(std::uint8_t b) {
    const std::uint32_t sign = std::uint32_t(b & 0x80U) << 24;
    const std::uint32_t exponent = (b >> 3) & 0xFU;
    const std::uint32_t mantissa = b & 0x7U;
    if (exponent == 0xFU && mantissa == 0x7U) return std::bit_cast<float>(sign | 0x7FC00000U);
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 120U) << 23) | (mantissa << 20));
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(float(mantissa) * 0x1p-9F) | sign);
}

std::uint8_t f32_to_e4m3(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 24) & 0x80U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return std::uint8_t(sign | 0x7FU);
    if (magnitude >= 0x43E00000U) return std::uint8_t(sign | 0x7EU);  // 448 and more
    if (magnitude < 0x3C800000U) {
        // Below 2^-6. Adding 2^14 puts the unit of subnormals, 2^-9, at the last mantissa bit.
        const float shifted = std::bit_cast<float>(magnitude) + 0x1p14F;
        return std::uint8_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x46800000U));
    }
    const std::uint32_t rounded = magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U);
    return std::uint8_t(sign | ((rounded - 0x3C000000U) >> 20));
}

float as_stored(float value, DType type) {
    switch (type) {
        case DType::f16:
        case DType::bf16:
            return widen_16(narrow_16(value, type), type);
        case DType::f8_e4m3:
            return e4m3_to_f32(f32_to_e4m3(value));
        default:
            return value;
    }
}

}  // namespace recto
