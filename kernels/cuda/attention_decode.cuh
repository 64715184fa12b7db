// Decode attention as a kernel of its own: a fixed grid of blocks takes shares off the step's list
// (attention_plan.h), each as attention_share.cuh says.
#pragma once
#include "kernels/cuda/attention_share.cuh"
#include "kernels/cuda/launch.h"

namespace recto::cuda {

template <DType Kv, int Dim>
__global__ void __launch_bounds__(decode_threads, decode_blocks_per_multiprocessor(Dim))
    decode_kernel(const __grid_constant__ DecodeParameters p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    constexpr int warps = decode_threads / 32;
    using Shape = DecodeShape<Kv, Dim, warps>;
    __shared__ float outs[warps * decode_heads * ShareMemory<Dim>::out_stride];
    __shared__ float tops[warps * decode_heads], sums[warps * decode_heads];
    __shared__ float weights[most_splits * decode_heads];
    __shared__ uint2 shared_query[Shape::query_in_shared ? Shape::steps : 1][32];
    __shared__ int is_last, next[2];  // next: claimed items, in turns
    const ShareMemory<Dim> shared{outs, tops, sums, weights, &is_last, decode_heads};
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const int units = p.heads.kv_heads * p.heads.head_groups;
    const int count = *p.batch.work.decode_items * units;
    let_next_start();
    wait_for_previous();
    // More items than blocks are claimed one by one: some multiprocessors get at memory more slowly than
    // others, and with equal shares the last block took half as long again as the average. The claim is under
    // way while the item before is worked on.
    const bool claims = count > int(gridDim.x);
    for (int i = int(blockIdx.x), turn = 0; i < count; turn ^= 1) {
        if (claims && threadIdx.x == 0) next[turn] = int(gridDim.x) + atomicAdd(&p.workspace.claims[0], 1);
        const DecodeItem item = p.batch.work.decode[i / units];
        const int unit = i % units;
        const int kv_head = unit / p.heads.head_groups;
        const int first_head = unit % p.heads.head_groups * decode_heads;  // within the group
        const int heads = min(decode_heads, p.heads.group - first_head);
        const int head = kv_head * p.heads.group + first_head;
        const int last = p.batch.positions[item.row];
        const int first = p.heads.window > 0 ? max(0, last - p.heads.window + 1) : 0;
        OctetWalk octets;
        octets.blocks =
            p.batch.block_tables + (long long)p.batch.row_sequence[item.row] * p.batch.table_stride;
        octets.octets_per_block = p.kv.block_size / 8;
        octets.block_stride_octets = int(p.kv.block_stride / (8 * Dim));
        octets.head_octet = kv_head * octets.octets_per_block;
        octets.first_octet = first / 8;
        octets.last_octet = last / 8;
        uint2 query[Shape::steps] = {};
        const auto* q = static_cast<const uint16_t*>(p.q) + item.row * p.q_stride;
        if constexpr (Shape::query_in_shared) {
            __syncthreads();  // the item before is read to its end
            if (warp == 0) {
                load_query<Kv, Dim, warps>(q + (long long)(head + lane / 4) * Dim, p.activation,
                                           lane / 4 < heads, lane % 4, query);
                for (int k = 0; k < Shape::steps; ++k)
                    shared_query[k][lane] = query[k];
            }
            __syncthreads();
        } else {
            load_query<Kv, Dim, warps>(q + (long long)(head + lane / 4) * Dim, p.activation, lane / 4 < heads,
                                       lane % 4, query);
        }
        const int first_chunk = first / decode_chunk, chunks = last / decode_chunk + 1 - first_chunk;
        const int share = (chunks + item.splits - 1) / item.splits;
        const int begin = first_chunk + item.split * share;
        const int end = min(begin + share, first_chunk + chunks);
        DecodeState<Dim> state;
        ChunkWalk<Kv, Dim, warps, OctetWalk> walk{
            static_cast<const char*>(p.kv.k), static_cast<const char*>(p.kv.v), octets, begin + warp, end};
        walk.begin();
        walk.walk(
            p.heads, first, last,
            [&](auto k) { return Shape::query_in_shared ? shared_query[k][lane] : query[k]; }, state);
        auto* out = static_cast<uint16_t*>(p.out) + item.row * p.out_stride + (long long)head * Dim;
        finish_item<Kv, Dim, warps>(p, shared, state, item, unit, units, heads, out);
        if (!claims) break;
        i = next[turn];  // written before finish_item's barriers
    }
    // The last block to leave clears both counts for the next launch.
    if (claims && threadIdx.x == 0 && atomicAdd(&p.workspace.claims[1], 1) == int(gridDim.x) - 1)
        p.workspace.claims[0] = p.workspace.claims[1] = 0;
#endif
}

template <DType Kv, int Dim>
void launch_decode(cudaStream_t stream, const DecodeParameters& p, int blocks) {
    launch(p.after ? Start::after : Start::early, "decode attention", decode_kernel<Kv, Dim>,
           dim3(unsigned(blocks)), dim3(decode_threads), 0, stream, p);
}

template <DType Kv>
void launch_decode(cudaStream_t stream, const DecodeParameters& p, int blocks) {
    switch (p.kv.head_dim) {
        case 64:
            return launch_decode<Kv, 64>(stream, p, blocks);
        case 80:
            return launch_decode<Kv, 80>(stream, p, blocks);
        case 96:
            return launch_decode<Kv, 96>(stream, p, blocks);
        case 128:
            return launch_decode<Kv, 128>(stream, p, blocks);
        default:
            return launch_decode<Kv, 256>(stream, p, blocks);
    }
}

}  // namespace recto::cuda
