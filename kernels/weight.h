// The logical form of a weight matrix: what every reader of a model file delivers and every backend packs,
// once, at load, in the order its kernels want. Kernels see only their packed form.
//
// A weight W is [rows = output features, cols = input features]. It is either dense (float32, float16,
// bfloat16) or grouped: along a row, each run of `group_size` elements shares a scale and an offset, and
//     w = scale * q + offset          (evaluated as one FP32 multiply and one FP32 add; the multiply is
//     exact)
// with q an unsigned 4-bit, unsigned 8-bit or signed 8-bit integer. AWQ/GPTQ zero points arrive as
// offset = -scale * z; GGUF minima as offset = m or -(dmin * M); symmetric types have no offset at all.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/dtype.h"
#include "kernels/raw_weight.h"

namespace recto {

// How wide the scale is in the file, so that a packed scale plane never takes more bytes than the source's.
enum class ScaleForm : std::uint8_t {
    f16,           // one FP16 a group (GGUF Q4_0 … Q8_0, AWQ, GPTQ)
    bf16,          // one BF16 a group (compressed-tensors)
    f16_times_u6,  // FP16 a super-group of 256 elements × a 6-bit factor a group (Q4_K, Q5_K; Q2_K has 4
                   // bits)
    f16_times_i8,  // FP16 a super-group of 256 elements × a signed 8-bit factor a group (Q6_K; Q3_K: −32 …
                   // 31)
    f32,  // anything else
};
enum class OffsetForm : std::uint8_t {
    none,          // symmetric: w = scale * q
    zero_point,    // offset = -scale * z with z an integer 0 … 15 (4-bit) or 0 … 255 (8-bit)
    f16,           // one FP16 a group (Q4_1, Q5_1, AWQ gemv_fast)
    f16_times_u6,  // −(FP16 a super-group of 256 × a 6-bit factor a group) (Q4_K, Q5_K, Q2_K)
    f32,
};
enum class QuantInt : std::uint8_t {
    u4,
    u8,
    i8
};  // 2- and 3-bit types travel as u4, 5- and 6-bit as u8 or i8

struct WeightForm {
    bool grouped = false;
    DType dense = DType::f32;         // when not grouped
    QuantInt integer = QuantInt::u4;  // when grouped, and all that follows
    int group_size = 0;               // 16, 32, 64, 128 or the row's length; divides cols
    ScaleForm scale = ScaleForm::f16;
    OffsetForm offset = OffsetForm::none;
    // The zero point where the format makes it the same everywhere (8 in Q4_0); −1: read it.
    std::int16_t constant_zero = -1;
    // What the file calls it ("Q4_1", "AWQ", "F16"): for people and for reports.
    const char* source_name = "";
    double bits_per_weight = 0;  // of the source, scales included
};

constexpr int super_group = 256;  // elements under one FP16 of the f16_times_* forms

// Caller-owned planes that WeightRows::read fills, row-major over the rows asked for. A null pointer is
// skipped.
struct WeightPlanes {
    std::uint8_t* q = nullptr;           // [n, cols] one byte an element; i8 in two's complement
    float* scale = nullptr;              // [n, cols / group_size] effective scale, exact
    float* offset = nullptr;             // [n, cols / group_size] effective offset, exact (0 when none)
    std::uint8_t* zero_point = nullptr;  // [n, cols / group_size] OffsetForm::zero_point only
    // The parts of a composed scale or offset, for backends that keep them in the source's width:
    std::uint16_t* super_scale = nullptr;  // [n, cols / 256] FP16 bits (f16_times_u6, f16_times_i8)
    std::int8_t* scale_factor = nullptr;   // [n, cols / group_size] 6-bit or signed 8-bit
    std::uint16_t* super_offset =
        nullptr;  // [n, cols / 256] FP16 bits of dmin, positive sense: offset = -(dmin * M)
    std::uint8_t* offset_factor = nullptr;  // [n, cols / group_size]
};

// One weight matrix as a reader delivers it. `read*` may be called from several threads at once; they touch
// only the rows asked for, so a packer streams through the file map.
class WeightRows {
  public:
    virtual ~WeightRows() = default;
    virtual std::int64_t rows() const = 0;
    virtual std::int64_t cols() const = 0;
    virtual const WeightForm& form() const = 0;
    // How many rows a packer best asks read() for at once (and at multiples of it): files that are packed
    // along their outputs hold this many in a cache line of each input. Any other number gives the same,
    // slower.
    virtual std::int64_t preferred_rows() const { return 16; }

    // Grouped weights only.
    virtual void read(std::int64_t first_row, std::int64_t n, const WeightPlanes& out) const = 0;
    // Any weight, exactly dequantized (in the format's own arithmetic) to FP32: out is [n, cols].
    virtual void read_f32(std::int64_t first_row, std::int64_t n, float* out) const = 0;
    // Dense weights only: n rows in their own dtype, out is [n, cols] of form().dense.
    virtual void read_dense(std::int64_t first_row, std::int64_t n, void* out) const = 0;

    // The same weight as bytes in the file, where a backend may unpack them itself.
    virtual std::optional<RawWeight> raw() const { return std::nullopt; }

    // Input permutation of act-order files, [cols], or empty: element k of a row belongs to input
    // permutation[k].
    virtual std::span<const std::int32_t> input_permutation() const { return {}; }
    // [rows] FP32, or empty.
    virtual std::span<const float> bias() const { return {}; }
};

}  // namespace recto
