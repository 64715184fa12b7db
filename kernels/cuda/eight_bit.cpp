#include "kernels/cuda/eight_bit.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"

namespace recto::cuda {
namespace {

constexpr int column_unit = 16;  // of cuBLASLt's 8-bit products

std::int64_t inputs_of(const TileWeight& w) {
    return std::int64_t(w.chunks) * chunk_k;
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

bool EightBit::reserve(const ProductNeeds& needs, std::int64_t max_rows) {
    const std::int64_t rows = std::max(max_rows, reserved_rows_);
    const EightSizes sizes = eight_sizes(needs, rows);
    if (sizes.x8 == 0) return false;
    bool moved = false;
    if (rows > reserved_rows_ || needs.eight_input > reserved_widest_) {
        reserved_rows_ = rows;
        reserved_widest_ = needs.eight_input;
        x8_ = DeviceMemory();  // first, so that both never exist together
        x8_ = DeviceMemory(sizes.x8);
        x_scale_ = DeviceMemory();
        x_scale_ = DeviceMemory(sizes.x_scale);
        moved = true;
    }
    if (sizes.w8 > w8_.bytes()) {
        w8_ = DeviceMemory();
        w8_ = DeviceMemory(sizes.w8);
        // Outputs are rounded up to 16, and what the others' sums are of is read although nobody wants them.
        check(cudaMemset(w8_.data(), 0, w8_.bytes()), "clearing a workspace");
        moved = true;
    }
    if (!sums_.data()) {
        sums_ = DeviceMemory(sizes.sums);
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
    const int groups = row_groups(w).count, step = eight_slice_groups(inputs, groups);
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
    const auto floats = std::int64_t(sums_.bytes() / sizeof(float));
    const std::int64_t room = floats / x8.rows / column_unit * column_unit;
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
