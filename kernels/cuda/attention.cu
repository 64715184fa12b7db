// Rotary embedding with the write into the KV cache, and paged attention: one block a row and head.
#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace recto::cuda {
namespace {

constexpr int attention_threads = 128;
constexpr int tile_tokens = 128;  // scores held at a time
constexpr int max_head_dim = 512;

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

// One head of one row: optional RMSNorm over the head, then the rotation. All threads of the block take part.
__device__ void norm_and_rotate(const Tensor& qkv, long long head, int head_dim, const float* norm, float eps, const float* table,
                                int rotary_dims, float* shared_head, float* scratch) {
    float square = 0.0F;
    for (int d = int(threadIdx.x); d < head_dim; d += int(blockDim.x)) {
        const float v = load(qkv.data, head + d, qkv.dtype);
        shared_head[d] = v;
        square += v * v;
    }
    if (norm) {
        const float inverse = rsqrtf(block_sum(square, scratch) / float(head_dim) + eps);
        for (int d = int(threadIdx.x); d < head_dim; d += int(blockDim.x))
            shared_head[d] = shared_head[d] * inverse * norm[d];
    }
    __syncthreads();
    const int pairs = rotary_dims / 2;
    for (int d = int(threadIdx.x); d < head_dim; d += int(blockDim.x)) {
        float value = shared_head[d];
        if (d < pairs)
            value = shared_head[d] * table[d] - shared_head[d + pairs] * table[pairs + d];
        else if (d < rotary_dims)
            value = shared_head[d] * table[d - pairs] + shared_head[d - pairs] * table[d];
        store(qkv.data, head + d, qkv.dtype, value);
    }
    __syncthreads();
}

__global__ void rope_store_kernel(const int* slots, RopeStoreArgs args, Tensor table, Tensor qkv, KvView kv) {
    __shared__ float shared_head[max_head_dim];
    __shared__ float scratch[33];
    const int row = int(blockIdx.x);
    const int index = int(blockIdx.y);  // heads, then K heads, then V heads
    const int dim = args.shape.head_dim;
    const long long head = (long long)row * qkv.row_stride + (long long)index * dim;
    const float* angles = static_cast<const float*>(table.data) + (long long)row * table.row_stride;
    const bool is_q = index < args.shape.heads;
    const bool is_k = !is_q && index < args.shape.heads + args.shape.kv_heads;
    if (is_q || is_k)
        norm_and_rotate(qkv, head, dim, is_q ? args.q_norm : args.k_norm, args.norm_eps, angles, args.rotary_dims,
                        shared_head, scratch);
    if (is_q) return;
    const int kv_head = index - args.shape.heads - (is_k ? 0 : args.shape.kv_heads);
    const int slot = slots[row];
    const long long at = (slot / kv.block_size) * kv.block_stride +
                         ((long long)kv_head * kv.block_size + slot % kv.block_size) * dim;
    for (int d = int(threadIdx.x); d < dim; d += int(blockDim.x))
        store(is_k ? kv.k : kv.v, at + d, kv.dtype, load(qkv.data, head + d, qkv.dtype));
}

// Running {max, sum, out} over tiles of the context from position 0 (Milakov and Gimelshein 2018, as in
// FlashAttention).
__global__ void attention_kernel(BatchView batch, AttentionArgs args, Tensor q, KvView kv, Tensor out) {
    __shared__ float query[max_head_dim];
    __shared__ float result[max_head_dim];
    __shared__ float scores[tile_tokens];
    __shared__ float scratch[33];
    const int row = int(blockIdx.x);
    const int head = int(blockIdx.y);
    const int dim = args.shape.head_dim;
    const int kv_head = head / (args.shape.heads / args.shape.kv_heads);
    const int position = batch.positions[row];
    const int* blocks = batch.block_tables + (long long)batch.row_sequence[row] * batch.table_stride;
    const long long from = (long long)row * q.row_stride + (long long)head * dim;
    for (int d = int(threadIdx.x); d < dim; d += attention_threads) {
        query[d] = load(q.data, from + d, q.dtype) * args.scale;
        result[d] = 0.0F;
    }
    const int first = args.window > 0 ? max(0, position - args.window + 1) : 0;
    float top = -INFINITY;
    float sum = 0.0F;
    for (int start = first / tile_tokens * tile_tokens; start <= position; start += tile_tokens) {
        __syncthreads();
        const int token = start + int(threadIdx.x);
        float score = -INFINITY;
        if (token >= first && token <= position) {
            const long long at = blocks[token / kv.block_size] * kv.block_stride +
                                 ((long long)kv_head * kv.block_size + token % kv.block_size) * dim;
            score = 0.0F;
            for (int d = 0; d < dim; ++d)
                score = fmaf(query[d], load(kv.k, at + d, kv.dtype), score);
            if (args.softcap > 0.0F) score = args.softcap * tanhf(score / args.softcap);
        }
        scores[threadIdx.x] = score;
        __syncthreads();
        float tile_top = top;
        for (int i = 0; i < tile_tokens; ++i)
            tile_top = fmaxf(tile_top, scores[i]);
        const float p = score == -INFINITY ? 0.0F : expf(score - tile_top);
        const float keep = top == -INFINITY ? 0.0F : expf(top - tile_top);
        const float tile_sum = block_sum(p, scratch);
        scores[threadIdx.x] = p;
        __syncthreads();
        const int count = min(tile_tokens, position - start + 1);
        for (int d = int(threadIdx.x); d < dim; d += attention_threads) {
            float value = result[d] * keep;
            for (int i = 0; i < count; ++i) {
                if (scores[i] == 0.0F) continue;  // also skips blocks that the window has given back
                const int at_token = start + i;
                const long long at = blocks[at_token / kv.block_size] * kv.block_stride +
                                     ((long long)kv_head * kv.block_size + at_token % kv.block_size) * dim;
                value = fmaf(scores[i], load(kv.v, at + d, kv.dtype), value);
            }
            result[d] = value;
        }
        sum = sum * keep + tile_sum;
        top = tile_top;
    }
    const long long to = (long long)row * out.row_stride + (long long)head * dim;
    for (int d = int(threadIdx.x); d < dim; d += attention_threads)
        store(out.data, to + d, out.dtype, result[d] / sum);
}

}  // namespace

void rope_table(cudaStream_t stream, const BatchView& batch, const Frequencies& f, float factor, Tensor out) {
    assert(out.cols / 2 <= max_rotary_pairs);
    launch("rope_table", rope_table_kernel, dim3(unsigned(out.rows)), dim3(max_rotary_pairs), 0, stream,
           batch.positions, f, factor, out);
}

void rope_store(cudaStream_t stream, const BatchView& batch, const RopeStoreArgs& args, Tensor table,
                Tensor qkv, const KvView& kv) {
    assert(args.shape.head_dim <= max_head_dim);
    const dim3 grid(unsigned(qkv.rows), unsigned(args.shape.heads + 2 * args.shape.kv_heads));
    rope_store_kernel<<<grid, 64, 0, stream>>>(batch.slots, args, table, qkv, kv);
    check_launch("rope_store");
}

void attention(cudaStream_t stream, const BatchView& batch, const AttentionArgs& args, Tensor q,
               const KvView& kv, Tensor out) {
    assert(args.shape.head_dim <= max_head_dim && attention_threads == tile_tokens);
    const dim3 grid(unsigned(q.rows), unsigned(args.shape.heads));
    attention_kernel<<<grid, attention_threads, 0, stream>>>(batch, args, q, kv, out);
    check_launch("attention");
}

}  // namespace recto::cuda
