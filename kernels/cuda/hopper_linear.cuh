// The matrix product of Hopper cards: D[outputs, tokens] = W · xᵀ, so that the weights are the operand that
// may come from registers and few tokens still fill the tensor cores' rows.
//
// One block of threads an SM: producer threads keep a ring of stages filled by the bulk copy engine
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

constexpr int hopper_threads = 3 * 128;  // a warpgroup of producers, two of consumers

template <TileKind Kind, class T, int Tokens, Groups How>
__global__ void __launch_bounds__(hopper_threads, 1)
    hopper_kernel(const __grid_constant__ HopperArgs a, const __grid_constant__ CUtensorMap x_map,
                  const __grid_constant__ CUtensorMap w_map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // wgmma and setmaxnreg exist in sm_90a code alone
    extern __shared__ __align__(1024) std::uint8_t shared[];
    __shared__ __align__(8) std::uint64_t barriers[2 * most_stages];
    __shared__ __align__(16) float slices[2][slice_floats(Tokens)];
    const StageLayout layout = stage_layout<Kind>(Tokens, a.groups_a_chunk, a.w.mode);
    const std::uint32_t ring = std::uint32_t(__cvta_generic_to_shared(shared));
    const std::uint32_t full = std::uint32_t(__cvta_generic_to_shared(barriers)),
                        empty = full + most_stages * 8;
    let_next_start();
    if (threadIdx.x == 0) {
        for (int i = 0; i < a.stages; ++i) {
            barrier_init(full + i * 8, a.producers);
            barrier_init(empty + i * 8, 8);  // the warps that read one stage
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        give_registers<40>();
        if (threadIdx.x % 32 == 0) {
            Producer<Kind, Tokens> producer{a, &x_map, &w_map, ring, full, layout, int(threadIdx.x) / 32};
            producer.run(empty);
        }
        return;
    }
    take_registers<232>();
    const int group = int(threadIdx.x) / 128 - 1, thread = int(threadIdx.x) % 128;
    wait_for_previous();
    const TileEpilogue<Tokens> epilogue{a, slices[group], group, thread};
    WideConsumer<Kind, T, Tokens, How>{a, ring, full, empty, shared, layout, epilogue, group, thread}.run();
#endif
}

template <TileKind Kind>
int stages_for(const TileWeight& w, int tokens) {
    return int(std::min<std::size_t>(
        ring_limit / stage_layout<Kind>(tokens, w.groups_a_chunk(), w.mode).bytes, most_stages));
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
    a.row_tiles = (w.blocks + 1) / 2;
    a.token_tiles = (a.tokens + Tokens - 1) / Tokens;
    a.shape = shape;
    a.stages = stages_for<Kind>(w, Tokens);
    a.groups_a_chunk = w.groups_a_chunk();
    a.chunks_a_group = w.chunks_a_group();
    a.group_shift = w.group_shift();
    a.producers =
        Kind != TileKind::dense && w.mode == SecondPlane::none ? producer_warps - 1 : producer_warps;
    assert(shape.run == 0 || (std::size_t(shape.grid) * 2 * Tokens / 2 * 128 <= scratch.partial_floats &&
                              std::size_t(a.row_tiles * a.token_tiles) * 2 <= scratch.counter_count));
    const CUtensorMap x_map = tile_map(x.data, w.dtype, x.rows, x.cols, x.row_stride, Tokens);
    const CUtensorMap w_map =
        Kind == TileKind::dense ? tile_map(w.data, w.dtype, w.rows, w.cols, w.cols, dense_box_rows) : x_map;
    const std::size_t bytes =
        std::size_t(a.stages) * stage_layout<Kind>(Tokens, w.groups_a_chunk(), w.mode).bytes;
    const auto start = [&]<Groups How>() {
        launch("linear", hopper_kernel<Kind, T, Tokens, How>, dim3(unsigned(shape.grid)),
               dim3(hopper_threads), bytes, stream, a, x_map, w_map);
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
