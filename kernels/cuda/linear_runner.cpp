#include "kernels/cuda/linear_runner.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/choices.h"
#include "kernels/cuda/general_linear.h"
#include "kernels/cuda/kernels.h"

namespace recto::cuda {
namespace {

std::size_t unpacked_bytes_of(const TileWeight& w, int blocks) {
    return std::size_t(blocks) * block_rows * std::size_t(w.cols) * 2;
}

}  // namespace

void LinearRunner::expect(ProductNeeds& needs, const TiledWeight& weight) {
    for (const auto& s : weight.segments())
        expect_product(needs, {s.tile.rows, weight.cols(), s.tile.gated, s.tile.kind != TileKind::dense,
                               s.tile.eight != DType::f32});
    if (weight.gated()) needs.pair = std::max(needs.pair, weight.rows());
}

bool LinearRunner::reserve(const ProductNeeds& needs, std::int64_t max_rows) {
    bool moved = eight_.reserve(needs, max_rows);
    const std::int64_t rows = std::max(max_rows, reserved_rows_);
    const LinearSizes sizes = linear_sizes({multiprocessors_, true, hopper(), has_library()}, needs, rows);
    if (sizes.library > 0) lt_.prepare();
    if (!partials_.data()) {
        partials_ = DeviceMemory(sizes.partials);
        counters_ = DeviceMemory(sizes.counters);
        check(cudaMemset(counters_.data(), 0, counters_.bytes()), "clearing counters");
        moved = true;
    }
    if (rows > reserved_rows_ || needs.input > reserved_input_ || needs.pair > reserved_pair_) {
        reserved_rows_ = rows;
        reserved_input_ = needs.input;
        reserved_pair_ = needs.pair;
        rows_ = DeviceMemory();  // first, so that both never exist together
        rows_ = DeviceMemory(sizes.rows);
        moved = true;
    }
    if (sizes.unpacked > unpacked_.bytes()) {
        unpacked_ = DeviceMemory();
        unpacked_ = DeviceMemory(sizes.unpacked);
        moved = true;
    }
    return moved;
}

std::size_t LinearRunner::bytes() const {
    return partials_.bytes() + counters_.bytes() + rows_.bytes() + unpacked_.bytes() + lt_.bytes() +
           eight_.bytes();
}

std::size_t LinearRunner::pair_offset() const {
    return (std::size_t(reserved_rows_ * reserved_input_) * 2 + 255) / 256 * 256;
}

Tensor LinearRunner::scratch_rows(std::int64_t rows, std::int64_t cols, DType dtype,
                                  std::size_t offset) const {
    assert(offset + std::size_t(rows * cols) * 2 <= rows_.bytes());
    return {rows_.at(offset), dtype, rows, cols, cols};
}

void LinearRunner::run(cudaStream_t stream, Tensor x, const TiledWeight& weight, Epilogue epilogue,
                       Tensor out) {
    assert(x.cols == weight.cols() && x.rows == out.rows);
    assert(x.rows <= reserved_rows_);
    const bool gated = epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul;
    const bool aligned = x.row_stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
    const bool apart = gated && !weight.interleaved();
    const Tensor whole =
        apart ? scratch_rows(x.rows, weight.rows(), weight.activation(), pair_offset()) : out;
    for (const auto& s : weight.segments()) {
        Tensor in = x;
        if (s.order || x.dtype != weight.activation() || !aligned) {
            in = scratch_rows(x.rows, x.cols, weight.activation(), 0);
            copy_columns(stream, x, s.order, in);
        }
        run_segment(stream, in, s, apart ? Epilogue::store : epilogue,
                    whole.columns(s.first_output, s.tile.outputs));
    }
    if (apart) gate_rows(stream, whole, epilogue, out);
}

void LinearRunner::run_segment(cudaStream_t stream, Tensor x, const TiledWeight::Segment& s,
                               Epilogue epilogue, Tensor out) {
    const TileWeight& w = s.tile;
    const ProductKernel kernel = choose_product({multiprocessors_, true, hopper(), has_library()}, w.kind,
                                                w.eight != DType::f32, x.rows);
    if (kernel == ProductKernel::own) {
        run_own(stream, x, w, {out, epilogue, s.bias});
        return;
    }
    if (kernel == ProductKernel::unpacked) {
        run_unpacked(stream, x, s, epilogue, out);
        return;
    }
    assert(kernel == ProductKernel::eight_bit || kernel == ProductKernel::library);
    const auto product = [&](Tensor to, bool add) {
        if (kernel == ProductKernel::eight_bit)
            eight_.run(stream, x, w, to, add);
        else
            lt_.run(stream, x, w.data, to, add);
    };
    if (!w.gated) {
        product(out, epilogue == Epilogue::add);
        if (s.bias) add_bias(stream, out, s.bias);
        return;
    }
    const Tensor both = scratch_rows(x.rows, w.rows, w.dtype, pair_offset());
    product(both, false);
    if (s.bias) add_bias(stream, both, s.bias);
    gate_rows(stream, both, epilogue, out);
}

void LinearRunner::run_own(cudaStream_t stream, Tensor x, const TileWeight& w,
                           const TileOutput& output) const {
    const LinearScratch scratch{static_cast<float*>(partials_.data()), partials_.bytes() / sizeof(float),
                                static_cast<unsigned*>(counters_.data()), counter_count};
    if (path_ == LinearPath::hopper)
        hopper_linear(stream, x, w, output, scratch, choose_tile(w, x.rows, multiprocessors_));
    else
        general_linear(stream, x, w, output, scratch, choose_general_tile(w, x.rows, multiprocessors_));
}

void LinearRunner::run_unpacked(cudaStream_t stream, Tensor x, const TiledWeight::Segment& s,
                                Epilogue epilogue, Tensor out) {
    const TileWeight& w = s.tile;
    const int width = w.gated ? block_rows / 2 : block_rows;  // outputs of a block
    const int most =
        int(std::min<std::size_t>(unpacked_.bytes() / unpacked_bytes_of(w, 1), std::size_t(w.blocks)));
    assert(most > 0);
    for (int block = 0; block < w.blocks; block += most) {
        const int n = std::min(most, w.blocks - block), first = block * width;
        const int rows = dequantized_rows(w, block, n);
        dequantize_tiles(stream, w, block, n, unpacked_.data());
        if (!w.gated) {
            const Tensor part = out.columns(first, rows);
            lt_.run(stream, x, unpacked_.data(), part, epilogue == Epilogue::add);
            if (s.bias) add_bias(stream, part, s.bias + first);
            continue;
        }
        const int half = rows / 2;
        const Tensor both = scratch_rows(x.rows, rows, w.dtype, pair_offset());
        lt_.run(stream, x, unpacked_.data(), both, false);
        if (s.bias) {
            add_bias(stream, both.columns(0, half), s.bias + first);
            add_bias(stream, both.columns(half, half), s.bias + w.outputs + first);
        }
        gate_rows(stream, both, epilogue, out.columns(first, half));
    }
}

}  // namespace recto::cuda
