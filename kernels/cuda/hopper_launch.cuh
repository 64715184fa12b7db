// Chooses the instance of the Hopper product by the number of tokens a block holds.
#pragma once
#include "kernels/cuda/hopper_linear.cuh"

namespace recto::cuda {

template <TileKind Kind, class T>
void launch_widths(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                   const LinearScratch& scratch, const TileShape& shape) {
    switch (shape.tokens) {
        case 8:
            return launch_hopper<Kind, T, 8>(stream, x, w, output, scratch, shape);
        case 16:
            return launch_hopper<Kind, T, 16>(stream, x, w, output, scratch, shape);
        case 32:
            return launch_hopper<Kind, T, 32>(stream, x, w, output, scratch, shape);
        case 64:
            return launch_hopper<Kind, T, 64>(stream, x, w, output, scratch, shape);
        case 128:
            return launch_hopper<Kind, T, 128>(stream, x, w, output, scratch, shape);
        default:
            assert(shape.tokens == 256);
            return launch_hopper<Kind, T, 256>(stream, x, w, output, scratch, shape);
    }
}

}  // namespace recto::cuda
