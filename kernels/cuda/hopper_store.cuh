// The usual ways out of a tile's sums that one block has whole: to 16-bit rows, gated or not, and added to
// the residual stream. All of it is unrolled under constant indices, since sums lie in registers.
#pragma once
#include <type_traits>

#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/hopper_pipeline.cuh"
#include "kernels/cuda/tensor_core.cuh"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {

constexpr int slice_tokens = 32;  // of FP32 sums that are written at a time
constexpr int slice_stride = 68;  // floats between tokens of a slice: no two lanes of a warp write one bank
constexpr int gated_slice_bytes = 8192 + 2048;  // sums of 32 tokens and 64 rows, results of 32 outputs
__host__ __device__ constexpr int slice_floats(int tokens) {
    return tokens < slice_tokens ? tokens * slice_stride : gated_slice_bytes / 4;
}

// A warpgroup's sums of `Width` tokens, as wgmma.cuh says, to [token][slice_stride] in shared memory.
template <int Width>
__device__ void put_rows(float* slice, const float* v, int thread) {
    float* to = slice + thread % 4 * 2 * slice_stride + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int j = 0; j < Width / 8; ++j, to += 8 * slice_stride) {
        to[0] = v[4 * j];
        to[slice_stride] = v[4 * j + 1];
        to[8] = v[4 * j + 2];
        to[slice_stride + 8] = v[4 * j + 3];
    }
}

// Where the memory is: nobody waits for what was there. The order of additions is the same each time if one
// block makes them.
__device__ inline void add_four(float* to, float4 v) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y),
                 "f"(v.z), "f"(v.w)
                 : "memory");
}

// Of one warpgroup.
template <class T, int Tokens>
struct TileStore {
    static constexpr int values = Tokens / 2;
    static constexpr int width = Tokens % 64 == 0 ? 64 : 32;  // tokens of 16-bit results written at a time
    static constexpr DType dtype = std::is_same_v<T, __half> ? DType::f16 : DType::bf16;

    const HopperArgs& a;
    float* floats;  // shared memory of the warpgroup, slice_floats(Tokens)
    int group, thread;
    std::uint32_t slice = shared_address(floats);

    __device__ int warp_of() const { return thread / 32; }
    __device__ int lane() const { return thread % 32; }
    __device__ void sync() const { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }
    __device__ int outputs() const { return a.w.gated ? block_rows / 2 : block_rows; }  // of a block

    __device__ bool suits(int block) const {
        const bool add = a.epilogue == Epilogue::add;
        return a.out.dtype == (add ? DType::f32 : dtype) && (block + 1) * outputs() <= a.w.outputs &&
               a.out.row_stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(a.out.data) % 16 == 0;
    }

    __device__ void run(float (&d)[values], int block, int first) const {
        if (a.bias) add_bias(d, block);
        if (a.epilogue == Epilogue::add) return added(d, block, first);
        if (a.epilogue == Epilogue::store) return plain(d, block, first);
        gated(d, block, first);
    }

  private:
    __device__ void add_bias(float (&d)[values], int block) const {
        const int row = warp_of() * 16 + lane() / 4;
        constexpr int half = block_rows / 2;
        const float* bias = a.bias + (!a.w.gated   ? block * block_rows + row
                                      : row < half ? block * half + row
                                                   : a.w.outputs + block * half + row - half);
        const float low = bias[0], high = bias[8];
#pragma unroll
        for (int i = 0; i < values; i += 4)
            d[i] += low, d[i + 1] += low, d[i + 2] += high, d[i + 3] += high;
    }

    static __device__ std::uint32_t pair(float low, float high) {
        if constexpr (dtype == DType::f16)
            return as_bits(__floats2half2_rn(low, high));
        else
            return bf16_pair(low, high);
    }
    // v: 16 rows and 16 tokens as two fragments of D; 8 rows of a token are a unit of 16 bytes. They leave
    // the registers transposed (PTX ISA, stmatrix), so that what goes to memory is 16 bytes a thread.
    static __device__ void put(const float* v, std::uint32_t row_address) {
        const std::uint32_t m[4] = {pair(v[0], v[1]), pair(v[2], v[3]), pair(v[4], v[5]), pair(v[6], v[7])};
        store_matrices_transposed(row_address, m);
    }
    // Permuted so that eight tokens of one unit, and the units of one token, lie in different banks.
    __device__ std::uint32_t place(int token, int unit) const {
        return slice + std::uint32_t(token * 8 + (unit ^ (token % 8))) * 16;
    }
    // This lane's row address for matrices {rows 0 … 7, 8 … 15} x {tokens 0 … 7, 8 … 15}.
    __device__ std::uint32_t matrix_row(int token, int unit) const {
        return place(token + lane() / 16 * 8 + lane() % 8, unit + lane() / 8 % 2);
    }
    __device__ void write_out(int block, int first) const {
        auto* out = static_cast<std::uint16_t*>(a.out.data) + block * block_rows;
#pragma unroll
        for (int i = 0; i < width * 8 / 128; ++i) {
            const int n = i * 128 + thread, token = n / 8, unit = n % 8;
            const uint4 v = load_shared_four(place(token, unit));
            if (first + token < a.tokens)
                *reinterpret_cast<uint4*>(out + (long long)(first + token) * a.out.row_stride + unit * 8) = v;
        }
    }

    __device__ void plain(const float (&d)[values], int block, int first) const {
#pragma unroll
        for (int s = 0; s < Tokens / width; ++s) {
            sync();  // the slice before was read
#pragma unroll
            for (int m = 0; m < width / 16; ++m)
                put(d + s * (width / 2) + 8 * m, matrix_row(16 * m, 2 * warp_of()));
            sync();
            write_out(block, first + s * width);
        }
    }

    // Two warps hold gate rows, two the up rows that belong to them. By way of shared memory each thread gets
    // both for 16 of a slice's tokens: no branch, which the compiler would merge and spill.
    __device__ void gated(const float (&d)[values], int block, int first) const {
        constexpr int eights = slice_tokens / 8;
        const GateCurve curve = gate_curve(a.epilogue);
        const int late = warp_of() / 2;  // 1: has the slice's second half
        const auto sums = [&](int eight, int of) { return slice + std::uint32_t(eight * 128 + of) * 16; };
        const std::uint32_t results = slice + eights * 128 * 16;
        const auto result = [&](int token, int unit) {
            return results + std::uint32_t(token * 4 + (unit ^ (token / 2 % 4))) * 16;
        };
        const std::uint32_t row_address =
            result(late * 16 + lane() / 16 * 8 + lane() % 8, warp_of() % 2 * 2 + lane() / 8 % 2);
        const int token = thread / 4, unit = thread % 4;  // that this thread writes
        auto* out = static_cast<std::uint16_t*>(a.out.data) + (long long)(first + token) * a.out.row_stride +
                    block * (block_rows / 2) + unit * 8;
#pragma unroll
        for (int s = 0; s < Tokens / slice_tokens; ++s) {
#pragma unroll
            for (int n = 0; n < eights; ++n) {
                const float* v = d + (s * eights + n) * 4;
                store_shared_four(sums(n, thread), v);
            }
            sync();
            float v[8];
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const uint4 gates = load_shared_four(sums(2 * late + n, thread % 64)),
                            ups = load_shared_four(sums(2 * late + n, thread % 64 + 64));
                v[4 * n] = curve.of(__uint_as_float(gates.x)) * __uint_as_float(ups.x);
                v[4 * n + 1] = curve.of(__uint_as_float(gates.y)) * __uint_as_float(ups.y);
                v[4 * n + 2] = curve.of(__uint_as_float(gates.z)) * __uint_as_float(ups.z);
                v[4 * n + 3] = curve.of(__uint_as_float(gates.w)) * __uint_as_float(ups.w);
            }
            put(v, row_address);
            sync();
            const uint4 eight = load_shared_four(result(token, unit));
            if (first + s * slice_tokens + token < a.tokens)
                *reinterpret_cast<uint4*>(out + (long long)(s * slice_tokens) * a.out.row_stride) = eight;
        }
    }

    // To the residual stream.
    __device__ void added(const float (&d)[values], int block, int first) const {
        constexpr int places = slice_tokens * block_rows / 4 / 128;  // of a slice, a thread: four rows each
        const int token = thread / (block_rows / 4), row = thread % (block_rows / 4) * 4;
        constexpr int step = 128 / (block_rows / 4);  // tokens from place to place
        auto* out = static_cast<float*>(a.out.data) + (long long)(first + token) * a.out.row_stride +
                    block * block_rows + row;
        const float* from = floats + token * slice_stride + row;
#pragma unroll
        for (int s = 0; s < Tokens / slice_tokens; ++s) {
            sync();  // the slice before was read
            put_rows<slice_tokens>(floats, d + s * (slice_tokens / 2), thread);
            sync();
#pragma unroll
            for (int i = 0; i < places; ++i) {
                const int t = s * slice_tokens + i * step;
                if (first + token + t < a.tokens)
                    add_four(out + (long long)t * a.out.row_stride,
                             *reinterpret_cast<const float4*>(from + i * step * slice_stride));
            }
        }
    }
};

}  // namespace recto::cuda
