// Spreads a step's packet to its fixed places and brings the resident block tables into the step's order.
#include "kernels/cuda/check.h"
#include "kernels/cuda/kernels.h"

namespace recto::cuda {
namespace {

constexpr int threads = 256;

// The first `sequences` blocks have a block table each, the others a piece of the sections.
__global__ void spread_kernel(PacketLayout p) {
    if (int(blockIdx.x) < p.sequences) {
        const int sequence = int(blockIdx.x);
        int* kept = p.resident + (long long)p.table_rows[sequence] * p.table_stride;
        int* table = p.tables + (long long)sequence * p.table_stride;
        const int count = p.block_counts[sequence], first_new = p.first_new[sequence];
        const int* fresh = p.new_blocks + p.new_start[sequence] - first_new;
        for (int i = int(threadIdx.x); i < count; i += threads) {
            const int block = i < first_new ? kept[i] : fresh[i];
            if (i >= first_new) kept[i] = block;
            table[i] = block;
        }
        return;
    }
    int i = (int(blockIdx.x) - p.sequences) * threads + int(threadIdx.x);
#pragma unroll
    for (const PacketSection& s : p.sections) {
        if (i >= 0 && i < s.count) s.to[i] = s.from[i];
        i -= s.count;
    }
}

}  // namespace

void spread_packet(cudaStream_t stream, const PacketLayout& layout) {
    int ints = 0;
    for (const PacketSection& s : layout.sections)
        ints += s.count;
    const int blocks = layout.sequences + (ints + threads - 1) / threads;
    if (blocks == 0) return;
    spread_kernel<<<unsigned(blocks), threads, 0, stream>>>(layout);
    check_launch("spread_packet");
}

}  // namespace recto::cuda
