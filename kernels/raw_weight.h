// A weight as its bytes lie in the file map, for backends that unpack them on the device: what kind of bytes,
// and where. Everything here says the same as WeightRows::read and read_dense, before any unpacking.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/dtype.h"

namespace recto {

// Undoes the row order that GGUF's "llama" architecture stores q and k in (llama.cpp conversion/llama.py):
// inside each head, file row 2i is Hugging Face's row i, and file row 2i + 1 its row i + d/2. Rows past the d
// rotated ones stay where they are. Default: no reordering.
struct RowOrder {
    int head_dim = 0;
    int rotary_dims = 0;  // d; even

    std::int64_t file_row(std::int64_t row) const {
        if (head_dim == 0) return row;
        const std::int64_t in_head = row % head_dim;
        if (in_head >= rotary_dims) return row;
        const std::int64_t half = rotary_dims / 2;
        return row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
    }
};

enum class RawLayout : std::uint8_t {
    dense,  // packed: a line of elements an output
    // GGUF blocks (kernels/gguf_blocks.h); packed: a line of blocks an output
    q4_0,
    q4_1,
    q5_0,
    q5_1,
    q8_0,
    q2_k,
    q3_k,
    q4_k,
    q5_k,
    q6_k,
    iq4_nl,
    iq4_xs,
    // Words of integers beside planes of scales and zero points (kernels/raw_words.h)
    awq_gemm,  // packed: a line an input, a word eight outputs; zeros and scales: a line a group
    awq_gemv,  // packed, zeros and scales: a line an output
    gptq,      // packed: a line the inputs of a word, a word an output; zeros and scales: a line a group
    words,     // compressed-tensors; packed and scales: a line an output; zeros: a line the outputs of a word
};

// Lines of a file, `stride` bytes apart, of which the first `line_bytes` count. Any alignment.
struct RawPlane {
    const std::byte* data = nullptr;
    std::int64_t lines = 0;
    std::int64_t line_bytes = 0;
    std::int64_t stride = 0;

    std::size_t bytes() const { return std::size_t(lines * line_bytes); }
};

struct RawWeight {
    RawLayout layout = RawLayout::dense;
    RawPlane packed;
    RowOrder order;  // line r of the matrix is line order.file_row(r) of `packed`; dense and blocks only
    // The word layouts only:
    RawPlane scales;  // of scale_dtype
    RawPlane zeros;   // no lines: all are the middle, or none (signed words of 8 bits)
    DType scale_dtype = DType::f16;
    int bits = 4;
    std::int64_t file_group = 0;  // inputs under one scale; the last group of a row may be shorter
    bool zeros_less_one = false;  // GPTQ version 1
    bool zero_bytes = false;      // `words`: zeros are signed bytes, less the middle, and a line an output
    std::vector<std::int32_t>
        permutation;  // element k of a row is element permutation[k] in the file; empty: k
    std::shared_ptr<const void> keep_alive;  // the map that the planes point into
};

}  // namespace recto
