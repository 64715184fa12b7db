#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/launch.h"

namespace recto::cuda {
namespace {

constexpr int group_rows = 16;
constexpr int threads = 256;
constexpr int warps = threads / warp;
constexpr unsigned infinite = 0x7F800000U;  // bits of |v| order as |v| does, NaN last

// Rows without a value above this are zeros: what their scale's reciprocal would be is no FP32 number.
constexpr float least_largest = 0x1p-60F;

__device__ float limit_of(DType eight) {
    return eight == DType::f8_e4m3 ? 448.0F : 127.0F;
}
// `largest`: bits of the row's largest |v|
__device__ float scale_of(unsigned largest, DType eight) {
    if (largest >= infinite) return __uint_as_float(0x7FC00000U);
    const float value = __uint_as_float(largest);
    return value < least_largest ? 0.0F : value / limit_of(eight);
}
__device__ float reciprocal(float scale) {
    return scale > 0.0F ? 1.0F / scale : 0.0F;  // of NaN too: the scale says it
}

__device__ unsigned magnitude_bits(float v) {
    return __float_as_uint(v) & 0x7FFFFFFFU;
}

// Four values as four bytes, the first lowest.
template <DType Eight>
__device__ unsigned four_bytes(float a, float b, float c, float d) {
    if constexpr (Eight == DType::f8_e4m3) {
        const unsigned low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
        const unsigned high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, __NV_E4M3);
        return low | high << 16;
    } else {
        // 1.5 · 2^23: the sum's last byte is the value, rounded half to even. Not fused with a product that
        // made the value: that would round it once where the definition rounds it twice.
        const auto integer = [](float v) { return __float_as_uint(__fadd_rn(v, 12582912.0F)); };
        const unsigned low = __byte_perm(integer(a), integer(b), 0x0040);
        const unsigned high = __byte_perm(integer(c), integer(d), 0x0040);
        return __byte_perm(low, high, 0x5410);
    }
}

// Where a lane's rows g and g + 8 of a group of 16 lie, and which of the matrix they are.
struct LaneRows {
    int block, in_block;  // of row g; the other is 8 further
    int logical, valid;   // of row g; rows of the group
};
__device__ LaneRows lane_rows(const TileWeight& w, int group, int a_half) {
    const int half = group >= a_half ? 1 : 0, index = group - half * a_half;
    const int first = index * group_rows, a_block = w.gated ? block_rows / 2 : block_rows;
    LaneRows r;
    r.block = first / a_block;
    r.in_block = first % a_block + half * a_block + int(threadIdx.x) % warp / 4;
    r.logical = first + half * w.outputs + int(threadIdx.x) % warp / 4;
    r.valid = min(group_rows, w.outputs - first);
    return r;
}

// What a group of inputs multiplies by and adds, of a lane's two rows.
struct Factors {
    float scale[2], offset[2], zero[2];  // zero: 2^23 + z
};
__device__ float plane_value(const void* plane, long long at, bool bf16) {
    const unsigned short bits = static_cast<const unsigned short*>(plane)[at];
    return bf16 ? __uint_as_float(unsigned(bits) << 16) : __half2float(__ushort_as_half(bits));
}
__device__ Factors factors_of(const TileWeight& w, const LaneRows& rows, int k) {
    const long long first =
        ((long long)rows.block * w.groups + k / w.group_size) * block_rows + rows.in_block;
    Factors f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const long long at = first + 8 * i;
        f.scale[i] = plane_value(w.scale, at, w.planes_bf16);
        f.offset[i] = w.mode == SecondPlane::offset_16 ? plane_value(w.second, at, w.planes_bf16) : 0.0F;
        const unsigned zero =
            w.mode == SecondPlane::zero_u8 ? static_cast<const unsigned char*>(w.second)[at] : w.zero;
        f.zero[i] = __uint_as_float(0x4B000000U | zero);
    }
    return f;
}

// A lane's share of a tile: 32 integers.
template <TileKind Kind>
struct LaneTile {
    uint4 data[Kind == TileKind::u4 ? 1 : 2];

    __device__ void load(const TileWeight& w, const LaneRows& rows, int tile) {
        const auto* tiles = static_cast<const uint4*>(w.data);
        const long long quarter =
            ((long long)rows.block * w.chunks * 2 + tile) * 4 + rows.in_block / group_rows;
        const int lane = int(threadIdx.x) % warp;
        if constexpr (Kind == TileKind::u4) {
            data[0] = tiles[quarter * warp + lane];
        } else {
            data[0] = tiles[quarter * 2 * warp + lane];
            data[1] = tiles[(quarter * 2 + 1) * warp + lane];
        }
    }
    __device__ static unsigned word(const uint4& v, int i) {
        return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
    }
    // q − z of fragment i: v[r][e] is row g + 8 r at input 16 i + 2 t + e % 2 + 8 (e / 2).
    __device__ void integers(int i, const Factors& f, float (&v)[2][4]) const {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                unsigned bits;  // 2^23 + q
                if constexpr (Kind == TileKind::u4)
                    bits = (word(data[0], i) >> (4 * (r + 2 * (e / 2)) + 16 * (e % 2)) & 15U) | 0x4B000000U;
                else
                    bits = __byte_perm(word(data[i / 2], i % 2 * 2 + e / 2), 0x4B000000U,
                                       0x7540U + 2 * r + e % 2);
                v[r][e] = __uint_as_float(bits) - f.zero[r];
            }
        }
    }
};

// A block of threads finds the scales of 16 rows.
template <TileKind Kind>
__global__ void row_scales_kernel(TileWeight w, int a_half, float* scale) {
    __shared__ unsigned largest[group_rows];
    if (threadIdx.x < group_rows) largest[threadIdx.x] = 0;
    __syncthreads();
    const LaneRows rows = lane_rows(w, int(blockIdx.x), a_half);
    const int t = int(threadIdx.x) % 4, g = int(threadIdx.x) % warp / 4;
    unsigned most[2] = {0, 0};
    for (int tile = int(threadIdx.x) / warp; tile < w.chunks * 2; tile += warps) {
        LaneTile<Kind> lane;
        lane.load(w, rows, tile);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int k = tile * tile_k + 16 * i;
            const Factors f = factors_of(w, rows, k);
            float v[2][4];
            lane.integers(i, f, v);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                if (k + 2 * t + e % 2 + 8 * (e / 2) >= w.cols) continue;
#pragma unroll
                for (int r = 0; r < 2; ++r)
                    most[r] = max(most[r], magnitude_bits(fmaf(v[r][e], f.scale[r], f.offset[r])));
            }
        }
    }
    for (int r = 0; r < 2; ++r)
        atomicMax(&largest[g + 8 * r], most[r]);
    __syncthreads();
    if (int(threadIdx.x) < rows.valid)
        scale[rows.logical - g + int(threadIdx.x)] = scale_of(largest[threadIdx.x], w.eight);
}

// grid (groups, tiles / (warps · tiles_a_warp)). A quad of lanes writes the 64 bytes of a row and tile.
constexpr int tiles_a_warp = 4;
template <TileKind Kind, DType Eight>
__global__ void __launch_bounds__(threads)
    weight_kernel(TileWeight w, int a_half, int first_group, int first_row, std::byte* to) {
    let_next_start();
    const int group = first_group + int(blockIdx.x), tiles = w.chunks * 2;
    const LaneRows rows = lane_rows(w, group, a_half);
    const int t = int(threadIdx.x) % 4, g = int(threadIdx.x) % warp / 4;
    const int begin = int(blockIdx.y) * warps * tiles_a_warp + int(threadIdx.x) / warp;
    LaneTile<Kind> lanes[tiles_a_warp];
#pragma unroll
    for (int n = 0; n < tiles_a_warp; ++n)
        if (begin + n * warps < tiles) lanes[n].load(w, rows, begin + n * warps);
    bool valid[2];
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        valid[r] = g + 8 * r < rows.valid;
        inverse[r] = valid[r] ? reciprocal(w.row_scale[rows.logical + 8 * r]) : 0.0F;
    }
    wait_for_previous();  // the product before reads what is written below
    const long long stride = (long long)w.chunks * chunk_k;
    std::byte* row = to + (long long)(rows.logical - first_row) * stride + t * 16;
#pragma unroll
    for (int n = 0; n < tiles_a_warp; ++n) {
        const int tile = begin + n * warps;
        if (tile >= tiles) break;
        unsigned words[2][4];
        Factors f;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i == 0 || w.group_size < tile_k) {
                f = factors_of(w, rows, tile * tile_k + 16 * i);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    f.scale[r] *= inverse[r];
                    f.offset[r] *= inverse[r];
                }
            }
            float v[2][4];
            lanes[n].integers(i, f, v);
#pragma unroll
            for (int r = 0; r < 2; ++r)
                words[r][i] = four_bytes<Eight>(
                    fmaf(v[r][0], f.scale[r], f.offset[r]), fmaf(v[r][1], f.scale[r], f.offset[r]),
                    fmaf(v[r][2], f.scale[r], f.offset[r]), fmaf(v[r][3], f.scale[r], f.offset[r]));
        }
#pragma unroll
        for (int r = 0; r < 2; ++r)
            if (valid[r])
                *reinterpret_cast<uint4*>(row + 8 * r * stride + tile * tile_k) =
                    make_uint4(words[r][0], words[r][1], words[r][2], words[r][3]);
    }
}

// A block of threads a row: first its scale, then 4 bytes a thread and turn. x.cols is a multiple of 8.
template <DType Eight>
__global__ void rows_kernel(Tensor x, Tensor to, float* scales) {
    __shared__ unsigned largest;
    let_next_start();
    wait_for_previous();
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    const bool half = x.dtype == DType::f16;
    const auto* from = static_cast<const unsigned short*>(x.data) + (long long)blockIdx.x * x.row_stride;
    unsigned most = 0;
    for (int i = int(threadIdx.x); i < x.cols / 8; i += threads) {
        const uint4 v = reinterpret_cast<const uint4*>(from)[i];
        for (const unsigned word : {v.x, v.y, v.z, v.w}) {
            const float2 pair = unpair(word, half);
            most = max(most, max(magnitude_bits(pair.x), magnitude_bits(pair.y)));
        }
    }
    for (int step = warp / 2; step > 0; step /= 2)
        most = max(most, __shfl_xor_sync(0xFFFFFFFFU, most, step));
    if (threadIdx.x % warp == 0) atomicMax(&largest, most);
    __syncthreads();
    const float scale = scale_of(largest, Eight), inverse = reciprocal(scale);
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
    const auto* pairs = reinterpret_cast<const unsigned*>(from);
    auto* words =
        reinterpret_cast<unsigned*>(static_cast<std::byte*>(to.data) + (long long)blockIdx.x * to.row_stride);
    for (int n = int(threadIdx.x); n < to.cols / 4; n += threads) {
        const int k = n / 16 * tile_k + n % 4 * 16 + n % 16 / 4 * 2;  // word 4 t + i of a tile
        const float2 a = k < x.cols ? unpair(pairs[k / 2], half) : make_float2(0, 0);
        const float2 b = k + 8 < x.cols ? unpair(pairs[k / 2 + 4], half) : make_float2(0, 0);
        words[n] = four_bytes<Eight>(a.x * inverse, a.y * inverse, b.x * inverse, b.y * inverse);
    }
}

__global__ void scales_kernel(Tensor sums, const float* x_scale, const float* w_scale, Tensor out, bool add) {
    let_next_start();
    wait_for_previous();
    const int column = int(blockIdx.x) * threads + int(threadIdx.x);
    if (column >= out.cols) return;
    const long long from = (long long)blockIdx.y * sums.row_stride + column;
    const float sum = sums.dtype == DType::i32 ? float(static_cast<const int*>(sums.data)[from])
                                               : static_cast<const float*>(sums.data)[from];
    const long long at = (long long)blockIdx.y * out.row_stride + column;
    const float value = sum * x_scale[blockIdx.y] * w_scale[column];
    store(out.data, at, out.dtype, add ? value + load(out.data, at, out.dtype) : value);
}

template <DType Eight>
void launch_weight(cudaStream_t stream, const TileWeight& w, int first, int count, std::byte* to) {
    const int tiles = w.chunks * 2, a_block = warps * tiles_a_warp;
    const dim3 grid(unsigned(count), unsigned((tiles + a_block - 1) / a_block));
    const int a_half = row_groups(w).a_half, row = first_row(w, first);
    if (w.kind == TileKind::u4)
        launch("quantizing a weight", weight_kernel<TileKind::u4, Eight>, grid, dim3(threads), 0, stream, w,
               a_half, first, row, to);
    else
        launch("quantizing a weight", weight_kernel<TileKind::u8, Eight>, grid, dim3(threads), 0, stream, w,
               a_half, first, row, to);
}

}  // namespace

RowGroups row_groups(const TileWeight& w) {
    const int a_half = (w.outputs + group_rows - 1) / group_rows;
    return {a_half, w.gated ? 2 * a_half : a_half};
}

int first_row(const TileWeight& w, int index) {
    const RowGroups groups = row_groups(w);
    if (index == groups.count) return w.rows;
    return index < groups.a_half ? index * group_rows : w.outputs + (index - groups.a_half) * group_rows;
}

void find_row_scales(cudaStream_t stream, const TileWeight& w) {
    assert(w.kind != TileKind::dense && w.row_scale);
    const RowGroups groups = row_groups(w);
    auto* scale = const_cast<float*>(w.row_scale);
    if (w.kind == TileKind::u4)
        row_scales_kernel<TileKind::u4>
            <<<unsigned(groups.count), threads, 0, stream>>>(w, groups.a_half, scale);
    else
        row_scales_kernel<TileKind::u8>
            <<<unsigned(groups.count), threads, 0, stream>>>(w, groups.a_half, scale);
    check_launch("finding the scales of rows");
}

void quantize_weight(cudaStream_t stream, const TileWeight& w, int first, int count, std::byte* to) {
    if (w.eight == DType::f8_e4m3)
        launch_weight<DType::f8_e4m3>(stream, w, first, count, to);
    else
        launch_weight<DType::i8>(stream, w, first, count, to);
}

void quantize_rows(cudaStream_t stream, Tensor x, Tensor to, float* scale) {
    assert(x.cols % 8 == 0 && x.row_stride % 8 == 0 && to.cols % tile_k == 0 && x.dtype != DType::f32);
    const dim3 grid(unsigned(x.rows));
    if (to.dtype == DType::f8_e4m3)
        launch("quantizing rows", rows_kernel<DType::f8_e4m3>, grid, dim3(threads), 0, stream, x, to, scale);
    else
        launch("quantizing rows", rows_kernel<DType::i8>, grid, dim3(threads), 0, stream, x, to, scale);
}

void apply_scales(cudaStream_t stream, Tensor sums, const float* x_scale, const float* w_scale, Tensor out,
                  bool add) {
    const dim3 grid(unsigned((out.cols + threads - 1) / threads), unsigned(out.rows));
    launch("applying scales", scales_kernel, grid, dim3(threads), 0, stream, sums, x_scale, w_scale, out,
           add);
}

}  // namespace recto::cuda
