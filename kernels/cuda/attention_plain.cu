// Paged attention for what the tiled kernels do not serve: FP32 activations or cache, head sizes they are not
// compiled for, cards before sm_80. One block a row and head, written to be read.
#include <cassert>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace recto::cuda {
namespace {

constexpr int attention_threads = 128;
constexpr int tile_tokens = 128;  // scores held at a time
constexpr int max_head_dim = 512;

// Running {max, sum, out} over tiles of the context from position 0 (Milakov and Gimelshein 2018, as in
// FlashAttention).
__global__ void attention_kernel(BatchView batch, AttentionArgs args, Tensor q, KvView kv, Tensor out) {
    __shared__ float query[max_head_dim];
    __shared__ float result[max_head_dim];
    __shared__ float scores[tile_tokens];
    __shared__ float scratch[33];
    let_next_start();
    wait_for_previous();
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

void attention_plain(cudaStream_t stream, const BatchView& batch, const AttentionArgs& args, Tensor q,
                     const KvView& kv, Tensor out) {
    assert(args.shape.head_dim <= max_head_dim && attention_threads == tile_tokens);
    const dim3 grid(unsigned(q.rows), unsigned(args.shape.heads));
    launch("plain attention", attention_kernel, grid, dim3(attention_threads), 0, stream, batch, args, q, kv,
           out);
}

}  // namespace recto::cuda
