// The matrix product of Hopper cards: D[outputs, tokens] = W · xᵀ, so that the weights are the operand that
// may come from registers and few tokens still fill the tensor cores' rows.
//
// One block of threads an SM: producer warps keep a ring of stages filled by the bulk copy engine
// (hopper_pipeline.cuh); consumers unpack quantized weights, multiply (hopper_wide.cuh) and write
// (hopper_epilogue.cuh). Weights do not depend on the kernel before this one, so their first stages are asked
// for before waiting for it (programmatic dependent launch): the memory stays busy through the small kernels
// between two products. Quantized weights and few tokens have a kernel of their own (hopper_thin.cuh).
//
// Work is cut in one of three ways (choose_tile): whole tiles; every tile into equal runs of inputs; or equal
// runs of chunks whatever tile they belong to ("stream-K", Osama et al. 2023). Sums of a tile shared by
// several blocks meet in `partials` and are added in the order of the inputs, so that the same launch gives
// the same bits.
#pragma once
#include "kernels/cuda/hopper_wide.cuh"

namespace recto::cuda {

constexpr int consumers = tile_blocks * 128;
constexpr int hopper_threads = consumers + 128;

template <TileKind Kind, class T, int Tokens, Groups How>
__global__ void __launch_bounds__(hopper_threads, 1)
    hopper_kernel(const __grid_constant__ HopperArgs a, const __grid_constant__ HopperMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // wgmma and setmaxnreg exist in sm_90a code alone
    extern __shared__ __align__(1024) std::uint8_t shared[];
    __shared__ __align__(8) std::uint64_t barriers[2 * most_stages];
    __shared__ __align__(16) float slices[tile_blocks][slice_floats(Tokens)];
    const StageLayout layout = stage_layout<Kind>(Tokens, a.groups_a_chunk, a.w.mode);
    const std::uint32_t ring = std::uint32_t(__cvta_generic_to_shared(shared));
    const std::uint32_t full = std::uint32_t(__cvta_generic_to_shared(barriers)),
                        empty = full + most_stages * 8;
    let_next_start();
    if (threadIdx.x == 0) {
        for (int i = 0; i < a.stages; ++i) {
            barrier_init(full + i * 8, Producer<Kind, Tokens>::warps);
            barrier_init(empty + i * 8, tile_blocks * 4);  // the warps that read one stage
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= consumers) {
        give_registers<40>();
        const int warp = (int(threadIdx.x) - consumers) / 32;
        if (threadIdx.x % 32 == 0 && warp < Producer<Kind, Tokens>::warps)
            Producer<Kind, Tokens>{a, maps, ring, full, layout, warp}.run(empty);
        return;
    }
    take_registers<232>();
    const int group = int(threadIdx.x) / 128, thread = int(threadIdx.x) % 128;
    wait_for_previous();
    WideConsumer<Kind, T, Tokens, How>{a, ring, full, empty, shared, layout, slices[0], group, thread}.run();
#endif
}

template <TileKind Kind>
int stages_for(const TileWeight& w, int tokens) {
    return int(std::min<std::size_t>(
        ring_limit / stage_layout<Kind>(tokens, w.groups_a_chunk(), w.mode).bytes, most_stages));
}

template <TileKind Kind, int Tokens>
HopperMaps maps_of(Tensor x, const TileWeight& w) {
    using Source = Producer<Kind, Tokens>;
    HopperMaps maps{};
    maps.x = tile_map(x.data, w.dtype, x.rows, x.cols, x.row_stride, Source::dense ? Tokens : x_box_rows);
    if (Source::dense) {
        maps.weights = tile_map(w.data, w.dtype, w.rows, w.cols, w.cols, dense_box_rows);
        return maps;
    }
    const int groups = w.groups_a_chunk();
    const int stage_rows = Source::map_rows, chunk_rows = stage_rows * chunk_k / Source::stage_inputs;
    maps.weights = block_map(w.data, 2048, w.chunks * chunk_rows, w.blocks, stage_rows, tile_blocks);
    maps.scales = block_map(w.scale, block_rows * 2, w.groups, w.blocks, groups, tile_blocks);
    if (w.mode != SecondPlane::none)
        maps.second = block_map(w.second, block_rows * (w.mode == SecondPlane::zero_u8 ? 1 : 2), w.groups,
                                w.blocks, groups, tile_blocks);
    return maps;
}

template <TileKind Kind, class T, int Tokens>
void launch_hopper(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                   const LinearScratch& scratch, const TileShape& shape) {
    HopperArgs a{};
    a.w = w;
    a.out = output.out;
    a.epilogue = output.epilogue;
    a.bias = output.bias;
    a.scratch = scratch;
    a.tokens = int(x.rows);
    a.row_tiles = (w.blocks + tile_blocks - 1) / tile_blocks;
    a.token_tiles = (a.tokens + Tokens - 1) / Tokens;
    a.shape = shape;
    a.stages = stages_for<Kind>(w, Tokens);
    a.groups_a_chunk = w.groups_a_chunk();
    a.chunks_a_group = w.chunks_a_group();
    a.group_shift = w.group_shift();
    assert(a.stages >= 2);
    assert(std::size_t(shape.grid) * 2 * tile_blocks * Tokens / 2 * 128 <= scratch.partial_floats);
    assert(shape.run == 0 || std::size_t(a.row_tiles * a.token_tiles * tile_blocks) <= scratch.counter_count);
    const HopperMaps maps = maps_of<Kind, Tokens>(x, w);
    const std::size_t bytes =
        std::size_t(a.stages) * stage_layout<Kind>(Tokens, w.groups_a_chunk(), w.mode).bytes;
    const auto start = [&]<Groups How>() {
        launch("linear", hopper_kernel<Kind, T, Tokens, How>, dim3(unsigned(shape.grid)),
               dim3(hopper_threads), bytes, stream, a, maps);
    };
    if constexpr (Kind != TileKind::dense) {
        if (a.group_shift == 3 && w.mode == SecondPlane::zero_u8)
            return start.template operator()<Groups::whole_zeros>();
        if (a.group_shift == 3 && w.mode == SecondPlane::none)
            return start.template operator()<Groups::whole>();
    }
    start.template operator()<Groups::any>();
}

}  // namespace recto::cuda
