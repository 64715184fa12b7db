// Chooses the instance of the Hopper product by the number of tokens a block holds.
#pragma once
#include "kernels/cuda/hopper_linear.cuh"
#include "kernels/cuda/hopper_thin.cuh"

namespace recto::cuda {

template <TileKind Kind, class T>
void launch_widths(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                   const LinearScratch& scratch, const TileShape& shape) {
    const auto few = [&]<int Tokens>() {
        if constexpr (Kind == TileKind::dense)
            launch_hopper<Kind, T, Tokens>(stream, x, w, output, scratch, shape);
        else
            launch_thin<Kind, T, Tokens>(stream, x, w, output, shape.slabs);
    };
    const auto between = [&]<int Tokens>() {  // of quantized weights alone
        constexpr int held = Kind == TileKind::dense ? 256 : Tokens;
        assert(held == Tokens);
        launch_hopper<Kind, T, held>(stream, x, w, output, scratch, shape);
    };
    switch (shape.tokens) {
        case 8:
            return few.template operator()<8>();
        case 16:
            return few.template operator()<16>();
        case 32:
            return launch_hopper<Kind, T, 32>(stream, x, w, output, scratch, shape);
        case 64:
            return launch_hopper<Kind, T, 64>(stream, x, w, output, scratch, shape);
        case 128:
            return launch_hopper<Kind, T, 128>(stream, x, w, output, scratch, shape);
        case 160:
            return between.template operator()<160>();
        case 192:
            return between.template operator()<192>();
        case 224:
            return between.template operator()<224>();
        default:
            assert(shape.tokens == 256);
            return launch_hopper<Kind, T, 256>(stream, x, w, output, scratch, shape);
    }
}

}  // namespace recto::cuda
