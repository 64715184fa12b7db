#include "kernels/cuda/eight_bit.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"

namespace recto::cuda {
namespace {

// A slice and the rows of x that meet it stay in the 50 MB of an H200's L2; a multiple of 1,024 outputs fills
// the card's 132 SMs with tiles of 128 x 256.
constexpr std::int64_t most_slice_bytes = 32 << 20;
constexpr int slice_step = 1024;
constexpr std::int64_t sum_bytes = 32 << 20;
constexpr int column_unit = 16;  // of cuBLASLt's 8-bit products

std::int64_t inputs_of(const TileWeight& w) {
    return std::int64_t(w.chunks) * chunk_k;
}

// Row groups a slice.
int slice_groups(const TileWeight& w) {
    const std::int64_t rows =
        std::max<std::int64_t>(most_slice_bytes / inputs_of(w) / slice_step, 1) * slice_step;
    return std::min(int(rows / 16), row_groups(w).count);
}

int padded(std::int64_t columns) {
    return int((columns + column_unit - 1) / column_unit * column_unit);
}

}  // namespace

DType eight_bit_type(Activations mode) {
    return mode == Activations::token_fp8    ? DType::f8_e4m3
           : mode == Activations::token_int8 ? DType::i8
                                             : DType::f32;
}

std::optional<Activations> card_eight_bit(int major, int minor) {
    if (major > 8 || (major == 8 && minor >= 9)) return Activations::token_fp8;
    if (major == 8) return Activations::token_int8;
    return std::nullopt;
}

void EightBit::expect(const TiledWeight& weight) {
    for (const auto& s : weight.segments()) {
        if (s.tile.eight == DType::f32) continue;
        widest_ = std::max(widest_, inputs_of(s.tile));
        slice_bytes_ = std::max(slice_bytes_, std::int64_t(slice_groups(s.tile)) * 16 * inputs_of(s.tile));
    }
}

bool EightBit::reserve(std::int64_t max_rows) {
    if (widest_ == 0 || max_rows <= eight_bit_rows) return false;
    bool moved = false;
    const std::int64_t rows = std::max(max_rows, reserved_rows_);
    if (rows > reserved_rows_ || widest_ > reserved_widest_) {
        reserved_rows_ = rows;
        reserved_widest_ = widest_;
        x8_ = DeviceMemory();  // first, so that both never exist together
        x8_ = DeviceMemory(std::size_t(rows * widest_));
        x_scale_ = DeviceMemory();
        x_scale_ = DeviceMemory(std::size_t(rows) * sizeof(float));
        moved = true;
    }
    if (std::size_t(slice_bytes_) > w8_.bytes()) {
        w8_ = DeviceMemory();
        w8_ = DeviceMemory(std::size_t(slice_bytes_));
        // Outputs are rounded up to 16, and what the others' sums are of is read although nobody wants them.
        check(cudaMemset(w8_.data(), 0, w8_.bytes()), "clearing a workspace");
        moved = true;
    }
    if (!sums_.data()) {
        sums_ = DeviceMemory(std::size_t(sum_bytes));
        moved = true;
    }
    return moved;
}

void EightBit::run(cudaStream_t stream, Tensor x, const TileWeight& w, Tensor out, bool add) {
    assert(serves(w, x.rows) && x.rows <= reserved_rows_ && x.cols == w.cols && out.cols == w.rows);
    const std::int64_t inputs = inputs_of(w);
    auto* x_scale = static_cast<float*>(x_scale_.data());
    const Tensor x8{x8_.data(), w.eight, x.rows, inputs, inputs};
    quantize_rows(stream, x, x8, x_scale);
    const int groups = row_groups(w).count, step = slice_groups(w);
    for (int group = 0; group < groups; group += step) {
        const int count = std::min(step, groups - group);
        const int first = first_row(w, group), n = first_row(w, group + count) - first;
        quantize_weight(stream, w, group, count, w8_.at(0));
        const Tensor to = out.columns(first, n);
        const std::size_t width = dtype_bytes(to.dtype);
        const bool aligned = n % column_unit == 0 && reinterpret_cast<std::uintptr_t>(to.data) % 16 == 0 &&
                             std::size_t(to.row_stride) * width % 16 == 0;
        if (w.eight == DType::f8_e4m3 && aligned &&
            lt_.run_scaled(stream, x8, w8_.data(), to, add, {x_scale, w.row_scale + first}))
            continue;
        run_apart(stream, x8, w, first, to, add);
    }
}

// The slice's sums first, then their scales: int8, and FP8 where the library does not apply scales itself.
void EightBit::run_apart(cudaStream_t stream, Tensor x8, const TileWeight& w, int first, Tensor out,
                         bool add) {
    const std::int64_t room = sum_bytes / std::int64_t(sizeof(float)) / x8.rows / column_unit * column_unit;
    assert(room > 0);
    for (std::int64_t at = 0; at < out.cols; at += room) {
        const std::int64_t n = std::min(room, out.cols - at);
        const DType type = w.eight == DType::i8 ? DType::i32 : DType::f32;
        const Tensor sums{sums_.data(), type, x8.rows, padded(n), padded(n)};
        lt_.run(stream, x8, w8_.at(std::size_t(at * x8.cols)), sums, false);
        apply_scales(stream, sums, static_cast<const float*>(x_scale_.data()), w.row_scale + first + at,
                     out.columns(at, n), add);
    }
}

}  // namespace recto::cuda
