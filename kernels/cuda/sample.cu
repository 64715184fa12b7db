// Drawing one token for each row of logits, without sorting and without floating atomics: the same row gives
// the same token on every run.
//
// The rules and the random numbers are those of engine/sample/survivors.cpp. With w_i = exp((x_i − largest) /
// T) at most 1, a token of w < 2^-40 can never be drawn: it scores w / E ≤ 2^-40 · 2^33, and the most
// probable one at least 1 / 23, E lying between 2^-33 and 23. All such tokens together weigh less than the
// margin that top_p has for rounded sums, so every pass leaves them out.
//
// A threshold is found digit by digit, as a radix sort would, from histograms of the weights' bits in shared
// memory. A bin counts its weights and sums, in 64 bits, how far their bits lie above its first value: its
// mass is exact.
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/choices.h"
#include "kernels/cuda/kernels.h"
#include "kernels/exp.h"
#include "kernels/philox.h"

namespace recto::cuda {
namespace {

constexpr int warp = 32;
constexpr unsigned all_lanes = 0xFFFFFFFFU;
constexpr int part_threads = 512;
constexpr int draw_threads = 1024;
constexpr int draw_warps = draw_threads / warp;

// --- first kernel: each block looks for the largest logit of one part of a row

struct Best {
    float value;
    int id;
};

__device__ Best better(Best a, Best b) {  // the lower id of equal values
    return b.value > a.value || (b.value == a.value && b.id < a.id) ? b : a;
}

__device__ Best warp_best(Best best) {
    for (int step = warp / 2; step > 0; step /= 2)
        best = better(
            best, {__shfl_xor_sync(all_lanes, best.value, step), __shfl_xor_sync(all_lanes, best.id, step)});
    return best;
}

__global__ void __launch_bounds__(part_threads)
    part_kernel(const RowDraw* draws, Tensor logits, int valid, RowPart* parts) {
    __shared__ Best warps[part_threads / warp];
    const int row = int(blockIdx.y);
    if (draws[row].kind == DrawKind::none) return;
    const float* x = static_cast<const float*>(logits.data) + row * logits.row_stride;
    const int span = (valid + int(gridDim.x) - 1) / int(gridDim.x);
    const int first = int(blockIdx.x) * span, end = min(first + span, valid);
    Best best{-INFINITY, valid};
    int broken = 0;
#pragma unroll 8
    for (int i = first + int(threadIdx.x); i < end; i += part_threads) {
        const float value = x[i];
        broken |= (__float_as_uint(value) & 0x7F800000U) == 0x7F800000U;  // NaN or infinite
        if (value > best.value) best = {value, i};
    }
    best = warp_best(best);
    if (threadIdx.x % warp == 0) warps[threadIdx.x / warp] = best;
    broken = __syncthreads_or(broken);
    if (threadIdx.x >= warp) return;
    best = warp_best(threadIdx.x < part_threads / warp ? warps[threadIdx.x] : Best{-INFINITY, valid});
    if (threadIdx.x == 0) parts[row * int(gridDim.x) + int(blockIdx.x)] = {best.value, best.id, broken};
}

// --- second kernel: one block a row

struct RowView {  // a row's weights; every pass computes them anew from the logits
    const float* logits;
    int valid;
    float scale, softcap;
    float largest;  // of the scaled and capped logits
    float inverse_temperature;

    // ln w
    __device__ float exponent(int i) const {
        return __fmul_rn(__fsub_rn(scaled(logits[i]), largest), inverse_temperature);
    }
    __device__ float scaled(float x) const {
        if (scale != 1.0F) x = __fmul_rn(x, scale);
        if (softcap > 0.0F) x = softcap * tanhf(x / softcap);
        return x;
    }
};

// As exp_negative: no multiply-add may be fused, or the bits differ from the host's.
__device__ float weight_of(float x) {
    x = x < -87.0F ? -87.0F : x;
    const float shifted = __fadd_rn(__fmul_rn(x, 1.44269504F), exp_round_magic);
    const float n = __fsub_rn(shifted, exp_round_magic);
    const float r = __fadd_rn(__fsub_rn(x, __fmul_rn(n, exp_ln2_high)), __fmul_rn(n, exp_ln2_low));
    float p = 1.0F / 5040;
    p = __fadd_rn(__fmul_rn(p, r), 1.0F / 720);
    p = __fadd_rn(__fmul_rn(p, r), 1.0F / 120);
    p = __fadd_rn(__fmul_rn(p, r), 1.0F / 24);
    p = __fadd_rn(__fmul_rn(p, r), 1.0F / 6);
    p = __fadd_rn(__fmul_rn(p, r), 0.5F);
    p = __fadd_rn(__fmul_rn(p, r), 1.0F);
    p = __fadd_rn(__fmul_rn(p, r), 1.0F);
    return __fmul_rn(p, __uint_as_float(unsigned(int(n) + 127) << 23));
}

// Weights as their bits, which ascend with them.
constexpr unsigned lowest_bits = 0x2B800000U;   // 2^-40
constexpr unsigned largest_bits = 0x3F800000U;  // 1
// The digits: exponent and 6 bits of the mantissa, 9 bits, 8 bits.
constexpr int first_shift = 17, second_shift = 8;
constexpr int most_bins = int((largest_bits - lowest_bits) >> first_shift) + 1;

struct Bins {
    unsigned count[most_bins];
    unsigned above_low[most_bins], above_high[most_bins];  // Σ (bits − first bits of the bin), 64 bits
};

struct Digit {  // of the weights whose bits lie in [from, to)
    unsigned from, to;
    int shift;
    __device__ int bins() const { return int((to - 1 - from) >> shift) + 1; }
    __device__ unsigned first_of(int bin) const { return from + (unsigned(bin) << shift); }
};

using Amount = unsigned long long;
constexpr int amount_bits = 44;  // a mass counts 2^-44; 2^18 weights of 1 fit

struct Scratch {
    Bins bins;
    Amount warp_sums[draw_warps];
    Best best[draw_warps];
    int found;  // bin; -1: none
    Amount before;
    int lowest;
    double scores[draw_warps];
    int ids[draw_warps];
};

// The histogram of one digit over the weights of at least `floor`.
__device__ void fill(Scratch& s, const RowView& row, const Digit& digit, unsigned floor) {
    const int bins = digit.bins();
    for (int b = int(threadIdx.x); b < bins; b += draw_threads)
        s.bins.count[b] = s.bins.above_low[b] = s.bins.above_high[b] = 0;
    __syncthreads();
    const unsigned from = max(digit.from, floor);
    // Most weights are told apart without their exponential; 1e-3 is far more than the rounding of either
    // log.
    const float lower = logf(__uint_as_float(from)) - 1e-3F;
    const float upper = logf(__uint_as_float(digit.to)) + 1e-3F;
#pragma unroll 4
    for (int i = int(threadIdx.x); i < row.valid; i += draw_threads) {
        const float x = row.exponent(i);
        if (x < lower || x > upper) continue;
        const unsigned bits = __float_as_uint(weight_of(x));
        if (bits < from || bits >= digit.to) continue;
        const unsigned offset = bits - digit.from;
        const unsigned bin = offset >> digit.shift;
        const unsigned above = offset & ((1U << digit.shift) - 1);
        atomicAdd(&s.bins.count[bin], 1U);
        if (above == 0) continue;
        if (atomicAdd(&s.bins.above_low[bin], above) + above < above) atomicAdd(&s.bins.above_high[bin], 1U);
    }
    __syncthreads();
}

__device__ Amount amount_of(const Bins& bins, const Digit& digit, int bin, bool by_mass) {
    const unsigned count = bins.count[bin];
    if (!by_mass || count == 0) return count;
    const unsigned first = digit.first_of(bin);
    const Amount mantissa = (first & 0x7FFFFFU) | 0x800000U;
    const Amount sum = count * mantissa + (Amount(bins.above_high[bin]) << 32 | bins.above_low[bin]);
    const int shift = int(first >> 23) - 127 - 23 + amount_bits;
    return shift >= 0 ? sum << shift : sum >> -shift;
}

// Sum over the threads before this one, and over all.
__device__ Amount sum_before(Scratch& s, Amount own, Amount& total) {
    const int lane = int(threadIdx.x) % warp;
    Amount running = own;
    for (int step = 1; step < warp; step *= 2) {
        const Amount other = __shfl_up_sync(all_lanes, running, unsigned(step));
        if (lane >= step) running += other;
    }
    if (lane == warp - 1) s.warp_sums[threadIdx.x / warp] = running;
    __syncthreads();
    if (threadIdx.x < warp) {
        Amount sums = s.warp_sums[lane];
        for (int step = 1; step < draw_warps; step *= 2) {
            const Amount other = __shfl_up_sync(all_lanes, sums, unsigned(step));
            if (lane >= step) sums += other;
        }
        s.warp_sums[lane] = sums;
    }
    __syncthreads();
    total = s.warp_sums[draw_warps - 1];
    const Amount earlier = threadIdx.x < warp ? 0 : s.warp_sums[threadIdx.x / warp - 1];
    return earlier + running - own;
}

// The target of top_p on a total, as Survivors::nucleus_weight.
__device__ Amount nucleus_target(double top_p, Amount total) {
    constexpr double sum_margin = 1e-6;
    return max(Amount(1), Amount(ceil(top_p * double(total) * (1 - sum_margin))));
}

// From the most probable weight down: the bin in which the amount reaches `target`; the lowest that holds
// anything if it never does. `target` becomes what is still to be reached in that bin. With top_p < 1 the
// target is made from the total.
__device__ int pick(Scratch& s, const Digit& digit, bool by_mass, double top_p, Amount& target) {
    constexpr int most = (most_bins + draw_threads - 1) / draw_threads;  // bins a thread
    const int bins = digit.bins();
    const int first = int(threadIdx.x) * most;  // counted from the highest bin
    Amount amounts[most];
    Amount own = 0;
    int lowest = most_bins;
#pragma unroll
    for (int t = 0; t < most; ++t) {
        const int bin = bins - 1 - first - t;
        amounts[t] = bin >= 0 ? amount_of(s.bins, digit, bin, by_mass) : 0;
        if (bin >= 0 && s.bins.count[bin] > 0) lowest = bin;
        own += amounts[t];
    }
    if (threadIdx.x == 0) {
        s.found = -1;
        s.lowest = most_bins;
    }
    Amount total;
    Amount before = sum_before(s, own, total);  // its barriers also order the two writes above
    if (top_p < 1) target = nucleus_target(top_p, total);
    for (int step = warp / 2; step > 0; step /= 2)
        lowest = min(lowest, __shfl_xor_sync(all_lanes, lowest, step));
    if (threadIdx.x % warp == 0 && lowest < most_bins) atomicMin(&s.lowest, lowest);
#pragma unroll
    for (int t = 0; t < most; ++t) {
        if (before < target && before + amounts[t] >= target) {
            s.found = bins - 1 - first - t;
            s.before = before;
        }
        before += amounts[t];
    }
    __syncthreads();
    const int found = s.found;
    if (found >= 0) target -= s.before;
    const int bin = found >= 0 ? found : s.lowest;
    __syncthreads();  // before the bins are filled again
    return bin;
}

// The bits of the smallest weight that a rule keeps, of those of at least `floor`: of the k largest, or of
// the nucleus.
__device__ unsigned threshold_bits(Scratch& s, const RowView& row, bool by_mass, Amount k, double top_p,
                                   unsigned floor) {
    Digit digit{lowest_bits, largest_bits + 1, first_shift};
    Amount target = k;
    while (true) {
        fill(s, row, digit, floor);
        const int bin = pick(s, digit, by_mass, top_p, target);
        top_p = 1;  // from here on the target is known
        const unsigned first = digit.first_of(bin);
        if (digit.shift == 0) return first;
        // What the bin has above its first value is the whole weight when there is one only.
        const unsigned alone = first + s.bins.above_low[bin];
        const bool single = s.bins.count[bin] == 1;
        __syncthreads();
        if (single) return alone;
        digit = {first, first + (1U << digit.shift), digit.shift == first_shift ? second_shift : 0};
    }
}

__device__ uint4 philox(unsigned block, unsigned output_index, unsigned long long seed) {
    uint4 c = make_uint4(block, output_index, 0, 0);
    unsigned k0 = unsigned(seed), k1 = unsigned(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned a_high = __umulhi(philox_m0, c.x), a_low = philox_m0 * c.x;
        const unsigned b_high = __umulhi(philox_m1, c.z), b_low = philox_m1 * c.z;
        c = make_uint4(b_high ^ c.y ^ k0, b_low, a_high ^ c.w ^ k1, a_low);
        k0 += philox_w0;
        k1 += philox_w1;
    }
    return c;
}

__device__ double exact_score(float weight, unsigned bits) {
    return double(weight) / -log((double(bits) + 0.5) * 0x1p-32);
}

constexpr float near = 1e-5F;  // well above the relative error of quick_score

// w / E in single precision; near u = 1 the logarithm is taken of what is missing.
__device__ float quick_score(float weight, unsigned bits) {
    const float e = bits >= 0x80000000U ? -log1pf(-(float(~bits) + 0.5F) * 0x1p-32F)
                                        : -logf((float(bits) + 0.5F) * 0x1p-32F);
    return weight / e;
}

struct Candidate {
    float score;  // quick
    float weight;
    unsigned bits;
    int id;
};

__device__ unsigned word(const uint4& v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// This thread's tokens: the largest score; those that single precision cannot tell apart in double.
__device__ Candidate thread_candidate(const RowView& row, unsigned threshold, const RowDraw& draw) {
    const float lower = logf(__uint_as_float(threshold)) - 1e-3F;
    Candidate best{0.0F, 0.0F, 0, row.valid};
    for (int first = 4 * int(threadIdx.x); first < row.valid; first += 4 * draw_threads) {
        float x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            x[i] = first + i < row.valid ? row.exponent(first + i) : -INFINITY;
        if (fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3])) < lower) continue;
        const uint4 random = philox(unsigned(first) / 4, draw.output_index, draw.seed);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (x[i] < lower) continue;
            const float weight = weight_of(x[i]);
            if (__float_as_uint(weight) < threshold) continue;
            const unsigned bits = word(random, i);
            // E ≥ 1 − u: most tokens are refused without a logarithm.
            if (weight < best.score * ((float(~bits) + 0.5F) * 0x1p-32F) * (1 - near)) continue;
            const float score = quick_score(weight, bits);
            if (score < best.score * (1 - near)) continue;
            const bool close = score <= best.score * (1 + near);
            if (close && exact_score(weight, bits) <= exact_score(best.weight, best.bits)) continue;
            best = {score, weight, bits, first + i};
        }
    }
    return best;
}

__device__ int block_draw(Scratch& s, const RowView& row, unsigned threshold, const RowDraw& draw) {
    const Candidate own = thread_candidate(row, threshold, draw);
    const int lane = int(threadIdx.x) % warp;
    const Best quick = warp_best({own.score, own.id});
    if (lane == 0) s.best[threadIdx.x / warp] = quick;
    __syncthreads();
    const float top = warp_best(s.best[lane]).value;
    double score = own.score >= top * (1 - near) ? exact_score(own.weight, own.bits) : 0;
    int id = own.id;
    const auto reduce = [&] {
        for (int step = warp / 2; step > 0; step /= 2) {
            const double other = __shfl_xor_sync(all_lanes, score, step);
            const int other_id = __shfl_xor_sync(all_lanes, id, step);
            if (other > score || (other == score && other_id < id)) {
                score = other;
                id = other_id;
            }
        }
    };
    reduce();
    if (lane == 0) {
        s.scores[threadIdx.x / warp] = score;
        s.ids[threadIdx.x / warp] = id;
    }
    __syncthreads();
    score = s.scores[lane];
    id = s.ids[lane];
    reduce();
    return id;
}

__global__ void __launch_bounds__(draw_threads)
    draw_kernel(const RowDraw* draws, Tensor logits, int valid, float scale, float softcap,
                const RowPart* parts, int part_count, int* drawn) {
    __shared__ Scratch s;
    static_assert(draw_warps == warp, "one warp looks at what all warps found");
    const int row_index = int(blockIdx.x);
    const RowDraw draw = draws[row_index];
    Best best{-INFINITY, valid};
    int broken = 0;
    for (int p = 0; p < part_count; ++p) {
        const RowPart part = parts[row_index * part_count + p];
        best = better(best, {part.largest, part.id});
        broken |= part.broken;
    }
    if (draw.kind != DrawKind::random || broken != 0) {
        const bool greedy = draw.kind == DrawKind::greedy && broken == 0;
        if (threadIdx.x == 0) drawn[row_index] = greedy ? best.id : -1;
        return;
    }
    RowView row{static_cast<const float*>(logits.data) + row_index * logits.row_stride,
                valid,
                scale,
                softcap,
                0.0F,
                draw.inverse_temperature};
    row.largest = row.scaled(best.value);
    unsigned threshold = max(lowest_bits, __float_as_uint(draw.min_p));
    if (draw.top_k > 0 && draw.top_k < valid)
        threshold = max(threshold, threshold_bits(s, row, false, Amount(draw.top_k), 1, 0));
    if (draw.top_p < 1) threshold = threshold_bits(s, row, true, 0, draw.top_p, threshold);
    const int id = block_draw(s, row, threshold, draw);
    if (threadIdx.x == 0) drawn[row_index] = id;
}

}  // namespace

void draw(cudaStream_t stream, const RowDraw* draws, const DrawArgs& args, Tensor logits, RowPart* parts,
          int* drawn) {
    assert(args.valid_cols > 0 && args.valid_cols <= logits.cols && logits.rows > 0);
    const int valid = int(args.valid_cols);
    const int count = draw_parts(logits.rows, valid);
    const dim3 grid{unsigned(count), unsigned(logits.rows)};
    part_kernel<<<grid, part_threads, 0, stream>>>(draws, logits, valid, parts);
    check_launch("draw, largest logits");
    draw_kernel<<<unsigned(logits.rows), draw_threads, 0, stream>>>(draws, logits, valid, args.logits_scale,
                                                                    args.softcap, parts, count, drawn);
    check_launch("draw");
}

}  // namespace recto::cuda
