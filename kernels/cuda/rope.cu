// Rotary embedding (Su et al. 2021) with the heads' norms and the write into the KV cache.
#include <cassert>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace recto::cuda {
namespace {

constexpr int rope_threads = 128;

__global__ void rope_table_kernel(const int* positions, Frequencies f, float factor, Tensor out) {
    let_next_start();
    wait_for_previous();
    const int pairs = int(out.cols) / 2;
    const int i = int(threadIdx.x);
    if (i >= pairs) return;
    // The angle reaches thousands of turns: reduce it in double.
    const double angle = double(positions[blockIdx.x]) * double(f.value[i]);
    float* row = static_cast<float*>(out.data) + (long long)blockIdx.x * out.row_stride;
    row[i] = float(cos(angle)) * factor;
    row[pairs + i] = float(sin(angle)) * factor;
}

// Width consecutive elements; Width 8 takes one 16-byte access of 16-bit elements, two of FP32.
template <int Width>
__device__ inline void load_run(const void* base, long long at, DType dtype, float (&v)[Width]) {
    if constexpr (Width == 8) {
        if (dtype == DType::f32) {
            const auto* from = reinterpret_cast<const float4*>(static_cast<const float*>(base) + at);
            const float4 a = from[0], b = from[1];
            v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
            return;
        }
        uint4 words = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(base) + at);
        const uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
        for (int i = 0; i < 4; ++i) {
            if (dtype == DType::f16) {
                const float2 f = __half22float2(reinterpret_cast<const __half2&>(pairs[i]));
                v[2 * i] = f.x, v[2 * i + 1] = f.y;
            } else {
                v[2 * i] = __uint_as_float(pairs[i] << 16);
                v[2 * i + 1] = __uint_as_float(pairs[i] & 0xFFFF0000U);
            }
        }
    } else {
        for (int i = 0; i < Width; ++i)
            v[i] = load(base, at + i, dtype);
    }
}

template <int Width>
__device__ inline void store_run(void* base, long long at, DType dtype, const float (&v)[Width]) {
    if constexpr (Width == 8) {
        if (dtype == DType::f32) {
            auto* to = reinterpret_cast<float4*>(static_cast<float*>(base) + at);
            to[0] = {v[0], v[1], v[2], v[3]};
            to[1] = {v[4], v[5], v[6], v[7]};
        } else if (dtype == DType::f8_e4m3) {
            uint32_t words[2] = {};
            for (int i = 0; i < 8; i += 2) {
                const uint32_t pair = __nv_cvt_float2_to_fp8x2({v[i], v[i + 1]}, __NV_SATFINITE, __NV_E4M3);
                words[i / 4] |= pair << (i % 4 * 8);
            }
            *reinterpret_cast<uint2*>(static_cast<uint8_t*>(base) + at) = {words[0], words[1]};
        } else {
            uint32_t words[4];
            for (int i = 0; i < 4; ++i) {
                if (dtype == DType::f16) {
                    const __half2 h = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
                    words[i] = reinterpret_cast<const uint32_t&>(h);
                } else {
                    const __nv_bfloat162 h = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
                    words[i] = reinterpret_cast<const uint32_t&>(h);
                }
            }
            *reinterpret_cast<uint4*>(static_cast<uint16_t*>(base) + at) = {words[0], words[1], words[2],
                                                                            words[3]};
        }
    } else {
        for (int i = 0; i < Width; ++i)
            store(base, at + i, dtype, v[i]);
    }
}

struct RopeParameters {
    const int* slots;
    RopeStoreArgs args;
    Tensor table, qkv;
    KvView kv;
    int lanes;  // of a head: a power of two up to 32
};

// A group of `lanes` lanes has one head of one row. Its runs are taken in pairs that rotate together, then
// those past the rotary dimensions one by one.
template <int Width>
__global__ void __launch_bounds__(rope_threads) rope_store_kernel(const __grid_constant__ RopeParameters p) {
    const int dim = p.args.shape.head_dim, heads = p.args.shape.heads, kv_heads = p.args.shape.kv_heads;
    const int all = heads + 2 * kv_heads;
    const long long unit = (long long)blockIdx.x * (rope_threads / p.lanes) + threadIdx.x / p.lanes;
    const int lane = int(threadIdx.x) % p.lanes;
    const bool mine = unit < p.qkv.rows * all;
    const int row = mine ? int(unit / all) : 0;
    const int index = mine ? int(unit - (long long)row * all) : 0;  // heads, then K heads, then V heads
    const bool is_q = index < heads;
    const bool is_v = index >= heads + kv_heads;
    const int slot = p.slots[row];
    let_next_start();
    wait_for_previous();

    const long long from = row * p.qkv.row_stride + (long long)index * dim;
    const float* norm = is_v ? nullptr : is_q ? p.args.q_norm : p.args.k_norm;
    float inverse = 1.0F;
    if (p.args.q_norm || p.args.k_norm) {  // all lanes of the warp take part in the sum
        float square = 0.0F;
        for (int d = lane * Width; mine && norm && d < dim; d += p.lanes * Width) {
            float v[Width];
            load_run<Width>(p.qkv.data, from + d, p.qkv.dtype, v);
            for (int i = 0; i < Width; ++i)
                square += v[i] * v[i];
        }
        for (int step = p.lanes / 2; step > 0; step /= 2)
            square += __shfl_xor_sync(0xFFFFFFFFU, square, step);
        if (norm) inverse = rsqrtf(square / float(dim) + p.args.norm_eps);
    }
    if (!mine) return;

    void* to = is_q ? p.qkv.data : is_v ? p.kv.v : p.kv.k;
    const DType to_dtype = is_q ? p.qkv.dtype : p.kv.dtype;
    const int kv_head = index - heads - (is_v ? kv_heads : 0);
    const long long at = is_q ? from
                              : slot / p.kv.block_size * p.kv.block_stride +
                                    ((long long)kv_head * p.kv.block_size + slot % p.kv.block_size) * dim;
    const auto load_normed = [&](int d, float(&v)[Width]) {
        load_run<Width>(p.qkv.data, from + d, p.qkv.dtype, v);
        if (!norm) return;
        float w[Width];
        load_run<Width>(norm, d, DType::f32, w);
        for (int i = 0; i < Width; ++i)
            v[i] = v[i] * inverse * w[i];
    };
    const int rotary = is_v ? 0 : p.args.rotary_dims, half = rotary / 2;
    const float* angles = static_cast<const float*>(p.table.data) + row * p.table.row_stride;
    for (int d = lane * Width; d < half; d += p.lanes * Width) {
        float a[Width], b[Width], cosine[Width], sine[Width];
        load_normed(d, a);
        load_normed(d + half, b);
        load_run<Width>(angles, d, DType::f32, cosine);
        load_run<Width>(angles, half + d, DType::f32, sine);
        for (int i = 0; i < Width; ++i) {
            const float turned = a[i] * cosine[i] - b[i] * sine[i];
            b[i] = b[i] * cosine[i] + a[i] * sine[i];
            a[i] = turned;
        }
        store_run<Width>(to, at + d, to_dtype, a);
        store_run<Width>(to, at + d + half, to_dtype, b);
    }
    if (is_q && !norm) return;  // the rest stays as it is
    for (int d = rotary + lane * Width; d < dim; d += p.lanes * Width) {
        float v[Width];
        load_normed(d, v);
        store_run<Width>(to, at + d, to_dtype, v);
    }
}

// Lanes that a head's runs keep busy.
int lanes_for(int runs) {
    int lanes = 1;
    while (lanes < runs && lanes < warp)
        lanes *= 2;
    return lanes;
}

template <int Width>
void launch_rope_store(cudaStream_t stream, RopeParameters p) {
    const HeadShape& s = p.args.shape;
    const int pairs = p.args.rotary_dims / 2 / Width;
    p.lanes = lanes_for(pairs > 0 ? pairs : s.head_dim / Width);
    const long long units = p.qkv.rows * (s.heads + 2 * s.kv_heads);
    const long long a_block = rope_threads / p.lanes;
    launch("rope and KV write", rope_store_kernel<Width>, dim3(unsigned((units + a_block - 1) / a_block)),
           dim3(rope_threads), 0, stream, p);
}

}  // namespace

void rope_table(cudaStream_t stream, const BatchView& batch, const Frequencies& f, float factor, Tensor out) {
    assert(out.cols / 2 <= max_rotary_pairs);
    launch("rope table", rope_table_kernel, dim3(unsigned(out.rows)), dim3(max_rotary_pairs), 0, stream,
           batch.positions, f, factor, out);
}

void rope_store(cudaStream_t stream, const BatchView& batch, const RopeStoreArgs& args, Tensor table,
                Tensor qkv, const KvView& kv) {
    const RopeParameters p{batch.slots, args, table, qkv, kv, 1};
    // Both halves of a rotation, and the table's rows, must begin at whole runs of 8.
    const bool wide = args.shape.head_dim % 8 == 0 && args.rotary_dims % 16 == 0 && qkv.row_stride % 8 == 0 &&
                      table.row_stride % 4 == 0;
    if (wide)
        launch_rope_store<8>(stream, p);
    else
        launch_rope_store<1>(stream, p);
}

}  // namespace recto::cuda
