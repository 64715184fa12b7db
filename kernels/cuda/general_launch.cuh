// The product itself, and the choice of its instance by the number of tokens that a block holds.
#pragma once
#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/general_epilogue.cuh"
#include "kernels/cuda/launch.h"

namespace recto::cuda {

struct GeneralArgs {
    TileWeight w;
    GeneralCut cut;
    Tensor x, out;
    Epilogue epilogue;
    const float* bias;
    LinearScratch scratch;
    int run;  // chunks a block takes
};

// grid (token tiles, blocks of 64 rows, splits): blocks that read the same weights are neighbours.
template <TileKind Kind, class T, int Tokens>
__global__ void __launch_bounds__(general_threads, general_blocks<Tokens>)
    general_kernel(const __grid_constant__ GeneralArgs a) {
#if __CUDA_ARCH__ >= 800  // older cards have neither the copies nor the products
    extern __shared__ __align__(128) std::uint8_t shared[];
    let_next_start();
    const int block = int(blockIdx.y), first = int(blockIdx.x) * Tokens;
    const TokenRows rows{first, min(Tokens, int(a.x.rows) - first), nullptr, 1};
    GeneralTile<Kind, T, Tokens> tile(a.w, a.cut, shared, block);
    float d[Tokens / 2];
#pragma unroll
    for (int i = 0; i < Tokens / 2; ++i)
        d[i] = 0.0F;
    const int begin = int(blockIdx.z) * a.run;
    tile.run(d, a.x, rows, begin, min(begin + a.run, a.w.chunks), [] { wait_for_previous(); });
    const GeneralEpilogue<Tokens> epilogue{
        a.w, a.out, a.epilogue, a.bias, reinterpret_cast<float*>(shared), block, int(threadIdx.x)};
    const int number = int(blockIdx.y * gridDim.x + blockIdx.x);
    if (epilogue.gather(d, a.scratch, number, int(gridDim.z), int(blockIdx.z))) epilogue.write(d, rows);
#endif
}

template <TileKind Kind, class T, int Tokens>
void launch_general(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                    const LinearScratch& scratch, const GeneralShape& shape) {
    using Stage = GeneralStage<Kind, Tokens>;
    const std::uint32_t stage_bytes = Stage::bytes(w.groups_a_chunk(), w.mode);
    const GeneralArgs a{
        w, cut_of(w, stage_bytes), x, output.out, output.epilogue, output.bias, scratch, shape.run};
    const dim3 grid(unsigned((x.rows + Tokens - 1) / Tokens), unsigned(w.blocks), unsigned(shape.splits));
    assert(shape.splits == 1 ||
           (std::size_t(grid.x) * grid.y <= scratch.counter_count &&
            std::size_t(grid.x) * grid.y * grid.z * Tokens * block_rows <= scratch.partial_floats));
    static_assert(GeneralEpilogue<Tokens>::shared_bytes <= general_stages * Stage::scale);
    launch("linear", general_kernel<Kind, T, Tokens>, grid, dim3(general_threads),
           std::size_t(general_stages) * stage_bytes, stream, a);
}

template <TileKind Kind, class T>
void launch_general_widths(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                           const LinearScratch& scratch, const GeneralShape& shape) {
    switch (shape.tokens) {
        case 8:
            return launch_general<Kind, T, 8>(stream, x, w, output, scratch, shape);
        case 16:
            return launch_general<Kind, T, 16>(stream, x, w, output, scratch, shape);
        case 32:
            return launch_general<Kind, T, 32>(stream, x, w, output, scratch, shape);
        default:
            assert(shape.tokens == 64);
            return launch_general<Kind, T, 64>(stream, x, w, output, scratch, shape);
    }
}

template <class T>
void launch_general_kinds(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                          const LinearScratch& scratch, const GeneralShape& shape) {
    switch (w.kind) {
        case TileKind::dense:
            return launch_general_widths<TileKind::dense, T>(stream, x, w, output, scratch, shape);
        case TileKind::u4:
            return launch_general_widths<TileKind::u4, T>(stream, x, w, output, scratch, shape);
        case TileKind::u8:
            return launch_general_widths<TileKind::u8, T>(stream, x, w, output, scratch, shape);
    }
}

}  // namespace recto::cuda
