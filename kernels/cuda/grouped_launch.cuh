// The kernel of grouped products: the loop and epilogue of the general product, tile after tile of a list.
#pragma once
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/general_epilogue.cuh"
#include "kernels/cuda/grouped_linear.h"
#include "kernels/cuda/launch.h"

namespace recto::cuda {

struct GroupedArgs {
    GroupedProduct p;
    GeneralCut cut;
    Tensor x, out;
    int run;  // chunks of a split
};

template <TileKind Kind, class T, int Tokens>
__global__ void __launch_bounds__(general_threads, general_blocks<Tokens>)
    grouped_kernel(const __grid_constant__ GroupedArgs a) {
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) std::uint8_t shared[];
    let_next_start();
    wait_for_previous();
    const int tiles = *a.p.sorted.tile_count, splits = a.p.splits, blocks = a.p.weight.blocks;
    // Tiles of one expert that read the same weights are far apart, but all of an expert's weights fit the
    // cache.
    for (int item = int(blockIdx.x); item < tiles * blocks * splits; item += int(gridDim.x)) {
        const ExpertTile& at = a.p.sorted.tiles[item / (blocks * splits)];
        const int rest = item % (blocks * splits), block = rest / splits, split = rest % splits;
        const ExpertPlanes& planes = a.p.planes[at.expert];
        TileWeight w = a.p.weight;
        w.data = planes.data;
        w.scale = planes.scale;
        w.second = planes.second;
        const TokenRows rows{at.first, at.count, a.p.sorted.slots, a.p.per_row};
        __syncthreads();  // the results before were read
        float d[Tokens / 2];
#pragma unroll
        for (int i = 0; i < Tokens / 2; ++i)
            d[i] = 0.0F;
        GeneralTile<Kind, T, Tokens> tile(w, a.cut, shared, block);
        const int begin = split * a.run;
        tile.run(d, a.x, rows, begin, min(begin + a.run, w.chunks), [] {});
        Tensor out = a.out;
        if (split > 0)
            out.data =
                static_cast<float*>(out.data) + (long long)split * (a.out.rows / splits) * a.out.row_stride;
        const GeneralEpilogue<Tokens> epilogue{w,
                                               out,
                                               a.p.epilogue,
                                               split == 0 ? planes.bias : nullptr,
                                               reinterpret_cast<float*>(shared),
                                               block,
                                               int(threadIdx.x)};
        epilogue.write(d, rows);
    }
#endif
}

template <TileKind Kind, class T, int Tokens>
void launch_grouped(cudaStream_t stream, Tensor x, const GroupedProduct& p, Tensor out) {
    const TileWeight& w = p.weight;
    const std::uint32_t stage_bytes = GeneralStage<Kind, Tokens>::bytes(w.groups_a_chunk(), w.mode);
    const GroupedArgs a{p, cut_of(w, stage_bytes), x, out, (w.chunks + p.splits - 1) / p.splits};
    launch("experts", grouped_kernel<Kind, T, Tokens>, dim3(unsigned(p.grid)), dim3(general_threads),
           std::size_t(general_stages) * stage_bytes, stream, a);
}

template <TileKind Kind, class T>
void launch_grouped_widths(cudaStream_t stream, Tensor x, const GroupedProduct& p, Tensor out) {
    switch (p.tokens) {
        case 8:
            return launch_grouped<Kind, T, 8>(stream, x, p, out);
        case 32:
            return launch_grouped<Kind, T, 32>(stream, x, p, out);
        default:
            assert(p.tokens == 64);
            return launch_grouped<Kind, T, 64>(stream, x, p, out);
    }
}

template <class T>
void launch_grouped_kinds(cudaStream_t stream, Tensor x, const GroupedProduct& p, Tensor out) {
    switch (p.weight.kind) {
        case TileKind::dense:
            return launch_grouped_widths<TileKind::dense, T>(stream, x, p, out);
        case TileKind::u4:
            return launch_grouped_widths<TileKind::u4, T>(stream, x, p, out);
        case TileKind::u8:
            return launch_grouped_widths<TileKind::u8, T>(stream, x, p, out);
    }
}

}  // namespace recto::cuda
