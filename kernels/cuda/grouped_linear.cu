#include "kernels/cuda/grouped_linear.h"

#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launch.h"

namespace recto::cuda {

template <class T>
void launch_grouped_kinds(cudaStream_t stream, Tensor x, const GroupedProduct& p, Tensor out);

namespace {

constexpr int threads = 256;
constexpr int most_sort_warps = 16;
constexpr std::size_t sort_shared_limit = 64U << 10;

__device__ int exclusive_sum(int v, int& total) {  // over a warp
    int sum = v;
    for (int step = 1; step < warp; step *= 2) {
        const int before = __shfl_up_sync(0xFFFFFFFFU, sum, step);
        if (int(threadIdx.x) % warp >= step) sum += before;
    }
    total = __shfl_sync(0xFFFFFFFFU, sum, warp - 1);
    return sum - v;
}

// A counting sort by one block: every warp counts a run of slots, the counts become places, and the warps put
// their slots there. Shared memory: [warps][experts] ints.
__global__ void sort_kernel(const int* ids, int slots, int experts, int tokens, SortedSlots to) {
    extern __shared__ int counts[];
    let_next_start();
    wait_for_previous();
    const int lane = int(threadIdx.x) % warp, mine = int(threadIdx.x) / warp, warps = int(blockDim.x) / warp;
    const int run = (slots + warps * warp - 1) / (warps * warp) * warp;
    const int first = mine * run, last = min(slots, first + run);
    int* count = counts + mine * experts;
    for (int e = lane; e < experts; e += warp)
        count[e] = 0;
    __syncwarp();
    // Lanes with one expert: the lowest of them counts for all. `place` gets each slot's position.
    const auto walk = [&](auto place) {
        for (int i = first; i < last; i += warp) {
            const int slot = i + lane;
            const bool there = slot < last;
            const int e = there ? ids[slot] : experts;
            const unsigned peers = __match_any_sync(0xFFFFFFFFU, e);
            const int rank = __popc(peers & ((1U << lane) - 1));
            if (there) place(slot, e, rank);
            __syncwarp();
            if (there && rank == 0) count[e] += __popc(peers);
            __syncwarp();
        }
    };
    walk([](int, int, int) {});
    __syncthreads();
    if (mine == 0) {
        int tokens_before = 0, tiles_before = 0;
        for (int base = 0; base < experts; base += warp) {
            const int e = base + lane;
            int total = 0;
            for (int w = 0; w < warps && e < experts; ++w) {  // places within the expert's run
                const int n = counts[w * experts + e];
                counts[w * experts + e] = total;
                total += n;
            }
            int all = 0, all_tiles = 0;
            const int begin = tokens_before + exclusive_sum(total, all);
            const int tiles = (total + tokens - 1) / tokens;
            const int tile = tiles_before + exclusive_sum(tiles, all_tiles);
            for (int w = 0; w < warps && e < experts; ++w)
                counts[w * experts + e] += begin;
            for (int i = 0; i < tiles; ++i)
                to.tiles[tile + i] = {e, begin + i * tokens, min(tokens, total - i * tokens)};
            tokens_before += all;
            tiles_before += all_tiles;
        }
        if (lane == 0) *to.tile_count = tiles_before;
    }
    __syncthreads();
    walk([&](int slot, int e, int rank) { to.slots[count[e] + rank] = slot; });
}

// A block a sorted slot.
__global__ void gather_kernel(Tensor x, const int* ids, const int* sorted, int per_row,
                              const ExpertPlanes* planes, Tensor out) {
    let_next_start();
    wait_for_previous();
    const int slot = sorted[blockIdx.x];
    const int* order = planes[ids[slot]].order;
    const auto* from =
        static_cast<const unsigned short*>(x.data) + (long long)(slot / per_row) * x.row_stride;
    auto* to = static_cast<unsigned short*>(out.data) + (long long)blockIdx.x * out.row_stride;
    for (int i = int(threadIdx.x); i < out.cols; i += threads)
        to[i] = from[order ? order[i] : i];
}

// grid (runs of columns, rows)
__global__ void combine_kernel(const float* products, long long split_stride, int splits,
                               const float* weights, int per_row, Tensor out) {
    let_next_start();
    wait_for_previous();
    const int column = int(blockIdx.x) * threads + int(threadIdx.x);
    if (column >= out.cols) return;
    const long long row = blockIdx.y;
    float* to = static_cast<float*>(out.data) + row * out.row_stride + column;
    float sum = *to;
    for (int s = 0; s < per_row; ++s) {
        const long long slot = row * per_row + s;
        float one = 0.0F;
        for (int i = 0; i < splits; ++i)
            one += products[i * split_stride + slot * out.cols + column];
        sum = fmaf(weights[slot], one, sum);
    }
    *to = sum;
}

}  // namespace

void grouped_linear(cudaStream_t stream, Tensor x, const GroupedProduct& p, Tensor out) {
    assert(x.dtype == p.weight.dtype && x.cols == p.weight.cols && out.cols == p.weight.outputs);
    assert(p.splits == 1 || out.dtype == DType::f32);
    if (p.weight.dtype == DType::f16)
        launch_grouped_kinds<__half>(stream, x, p, out);
    else
        launch_grouped_kinds<__nv_bfloat16>(stream, x, p, out);
}

void sort_slots(cudaStream_t stream, const int* ids, int slots, int experts, int tokens,
                const SortedSlots& to) {
    const std::size_t one = std::size_t(experts) * sizeof(int);
    int warps = 1;
    while (warps < most_sort_warps && 2 * std::size_t(warps) * one <= sort_shared_limit &&
           warps * warp < slots)
        warps *= 2;
    launch("sort_slots", sort_kernel, dim3(1), dim3(unsigned(warps * warp)), std::size_t(warps) * one, stream,
           ids, slots, experts, tokens, to);
}

void gather_inputs(cudaStream_t stream, Tensor x, const int* ids, const int* sorted, int per_row,
                   const ExpertPlanes* planes, Tensor out) {
    launch("gather_inputs", gather_kernel, dim3(unsigned(out.rows)), dim3(threads), 0, stream, x, ids, sorted,
           per_row, planes, out);
}

void combine_experts(cudaStream_t stream, Tensor products, int splits, const float* weights, int per_row,
                     Tensor out) {
    assert(out.dtype == DType::f32 && products.dtype == DType::f32 && products.cols == products.row_stride);
    const dim3 grid(unsigned((out.cols + threads - 1) / threads), unsigned(out.rows));
    launch("combine_experts", combine_kernel, grid, dim3(threads), 0, stream,
           static_cast<const float*>(products.data), (long long)(products.rows / splits * products.cols),
           splits, weights, per_row, out);
}

}  // namespace recto::cuda
