// A product of a decode program: its inputs into shared memory, this warp's bites of weights against them,
// the block's sums together and out.
#pragma once
#include "kernels/cuda/attention_math.cuh"
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/program_stream.cuh"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {

template <class T>
__device__ inline std::uint32_t pair_of(float a, float b) {
    return pair_bits(a, b, std::is_same_v<T, __half>);
}
template <class T>
__device__ inline float2 pair_to(std::uint32_t v) {
    return unpair(v, std::is_same_v<T, __half>);
}

__device__ inline uint4 load_fresh(const uint4* from) {
    const float4 v = load_shared_result(reinterpret_cast<const float4*>(from));
    return make_uint4(__float_as_uint(v.x), __float_as_uint(v.y), __float_as_uint(v.z), __float_as_uint(v.w));
}
__device__ inline void store_shared_word(std::uint32_t at, std::uint32_t v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
__device__ inline void store_shared_float(std::uint32_t at, float v) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}
__device__ inline float plane_float(std::uint32_t bits) {  // of a scale, FP16
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
__device__ inline float2 load_shared_two(std::uint32_t at) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at));
    return v;
}
__device__ inline float load_shared_float(std::uint32_t at) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at));
    return v;
}

// Norm weights of the inputs that a thread stages: asked for before the wait for those.
struct NormWeights {
    static constexpr int kept = 2;  // eights of inputs a thread holds; more are read again
    float4 w[kept][2] = {};         // what is set on some ways only would take registers on all others too

    __device__ void load(const ProgramProduct& p, int thread) {
        if (!p.norm) return;
#pragma unroll
        for (int n = 0; n < kept; ++n) {
            const int i = thread + n * program_threads;
            if (i * 8 >= p.cols) break;
            w[n][0] = reinterpret_cast<const float4*>(p.norm)[2 * i];
            w[n][1] = reinterpret_cast<const float4*>(p.norm)[2 * i + 1];
        }
    }
};

template <class T>
struct ProgramProducts {
    const ProgramProduct& p;
    const ProgramRun& run;
    const InputPlace& place;
    std::uint32_t x;  // shared
    float* scratch;   // shared [program_rows][program_warps]
    int2* spans;      // shared [program_warps]: first and last slab of each warp's run
    int rows, thread, warp, lane;

    // Eight inputs of a row to their places. The whole warp takes part.
    __device__ void put_eight(int row, int eight, uint4 v, bool inside) const {
        if (p.cut.dense)
            put_floats(row, eight, v, inside);
        else
            put_integers(row, eight, v, inside);
    }

    // As [32 inputs][lane % 4][k, k + 1; k + 8, k + 9; k + 16, k + 17; k + 24, k + 25] with k = 2 (lane % 4),
    // so that what a lane needs of 32 inputs is one load.
    __device__ void put_floats(int row, int eight, uint4 v, bool inside) const {
        if (!inside) return;
        const std::uint32_t to = x + std::uint32_t(row * place.stride + eight / 4 * 64 + eight % 4 * 4);
        store_shared_word(to, v.x);
        store_shared_word(to + 16, v.y);
        store_shared_word(to + 32, v.z);
        store_shared_word(to + 48, v.w);
    }

    // As integers of 16 bits under one step for 256: 256 · high + low, both signed bytes, which the tensor
    // cores multiply exactly by what 4-bit weights are. A step is the largest input / 32,512, so that what
    // rounding takes from an input is below what FP16 took unless it is 16 times smaller than that largest
    // one. High bytes and low bytes are rows of their own: [64 inputs][lane % 4][16 bytes], of each 16 inputs
    // those at k, k + 8, k + 1, k + 9 with k = 2 (lane % 4), as masks take them out of a word of weights
    // (tile_linear.h).
    __device__ void put_integers(int row, int eight, uint4 v, bool inside) const {
        const float2 pairs[4] = {pair_to<T>(v.x), pair_to<T>(v.y), pair_to<T>(v.z), pair_to<T>(v.w)};
        // Floats that are not negative are ordered as their bits, infinity and NaN above all: their step
        // makes NaN of every output.
        std::uint32_t most_bits = 0;
#pragma unroll
        for (const float2& f : pairs)
            most_bits = max(most_bits, max(__float_as_uint(fabsf(f.x)), __float_as_uint(fabsf(f.y))));
        const float most = __uint_as_float(__reduce_max_sync(0xFFFFFFFFU, most_bits));
        constexpr float largest = 32512.0F;
        const float inverse = most > 0.0F ? largest / most : 0.0F;
        std::uint32_t high[2] = {}, low[2] = {};
        int sum = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int n = __float2int_rn((i % 2 == 0 ? pairs[i / 2].x : pairs[i / 2].y) * inverse);
            sum += n;
            high[i / 4] |= ((std::uint32_t(n + 128) >> 8) & 0xFF) << (i % 4 * 8);
            low[i / 4] |= (std::uint32_t(n) & 0xFF) << (i % 4 * 8);
        }
        const int first_sum = __reduce_add_sync(0xFFFFFFFFU, lane < 16 ? sum : 0);
        const int second_sum = __reduce_add_sync(0xFFFFFFFFU, lane < 16 ? 0 : sum);
        // Two lanes hold 16 inputs: the even one takes all high bytes, the odd one all low bytes.
        const bool odd = lane % 2 != 0;
        std::uint32_t other[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            other[i] = __shfl_xor_sync(0xFFFFFFFFU, odd ? high[i] : low[i], 1);
        if (!inside) return;
        const std::uint32_t to = x + std::uint32_t(row * place.stride + (odd ? place.stride / 2 : 0) +
                                                   eight / 8 * 64 + eight / 2 % 4 * 4);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const std::uint32_t first = odd ? other[i] : high[i], second = odd ? low[i] : other[i];
            store_shared_word(to + std::uint32_t(2 * i) * 16, __byte_perm(first, second, 0x5140));
            store_shared_word(to + std::uint32_t(2 * i + 1) * 16, __byte_perm(first, second, 0x7362));
        }
        if (lane % 16 == 0) {
            const std::uint32_t at = x + std::uint32_t(place.sums + (eight / 16 * rows + row) * 8);
            store_shared_float(at, most * (1.0F / largest));
            store_shared_float(at + 4, float(lane == 0 ? first_sum : second_sum));
        }
    }

    // Inputs are asked for some at a time: one after the other they would cost a way to memory each.
    __device__ void stage_plain() const {
        constexpr int together = 4;
        const int eights = place.chunks * 16, cols = p.cols;
        for (int row = 0; row < rows; ++row) {
            const auto* from = reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(p.x) +
                                                              (long long)row * p.x_stride);
            for (int first = warp * 32; first < eights; first += together * program_threads) {
                uint4 v[together];
#pragma unroll
                for (int n = 0; n < together; ++n) {
                    const int i = first + n * program_threads + lane;
                    v[n] = make_uint4(0, 0, 0, 0);  // inputs past the last meet weights that are no zeros
                    if (i * 8 < cols) v[n] = load_fresh(from + i);
                }
#pragma unroll
                for (int n = 0; n < together; ++n)
                    if (first + n * program_threads < eights)
                        put_eight(row, first + n * program_threads + lane, v[n],
                                  first + n * program_threads + lane < eights);
            }
        }
    }

    struct Eight {
        uint4 low{}, high{};  // FP32; set on every way, see NormWeights
        __device__ void read(const float* row, int cols, int i) {
            low = high = make_uint4(0, 0, 0, 0);
            if (i * 8 >= cols) return;
            low = load_fresh(reinterpret_cast<const uint4*>(row) + 2 * i);
            high = load_fresh(reinterpret_cast<const uint4*>(row) + 2 * i + 1);
        }
        __device__ float at(int k) const {
            const std::uint32_t e[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            return __uint_as_float(e[k]);
        }
        __device__ float squares() const {
            float sum = 0.0F;
#pragma unroll
            for (int k = 0; k < 8; ++k)
                sum = fmaf(at(k), at(k), sum);
            return sum;
        }
    };

    // `normed`: where the row goes too, or null.
    __device__ void put_normed(int row, int i, const Eight& v, float inverse, const float4 (&w)[2],
                               bool inside, uint4* normed) const {
        uint4 out = make_uint4(0, 0, 0, 0);
        if (inside) {
            out.x = pair_of<T>(v.at(0) * inverse * w[0].x, v.at(1) * inverse * w[0].y);
            out.y = pair_of<T>(v.at(2) * inverse * w[0].z, v.at(3) * inverse * w[0].w);
            out.z = pair_of<T>(v.at(4) * inverse * w[1].x, v.at(5) * inverse * w[1].y);
            out.w = pair_of<T>(v.at(6) * inverse * w[1].z, v.at(7) * inverse * w[1].w);
            if (normed) normed[i] = out;
        }
        put_eight(row, i, out, i < place.chunks * 16);
    }

    // The whole block takes part. What a thread holds of its inputs stays in registers between the rows' sums
    // and their scaling.
    __device__ void stage_normed(const NormWeights& weights) const {
        constexpr int kept = NormWeights::kept;
        const int eights = place.chunks * 16, cols = p.cols;
        const float eps = p.eps;
        const auto* x_rows = static_cast<const float*>(p.x);
        const long long x_stride = p.x_stride;
        auto* normed = blockIdx.x == 0 ? static_cast<std::uint16_t*>(p.normed) : nullptr;
        const long long normed_stride = p.normed_stride;
        Eight v[program_rows][kept];
#pragma unroll
        for (int row = 0; row < program_rows; ++row)
#pragma unroll
            for (int n = 0; n < kept; ++n)
                if (row < rows) v[row][n].read(x_rows + row * x_stride, cols, thread + n * program_threads);
#pragma unroll
        for (int row = 0; row < program_rows; ++row) {
            if (row == rows) break;
            float square = 0.0F;
#pragma unroll
            for (int n = 0; n < kept; ++n)
                square += v[row][n].squares();
            for (int i = thread + kept * program_threads; i * 8 < cols; i += program_threads) {
                Eight more;
                more.read(x_rows + row * x_stride, cols, i);
                square += more.squares();
            }
            square = warp_sum(square);
            if (lane == 0) scratch[row * program_warps + warp] = square;
        }
        __syncthreads();
#pragma unroll
        for (int row = 0; row < program_rows; ++row) {
            if (row == rows) break;
            float sum = 0.0F;
#pragma unroll
            for (int w = 0; w < program_warps; ++w)
                sum += scratch[row * program_warps + w];
            const float inverse = 1.0F / sqrtf(sum / float(cols) + eps);
            auto* to = normed ? reinterpret_cast<uint4*>(normed + row * normed_stride) : nullptr;
#pragma unroll
            for (int n = 0; n < kept; ++n) {
                const int i = thread + n * program_threads;
                if (n * program_threads + warp * 32 < eights)
                    put_normed(row, i, v[row][n], inverse, weights.w[n], i * 8 < cols, to);
            }
            for (int first = kept * program_threads + warp * 32; first < eights; first += program_threads) {
                const int i = first + lane;
                Eight more;
                more.read(x_rows + row * x_stride, cols, i);
                float4 w[2] = {};
                if (i * 8 < cols) {
                    w[0] = reinterpret_cast<const float4*>(p.norm)[2 * i];
                    w[1] = reinterpret_cast<const float4*>(p.norm)[2 * i + 1];
                }
                put_normed(row, i, more, inverse, w, i * 8 < cols, to);
            }
        }
    }

    // A bite's products on their way: what is still to be done when its place in the ring has been read.
    // Two chunks of 4-bit weights: rows g and g + 8 of token t, lane 4 g + t. Columns of the product are
    // tokens' high and low bytes in turns, and so a lane's two of a row are one token's.
    template <bool Zeros>
    struct Integers {
        int n[2][4];
        float2 of_x[2];  // of a chunk: step, sum
        std::uint32_t scale[2][2], zero[2][2];

        __device__ Integers(const ProgramProducts& a, std::uint32_t at, std::uint32_t from,
                            std::uint32_t sums) {
            const std::uint32_t planes = at + bite_tile_bytes + std::uint32_t(a.lane / 4 * 2);
            const std::uint32_t zeros = at + bite_tile_bytes + 64 + std::uint32_t(a.lane / 4);
            uint4 q[2][2], b[2][2];
#pragma unroll
            for (int c = 0; c < 2; ++c)
#pragma unroll
                for (int tile = 0; tile < 2; ++tile) {
                    q[c][tile] = load_shared_four(at + std::uint32_t(c * 1024 + tile * 512 + a.lane * 16));
                    b[c][tile] = load_shared_four(from + std::uint32_t(c * 128 + tile * 64));
                }
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                of_x[c] = load_shared_two(sums + std::uint32_t(c * a.rows * 8));
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    scale[c][i] = load_shared_u16(planes + std::uint32_t(c * 32 + i * 16));
                    zero[c][i] = Zeros ? load_shared_u8(zeros + std::uint32_t(c * 16 + i * 8)) : 0;
                }
            }
#pragma unroll
            for (int c = 0; c < 2; ++c) {
#pragma unroll
                for (int& v : n[c])
                    v = 0;
#pragma unroll
                for (int tile = 0; tile < 2; ++tile) {
                    const uint4 w = q[c][tile], x4 = b[c][tile];
                    constexpr std::uint32_t nibbles = 0x0F0F0F0F;
                    const std::uint32_t first[4] = {w.x & nibbles, w.x >> 4 & nibbles, w.y & nibbles,
                                                    w.y >> 4 & nibbles};
                    multiply_32(n[c], first, x4.x, x4.y);
                    const std::uint32_t second[4] = {w.z & nibbles, w.z >> 4 & nibbles, w.w & nibbles,
                                                     w.w >> 4 & nibbles};
                    multiply_32(n[c], second, x4.z, x4.w);
                }
            }
        }
        // d: rows g and g + 8
        __device__ void add_to(float (&d)[4], float common_zero) const {
#pragma unroll
            for (int c = 0; c < 2; ++c)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float z =
                        Zeros ? __uint_as_float(0x4B000000U | zero[c][i]) - 8388608.0F : common_zero;
                    const float sum = fmaf(-z, of_x[c].y, float(n[c][2 * i] * 256 + n[c][2 * i + 1]));
                    d[i] = fmaf(of_x[c].x * plane_float(scale[c][i]), sum, d[i]);
                }
        }
    };

    // 64 inputs of 16-bit weights: rows g and g + 8 of tokens 2 t and 2 t + 1.
    struct Floats {
        float sum[2][4] = {};

        __device__ Floats(const ProgramProducts& a, std::uint32_t at, std::uint32_t from) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint4 b = load_shared_four(from + std::uint32_t(half) * 64);
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    const int row = a.lane % 16, unit = 4 * half + 2 * k + a.lane / 16;
                    std::uint32_t w[4];
                    load_matrices(w, at + std::uint32_t(row * 128 + ((unit ^ (row % 8)) * 16)));
                    multiply_16(sum[k], w, k == 0 ? b.x : b.z, k == 0 ? b.y : b.w, T{});
                }
            }
        }
        __device__ void add_to(float (&d)[4]) const {
#pragma unroll
            for (int n = 0; n < 4; ++n)
                d[n] += sum[0][n] + sum[1][n];
        }
    };

    // This warp's run. `bite` begins one bite's products: its weights' place, its place in its slab; `add`
    // adds them when the next bite has been asked for; `put` stores a slab's sums where the run leaves it.
    template <class Bite, class Add, class Put>
    __device__ void each_bite(WeightAsker& asker, std::uint32_t ring, int depth, Bite&& bite, Add&& add,
                              Put&& put) const {
        std::uint32_t to = x + std::uint32_t(place.parts + warp * place.segments * rows * 64 + lane / 4 * 4);
        const int bites = p.cut.bites;  // here: what lies in shared memory is read again behind every copy
        int span = run.first_span;
        float d[4] = {};
        for (int left = run.end - run.begin; left > 0; --left) {
            wait_for_copies_but(depth - 1);
            __syncwarp();
            // The ring is full: the next bite to be asked for takes the place of this one.
            const auto products = bite(ring + std::uint32_t(asker.place()), std::uint32_t(span));
            __syncwarp();
            asker.ask();
            add(d, products);
            if (++span < bites && left > 1) continue;
            span = 0;
            put(d, to);
            to += std::uint32_t(rows * 64);
#pragma unroll
            for (float& v : d)
                v = 0.0F;
        }
    }
    __device__ void multiply(WeightAsker& asker, std::uint32_t ring, int depth) const {
        if (lane == 0)
            spans[warp] = run.begin == run.end
                              ? make_int2(0, -1)
                              : make_int2(p.cut.slab_of(run.begin), p.cut.slab_of(run.end - 1));
        const int g = lane / 4, t = lane % 4;
        if (p.cut.dense) {
            const std::uint32_t from = x + std::uint32_t(min(g, rows - 1) * place.stride + t * 16);
            each_bite(
                asker, ring, depth,
                [&](std::uint32_t at, std::uint32_t span) { return Floats(*this, at, from + span * 128); },
                [&](float(&d)[4], const Floats& products) { products.add_to(d); },
                [&](const float(&d)[4], std::uint32_t to) {
#pragma unroll
                    for (int e = 0; e < 2; ++e)
                        if (2 * t + e < rows) {
                            store_shared_float(to + std::uint32_t((2 * t + e) * 64), d[e]);
                            store_shared_float(to + std::uint32_t((2 * t + e) * 64 + 32), d[2 + e]);
                        }
                });
            return;
        }
        const std::uint32_t from = x + std::uint32_t(min(g / 2, rows - 1) * place.stride +
                                                     (g % 2 != 0 ? place.stride / 2 : 0) + t * 16);
        const std::uint32_t sums = x + std::uint32_t(place.sums + min(t, rows - 1) * 8);
        const auto bites = [&]<bool Zeros>(float zero) {
            each_bite(
                asker, ring, depth,
                [&](std::uint32_t at, std::uint32_t span) {
                    return Integers<Zeros>(*this, at, from + span * 256,
                                           sums + span * std::uint32_t(16 * rows));
                },
                [&](float(&d)[4], const Integers<Zeros>& products) { products.add_to(d, zero); },
                [&](const float(&d)[4], std::uint32_t to) {
                    if (t >= rows) return;
                    store_shared_float(to + std::uint32_t(t * 64), d[0]);
                    store_shared_float(to + std::uint32_t(t * 64 + 32), d[1]);
                });
        };
        if (p.mode == SecondPlane::zero_u8)
            bites.template operator()<true>(0.0F);
        else
            bites.template operator()<false>(float(p.zero));
    }

    // Row `r` of the block's slab `slab`, of all warps in the order of the inputs.
    __device__ float total(int slab, int token, int r) const {
        const std::uint32_t from = x + std::uint32_t(place.parts + token * 64 + r * 4);
        const std::uint32_t segment = std::uint32_t(rows * 64),
                            of_warp = segment * std::uint32_t(place.segments);
        float part[program_warps];
#pragma unroll
        for (int w = 0; w < program_warps; ++w) {
            const int2 has = spans[w];
            const bool there = has.x <= slab && slab <= has.y;
            const float v = load_shared_float(from + std::uint32_t(w) * of_warp +
                                              (there ? std::uint32_t(slab - has.x) * segment : 0));
            part[w] = there ? v : 0.0F;
        }
        float sum = 0.0F;
#pragma unroll
        for (float v : part)
            sum += v;
        return sum;
    }

    // One of the block's outputs; units · 16 · program_rows of them, some of which are none.
    struct Output {
        int unit, r, token, output;
        long long at;
        bool exists;
        __device__ Output(const ProgramProduct& p, const ProgramRun& run, int rows, int i) {
            const int each = p.cut.unit_outputs();
            r = i % slab_rows;
            token = i / slab_rows % program_rows, unit = i / slab_rows / program_rows;
            output = (run.first_slab / p.cut.unit_slabs() + unit) * each + r;
            exists = unit < run.units && token < rows && r < each && output < p.outputs;
            at = (long long)token * p.out_stride + output;
        }
    };
    // What the output to which this thread will add holds: asked for long before it is needed.
    __device__ float read_before() const {
        const Output o(p, run, rows, thread);
        return o.exists && p.epilogue == Epilogue::add ? load(p.out, o.at, p.out_dtype) : 0.0F;
    }
    __device__ void finish(float before) const {
        for (int i = thread; i < run.units * slab_rows * program_rows; i += program_threads) {
            const Output o(p, run, rows, i);
            if (!o.exists) continue;
            if (i >= program_threads && p.epilogue == Epilogue::add) before = load(p.out, o.at, p.out_dtype);
            float v = total(o.unit * p.cut.unit_slabs(), o.token, o.r);
            if (p.bias) v += p.bias[o.output];
            if (p.cut.gated) {
                float up = p.cut.dense ? total(o.unit, o.token, o.r + slab_rows / 2)
                                       : total(2 * o.unit + 1, o.token, o.r);
                if (p.bias) up += p.bias[p.outputs + o.output];
                v = quick_gate(v, p.epilogue) * up;
            }
            if (p.epilogue != Epilogue::add) before = 0.0F;
            store(p.out, o.at, p.out_dtype, before + v);
        }
    }
};

}  // namespace recto::cuda
