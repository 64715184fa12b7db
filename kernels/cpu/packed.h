// Weights in the order that the CPU's kernels read them.
//
// Outputs are cut in tiles of 16: lane r of every vector is output row 16 t + r. A tile is one contiguous run
// of bytes, so a matrix-vector product is one forward stream through memory:
//     [scale plane][offset plane][values]          grouped
//     [values]                                     dense: [cols][16] in the source's dtype
// Values of a grouped tile follow the input in steps of 4 (8 bit: byte 4 r + i is input k + i of row r) or of
// 8 inputs (4 bit: the same, inputs k … k + 3 in the low nibbles, k + 4 … k + 7 in the high ones), 64 bytes a
// step. Signed 8-bit values are kept as value + 128. Planes hold one vector of 16 a group, in the source's
// width: FP16, BF16, FP32, or an FP16 vector a super-group of 256 inputs followed by the vectors of 8-bit
// factors.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/memory.h"
#include "kernels/weight.h"

namespace recto::cpu {

constexpr int lanes = 16;
constexpr int activation_group = 32;  // inputs under one activation scale

struct PackedPart {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t first_output = 0;  // its place among the outputs of the whole weight
    std::int64_t tiles = 0;
    WeightForm form;
    int chunk = activation_group;  // inputs of one integer sum: min(group size, 32)
    std::int64_t chunks = 0;       // a row, the last one padded with zeros
    std::int64_t groups = 0;       // a row
    std::int64_t chunks_per_group = 0;
    std::size_t offset_plane = 0;  // bytes from the tile's start
    std::size_t values = 0;
    std::size_t tile_bytes = 0;
    int input = 0;            // index into PackedMatrix::inputs
    SharedBytes data;         // [tiles][tile_bytes]
    std::vector<float> bias;  // [tiles * 16], or empty

    const std::uint8_t* tile(std::int64_t t) const { return data.data() + std::size_t(t) * tile_bytes; }
};

class PackedMatrix final : public PackedWeight {
  public:
    std::int64_t rows() const override { return rows_; }
    std::int64_t cols() const override { return cols_; }
    std::size_t bytes() const override;
    std::string describe() const override;

    std::int64_t rows_ = 0, cols_ = 0;
    Activations mode = Activations::int8;
    std::string isa;
    std::vector<PackedPart> parts;
    // What a part reads: distinct permutations of the input (empty: as it is) and sum widths.
    struct Input {
        std::vector<std::int32_t> permutation;  // [cols] or empty
        int chunk = activation_group;
        bool quantized = false;  // int8 panels, else FP32
    };
    std::vector<Input> inputs;
};

class ThreadPool;
std::unique_ptr<PackedMatrix> pack_matrix(std::span<const WeightRows* const> sources, Activations mode,
                                          ThreadPool& pool, const std::string& isa, WeightMemory& memory);

// out[cols] = row `row` of the matrix, exactly dequantized, times `scale`.
void unpack_row(const PackedMatrix& matrix, std::int64_t row, float scale, float* out);

}  // namespace recto::cpu
