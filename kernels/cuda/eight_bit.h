// Products of many rows with 8-bit operands: activations and 4- and 8-bit weights are both rounded to FP8
// (e4m3) or int8, with one FP32 scale a row of x ("per token") and one an output, and multiplied by cuBLASLt.
//
//     scale = largest |v| of the row / limit      limit 448 (e4m3) or 127; NaN where the row is not finite
//     v8    = v · (1 / scale), rounded half to even
//     out   = (Σ x8 · w8) · scale_x · scale_w
// With a weight's group w = scale_g · (q − z) + offset_g that is fma(q − z, scale_g / scale, offset_g /
// scale). All in FP32. The recipe is that of Dettmers et al., "LLM.int8()" (2022), "vector-wise
// quantization"; making the weights 8 bits wide on the fly that of Lin et al., "QServe" (2024), here with a
// transient copy.
//
// The 8-bit copy of the weight is made a slice of outputs at a time, so that it is still in the card's L2
// cache when the product reads it. Inputs are padded to 128 and lie in the order in which a lane of the tiles
// holds them: byte 16 t + 4 i + e of 64 is input 16 i + 2 t + e % 2 + 8 (e / 2). x is put in the same order,
// and sums do not care.
#pragma once
#include <optional>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/lt_matmul.h"
#include "kernels/cuda/scratch_sizes.h"
#include "kernels/cuda/tiled_weight.h"

namespace recto::cuda {

// f8_e4m3 or i8; f32 for the modes that have no such products.
DType eight_bit_type(Activations mode);
// What a card of this compute capability has: FP8 from 8.9 on, int8 from 8.0 on.
std::optional<Activations> card_eight_bit(int major, int minor);

class EightBit {
  public:
    explicit EightBit(LtMatmul& lt) : lt_(lt) {}

    static bool serves(const TileWeight& weight, std::int64_t rows) {
        return weight.eight != DType::f32 && rows > eight_bit_rows;
    }
    // Makes room for products of up to `max_rows` rows. True if memory moved.
    bool reserve(const ProductNeeds& needs, std::int64_t max_rows);
    std::size_t bytes() const { return x8_.bytes() + x_scale_.bytes() + w8_.bytes() + sums_.bytes(); }
    // out = x · Wᵀ, or out += with `add`, without bias; of a gated weight gate rows, then up rows.
    // x [rows, cols] of weight.dtype, 16-byte aligned rows; out of a 16-bit type or FP32, [rows, weight.rows]
    void run(cudaStream_t stream, Tensor x, const TileWeight& weight, Tensor out, bool add);

  private:
    void run_apart(cudaStream_t stream, Tensor x8, const TileWeight& w, int first, Tensor out, bool add);

    LtMatmul& lt_;
    DeviceMemory x8_;       // [rows, widest]
    DeviceMemory x_scale_;  // [rows]
    DeviceMemory w8_;       // a slice
    DeviceMemory sums_;     // of products whose scales are applied afterwards
    std::int64_t reserved_rows_ = 0, reserved_widest_ = 0;
};

// --- eight_bit.cu

// 16 consecutive rows of a weight's logical order, within its gate or its up half; the last of each may be
// cut short.
struct RowGroups {
    int a_half = 0;  // of the gate rows, or of all
    int count = 0;
};
RowGroups row_groups(const TileWeight& weight);
// The first row of group `index`; that of group `count` is weight.rows.
int first_row(const TileWeight& weight, int index);

// Fills weight.row_scale from the tiles.
void find_row_scales(cudaStream_t stream, const TileWeight& weight);
// x [rows, cols] of a 16-bit type → to [rows, to.cols] of f8_e4m3 or i8 and scale [rows]; to.cols a multiple
// of 64
void quantize_rows(cudaStream_t stream, Tensor x, Tensor to, float* scale);
// Row groups [first, first + count) → to, rows of weight.chunks · 128 bytes
void quantize_weight(cudaStream_t stream, const TileWeight& weight, int first, int count, std::byte* to);
// out = sums · x_scale[row] · w_scale[column] (+ out); sums FP32 or i32
void apply_scales(cudaStream_t stream, Tensor sums, const float* x_scale, const float* w_scale, Tensor out,
                  bool add);

}  // namespace recto::cuda
