#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/repack.h"

namespace recto::cuda {
namespace {

constexpr int threads = 256;

// The part's row that lies in row r of its n-th block; −1: another part's, or padding.
__device__ long long source_row(int n, int r, BlockHalf half, long long rows) {
    constexpr int h = block_rows / 2;
    long long row = -1;
    switch (half) {
        case BlockHalf::whole:
            row = (long long)n * block_rows + r;
            break;
        case BlockHalf::gate:
            if (r < h) row = (long long)n * h + r;
            break;
        case BlockHalf::up:
            if (r >= h) row = (long long)n * h + r - h;
            break;
        case BlockHalf::both:
            row = (long long)n * h + r % h;
            if (row >= rows / 2) return -1;
            return r < h ? row : row + rows / 2;
    }
    return row < rows ? row : -1;
}

__device__ bool mine(int r, BlockHalf half) {
    return half == BlockHalf::whole || half == BlockHalf::both ||
           (half == BlockHalf::gate) == (r < block_rows / 2);
}

__device__ unsigned integer_at(const LogicalPlanes& p, long long row, long long k) {
    if (row < 0 || k >= p.cols) return 0;
    if (p.integer == QuantInt::u4) {
        const unsigned byte = p.q[(row * p.cols + k) / 2];
        return k % 2 ? byte >> 4 : byte & 15U;
    }
    const unsigned byte = p.q[row * p.cols + k];
    return p.integer == QuantInt::i8 ? byte ^ 0x80U : byte;  // biased by 128: the zero is 128 then
}

// A thread writes the 16 bytes of one lane. grid (16-byte places of a block's row of tiles, blocks)
__global__ void tiles_kernel(LogicalPlanes p, TileKind kind, int chunks, std::byte* to, int first_block,
                             BlockHalf half) {
    const int halves = kind == TileKind::u8 ? 2 : 1;
    const int places = chunks * 2 * 4 * halves * warp;
    const int place = int(blockIdx.x) * threads + int(threadIdx.x);
    if (place >= places) return;
    const int n = int(blockIdx.y);
    const int lane = place % warp, h = place / warp % halves, w = place / warp / halves % 4;
    const int tile = place / warp / halves / 4;
    const int g = lane / 4, t = lane % 4;
    if (!mine(16 * w + g, half)) return;
    const long long rows[2] = {source_row(n, 16 * w + g, half, p.rows),
                               source_row(n, 16 * w + g + 8, half, p.rows)};
    unsigned words[4];
    if (kind == TileKind::u4) {
        for (int i = 0; i < 4; ++i) {
            const long long k = (long long)tile * tile_k + 16 * i + 2 * t;
            unsigned word = 0;
            for (int pair = 0; pair < 4; ++pair)
                for (int e = 0; e < 2; ++e)
                    word |= integer_at(p, rows[pair % 2], k + 8 * (pair / 2) + e) << (4 * pair + 16 * e);
            words[i] = word;
        }
    } else {
        for (int i = 0; i < 4; ++i) {  // words 2 j, 2 j + 1: fragment j of this half
            const long long k = (long long)tile * tile_k + 32 * h + 16 * (i / 2) + 2 * t + 8 * (i % 2);
            unsigned word = 0;
            for (int b = 0; b < 4; ++b)
                word |= integer_at(p, rows[b / 2], k + b % 2) << (8 * b);
            words[i] = word;
        }
    }
    auto* at = reinterpret_cast<uint4*>(to) + (long long)(first_block + n) * places + place;
    *at = make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ unsigned short narrow(float v, bool bf16) {
    return bf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(v)) : __half_as_ushort(__float2half_rn(v));
}

// A thread writes the scale and the second value of one row and group. grid (values of a block, blocks)
__global__ void planes_kernel(LogicalPlanes p, int groups, SecondPlane mode, bool bf16, unsigned short* scale,
                              void* second, int first_block, BlockHalf half) {
    const int i = int(blockIdx.x) * threads + int(threadIdx.x);
    if (i >= groups * block_rows) return;
    const int n = int(blockIdx.y), group = i / block_rows, r = i % block_rows;
    if (!mine(r, half)) return;
    const long long row = source_row(n, r, half, p.rows);
    const long long at = ((long long)(first_block + n) * groups + group) * block_rows + r;
    const bool inside = row >= 0 && group < p.cols / p.group_size;
    const long long from = row * (p.cols / p.group_size) + group;
    scale[at] = inside ? narrow(load(p.scale, from, p.scale_dtype), bf16) : 0;
    if (mode == SecondPlane::zero_u8)
        static_cast<unsigned char*>(second)[at] = inside ? p.zero_point[from] : 0;
    else if (mode == SecondPlane::offset_16)
        static_cast<unsigned short*>(second)[at] =
            inside ? narrow(load(p.offset, from, p.offset_dtype), bf16) : 0;
}

}  // namespace

void repack(cudaStream_t stream, const LogicalPlanes& from, const TileWeight& shape, const TilePlanes& to,
            int first_block, BlockHalf half) {
    const bool halved = half == BlockHalf::gate || half == BlockHalf::up;
    const long long rows = half == BlockHalf::both ? from.rows / 2 : from.rows;
    const int per_block = halved || half == BlockHalf::both ? block_rows / 2 : block_rows;
    const auto blocks = unsigned((rows + per_block - 1) / per_block);
    assert(first_block + int(blocks) <= shape.blocks && blocks <= 65535);
    const int places = shape.chunks * 2 * 4 * (shape.kind == TileKind::u8 ? 2 : 1) * warp;
    tiles_kernel<<<dim3(unsigned((places + threads - 1) / threads), blocks), threads, 0, stream>>>(
        from, shape.kind, shape.chunks, to.data, first_block, half);
    check_launch("repacking tiles");
    const int values = shape.groups * block_rows;
    planes_kernel<<<dim3(unsigned((values + threads - 1) / threads), blocks), threads, 0, stream>>>(
        from, shape.groups, shape.mode, shape.planes_bf16, to.scale, to.second, first_block, half);
    check_launch("repacking scales");
}

}  // namespace recto::cuda
