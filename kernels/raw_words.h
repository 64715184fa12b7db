// The integers and zero points of the word layouts of RawLayout, one at a time, out of planes without gaps
// between their lines. engine/load/quantized_layout.h says which program packs so.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/both.h"
#include "kernels/raw_weight.h"

namespace recto::raw {

struct WordView {
    RawLayout layout = RawLayout::awq_gemm;
    int bits = 4;
    bool zeros_less_one = false;
    bool zero_bytes = false;
    const std::byte* packed = nullptr;  // lines 4-byte aligned, and those of zeros unless zero_bytes
    const std::byte* zeros = nullptr;   // may be null
    const std::byte* scales = nullptr;
    std::int64_t packed_line = 0, zeros_line = 0, scales_line = 0;  // bytes
    int scale_bytes = 2;                                            // of a scale
};

RECTO_BOTH inline std::uint32_t word_at(const std::byte* plane, std::int64_t line_bytes, std::int64_t line,
                                        std::int64_t word) {
    return *reinterpret_cast<const std::uint32_t*>(plane + line * line_bytes + word * 4);
}

// AutoAWQ "gemm": outputs 0 … 7 of a word lie in nibbles 0, 4, 1, 5, 2, 6, 3, 7.
RECTO_BOTH inline int awq_shift(std::int64_t output) {
    const int j = int(output % 8);
    return 4 * (j / 2 + j % 2 * 4);
}

// Element k, in the order of the file, of row r.
RECTO_BOTH inline std::uint8_t code(const WordView& v, std::int64_t r, std::int64_t k) {
    const int per_word = 32 / v.bits;
    const std::uint32_t mask = (1U << v.bits) - 1;
    const int shift = v.bits * int(k % per_word);
    switch (v.layout) {
        case RawLayout::awq_gemm:
            return std::uint8_t(word_at(v.packed, v.packed_line, k, r / 8) >> awq_shift(r) & 15U);
        case RawLayout::gptq:
            return std::uint8_t(word_at(v.packed, v.packed_line, k / per_word, r) >> shift & mask);
        default:
            break;
    }
    const auto q = std::uint8_t(word_at(v.packed, v.packed_line, r, k / per_word) >> shift & mask);
    // compressed-tensors of 8 bits without zero points travel signed: v + 128 → v in two's complement.
    return v.layout == RawLayout::words && v.bits == 8 && v.zeros == nullptr ? std::uint8_t(q ^ 0x80U) : q;
}

// Of group g of the file; formats that have zero points only.
RECTO_BOTH inline std::uint8_t zero_point(const WordView& v, std::int64_t r, std::int64_t g) {
    const int middle = 1 << (v.bits - 1);
    if (v.zeros == nullptr) return std::uint8_t(middle);
    if (v.zero_bytes)
        return std::uint8_t(int(static_cast<std::int8_t>(v.zeros[r * v.zeros_line + g])) + middle);
    const int per_word = 32 / v.bits;
    const std::uint32_t mask = (1U << v.bits) - 1;
    switch (v.layout) {
        case RawLayout::awq_gemm:
            return std::uint8_t(word_at(v.zeros, v.zeros_line, g, r / 8) >> awq_shift(r) & 15U);
        case RawLayout::awq_gemv:
            return std::uint8_t(word_at(v.zeros, v.zeros_line, r, g / 8) >> 4 * (g % 8) & 15U);
        case RawLayout::gptq: {
            // Version 1 took 1 from each zero point, borrowing across the word: so it is given back.
            const std::uint32_t ones = !v.zeros_less_one ? 0U : v.bits == 4 ? 0x11111111U : 0x01010101U;
            return std::uint8_t((word_at(v.zeros, v.zeros_line, g, r / per_word) + ones) >>
                                    v.bits * int(r % per_word) &
                                mask);
        }
        default:
            return std::uint8_t(
                word_at(v.zeros, v.zeros_line, r / per_word, g) >> v.bits * int(r % per_word) & mask);
    }
}

// Where the scale of group g of the file lies.
RECTO_BOTH inline const std::byte* scale_at(const WordView& v, std::int64_t r, std::int64_t g) {
    const bool by_group = v.layout == RawLayout::awq_gemm || v.layout == RawLayout::gptq;
    return by_group ? v.scales + g * v.scales_line + r * v.scale_bytes
                    : v.scales + r * v.scales_line + g * v.scale_bytes;
}

}  // namespace recto::raw
