// Mixtures of experts: the choice, and products with the chosen experts' weights. Which expert a row meets is
// data that the kernels read, so a captured graph serves every choice.
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/weight_math.cuh"

namespace recto::cuda {
namespace {

constexpr int warps_a_block = 8;  // outputs

__device__ float warp_max(float v) {
    for (int step = warp / 2; step > 0; step /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFU, v, step));
    return v;
}

// Scores in the order of choice: larger first, the lower number first among equals. NaN counts as the
// smallest.
__device__ bool before(float a, int a_id, float b, int b_id) {
    return a > b || (a == b && a_id < b_id);
}

// One warp a row. Shared memory: [k] chosen numbers.
__global__ void route_kernel(Tensor logits, bool renormalize, ExpertChoice choice) {
    extern __shared__ int chosen[];
    const int lane = int(threadIdx.x), k = choice.per_row, experts = int(logits.cols);
    const float* row = static_cast<const float*>(logits.data) + (long long)blockIdx.x * logits.row_stride;
    auto score = [&](int e) { return isnan(row[e]) ? -INFINITY : row[e]; };
    float last = INFINITY;
    int last_id = -1;
    for (int s = 0; s < k; ++s) {
        float best = -INFINITY;
        int best_id = experts;
        for (int e = lane; e < experts; e += warp) {
            const float v = score(e);
            const bool left = s == 0 || before(last, last_id, v, e);
            if (left && before(v, e, best, best_id)) {
                best = v;
                best_id = e;
            }
        }
        for (int step = warp / 2; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(0xFFFFFFFFU, best, step);
            const int other_id = __shfl_xor_sync(0xFFFFFFFFU, best_id, step);
            if (before(other, other_id, best, best_id)) {
                best = other;
                best_id = other_id;
            }
        }
        last = best;
        last_id = best_id;
        if (lane == 0) {  // ascending by number
            int at = s;
            for (; at > 0 && chosen[at - 1] > best_id; --at)
                chosen[at] = chosen[at - 1];
            chosen[at] = best_id;
        }
    }
    __syncwarp();
    float top = -INFINITY;
    bool finite = true;
    for (int e = lane; e < experts; e += warp) {
        finite = finite && isfinite(row[e]);
        top = fmaxf(top, row[e]);
    }
    top = warp_max(top);
    finite = __all_sync(0xFFFFFFFFU, finite);
    float total = 0.0F;
    for (int i = lane; i < (renormalize ? k : experts); i += warp)
        total += expf(row[renormalize ? chosen[i] : i] - top);
    total = warp_sum(total);
    for (int s = lane; s < k; s += warp) {
        const long long at = (long long)blockIdx.x * k + s;
        choice.ids[at] = chosen[s];
        choice.weights[at] = finite ? expf(row[chosen[s]] - top) / total : NAN;
    }
}

// x · W[row] + bias, on every lane
__device__ float dot(const Tensor& x, long long first, const WeightView& w, int row) {
    const PartView& part = part_of(w, row);
    float sum = 0.0F;
    for (int i = int(threadIdx.x) % warp; i < w.cols; i += warp)
        sum = fmaf(weight_at(part, row, i, w.cols),
                   load(x.data, first + (part.order ? part.order[i] : i), x.dtype), sum);
    return warp_sum(sum) + (part.bias ? part.bias[row] : 0.0F);
}

// Block (slot, run of outputs), a warp an output.
__global__ void gate_up_kernel(Tensor x, ExpertChoice choice, const WeightView* experts, Epilogue epilogue,
                               Tensor out) {
    const long long slot = blockIdx.x;
    const int output = int(blockIdx.y) * warps_a_block + int(threadIdx.x) / warp;
    if (output >= out.cols) return;
    const WeightView& w = experts[choice.ids[slot]];
    const long long in = slot / choice.per_row * x.row_stride;
    const float g = dot(x, in, w, output);
    const float up = dot(x, in, w, output + int(out.cols));
    if (threadIdx.x % warp == 0)
        store(out.data, slot * out.row_stride + output, out.dtype, gate(g, epilogue) * up);
}

// Block (row, run of outputs), a warp an output.
__global__ void down_kernel(Tensor x, ExpertChoice choice, const WeightView* experts, Tensor out) {
    const long long row = blockIdx.x;
    const int output = int(blockIdx.y) * warps_a_block + int(threadIdx.x) / warp;
    if (output >= out.cols) return;
    float* to = static_cast<float*>(out.data) + row * out.row_stride + output;
    float sum = *to;
    for (int s = 0; s < choice.per_row; ++s) {
        const long long slot = row * choice.per_row + s;
        const float one = dot(x, slot * x.row_stride, experts[choice.ids[slot]], output);
        sum = __fadd_rn(sum, __fmul_rn(choice.weights[slot], one));
    }
    if (threadIdx.x % warp == 0) *to = sum;
}

dim3 grid_of(std::int64_t rows, std::int64_t outputs) {
    return {unsigned(rows), unsigned((outputs + warps_a_block - 1) / warps_a_block)};
}

}  // namespace

void route(cudaStream_t stream, Tensor logits, bool renormalize, const ExpertChoice& choice) {
    assert(logits.rows == choice.rows && choice.per_row > 0 && choice.per_row <= logits.cols);
    const std::size_t shared = std::size_t(choice.per_row) * sizeof(int);
    route_kernel<<<unsigned(logits.rows), warp, shared, stream>>>(logits, renormalize, choice);
    check_launch("route");
}

void expert_gate_up(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const WeightView* experts,
                    const WeightView& shape, Epilogue epilogue, Tensor out) {
    assert(epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul);
    assert(x.rows == choice.rows && x.cols == shape.cols && out.cols == shape.rows / 2);
    assert(out.rows == x.rows * choice.per_row);
    gate_up_kernel<<<grid_of(out.rows, out.cols), warps_a_block * warp, 0, stream>>>(x, choice, experts,
                                                                                     epilogue, out);
    check_launch("expert_gate_up");
}

void expert_down(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const WeightView* experts,
                 const WeightView& shape, Tensor out) {
    assert(out.rows == choice.rows && x.rows == out.rows * choice.per_row);
    assert(x.cols == shape.cols && out.cols == shape.rows);
    down_kernel<<<grid_of(out.rows, out.cols), warps_a_block * warp, 0, stream>>>(x, choice, experts, out);
    check_launch("expert_down");
}

}  // namespace recto::cuda
