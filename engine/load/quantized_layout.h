// Where the integers lie in the tensors of quantized Hugging Face folders: for the readers here and for the
// writers in engine/save. Words are little-endian; nibble i of a word is its bits 4i … 4i + 3 ("plain
// order").
//
// Sources: AutoAWQ awq/modules/linear/{gemm,gemv,gemv_fast}.py and awq/utils/packing_utils.py; AutoGPTQ
// auto_gptq/nn_modules/qlinear; GPTQModel gptqmodel/utils/model.py; compressed-tensors
// compressors/pack_quantized.
#pragma once
#include <cstdint>

namespace recto::quantized {

enum class Layout : std::uint8_t {
    awq_gemm,       // qweight i32 [cols, rows/8], qzeros i32 [groups, rows/8], scales [groups, rows]
    awq_gemv,       // qweight i32 [rows, cols/8], qzeros i32 [rows, Z], scales [rows, 8 Z]
    awq_gemv_fast,  // qweight i16 [rows/4, cols], qzeros (llm-awq: scaled_zeros) f16 and scales [8 Z, rows]
    gptq,  // qweight i32 [cols/n, rows], qzeros i32 [groups, rows/n], scales [groups, rows], g_idx i32 [cols]
    packed,  // weight_packed i32 [rows, ⌈cols/n⌉], weight_scale [rows, groups], weight_shape [2]; perhaps
             // weight_zero_point i32 [⌈rows/n⌉, groups] or i8 [rows, groups], weight_g_idx i32 [cols]
};           // n = 32 / bits, Z = awq_zero_words()

// AutoAWQ "gemm": of the eight outputs in a word, output j is in nibble awq_nibble[j]; nibble i holds output
// awq_output[i]. So that (word >> 4k) & 0x000f000f holds outputs 2k and 2k + 1.
constexpr int awq_nibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};
constexpr int awq_output[8] = {0, 2, 4, 6, 1, 3, 5, 7};

// Words of zero points a row in AWQ gemv; 8 times that many rows of zeros and scales in gemv_fast. Past the
// row's groups they are zero.
constexpr std::int64_t awq_zero_words(std::int64_t cols, std::int64_t group_size) {
    const std::int64_t groups = cols / group_size, words = (groups + 7) / 8;
    const std::int64_t multiple = group_size >= 128 ? 1 : group_size == 64 ? 2 : 4;
    return (words + multiple - 1) / multiple * multiple;
}

// AWQ gemv_fast: input k of output n is nibble `nibble` of the 16-bit word at [n / 4][word].
struct FastPlace {
    std::int64_t word;
    int nibble;
};
constexpr FastPlace awq_fast_place(std::int64_t n, std::int64_t k) {
    return {64 * (k / 64) + 16 * (n % 4) + 8 * (k / 32 % 2) + k % 8, int(k / 8 % 4)};
}

// GPTQ v1 stores zero points less 1, taken from the whole word: a zero point of 0 borrows from its neighbour.
// Adding this to the whole word (mod 2^32) gives all of them back.
constexpr std::uint32_t gptq_v1_ones(int bits) {
    return bits == 4 ? 0x11111111U : 0x01010101U;
}

// Integers v = −2^(bits−1) … of compressed-tensors are stored as v + this; symmetric AWQ and GPTQ weights
// have it as their zero point.
constexpr int middle(int bits) {
    return 1 << (bits - 1);
}

}  // namespace recto::quantized
