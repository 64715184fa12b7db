// The plain CUDA kernels: one per operation of Backend, written to be read. Each function enqueues on
// `stream`.
#pragma once
#include <cuda_runtime.h>

#include "kernels/backend.h"
#include "kernels/cuda/packed_weight.h"

namespace recto::cuda {

// Device pointers of a DeviceBatch; the block tables' rows are `table_stride` apart.
struct BatchView {
    const int* token_ids;
    const int* positions;
    const int* row_sequence;
    const int* slots;
    const int* block_tables;
    const int* logit_rows;
    int table_stride;
};

// K or V of one layer: element (block, kv_head, slot, d) lies at
//     base + block * block_stride + (kv_head * block_size + slot) * head_dim + d        (elements)
struct KvView {
    void* k;
    void* v;
    long long block_stride;
    int block_size, head_dim;
    DType dtype;
};

// The plain layout of packed_weight.h out of a part's planes; `part` holds where.
void keep_plain(cudaStream_t stream, const LogicalPlanes& planes, const PartView& part);

constexpr int max_rotary_pairs = 256;
struct Frequencies {  // by value in the launch: a captured graph keeps its own copy
    float value[max_rotary_pairs];
};

void embed(cudaStream_t stream, const BatchView& batch, const WeightView& table, float scale, Tensor out);
void rms_norm(cudaStream_t stream, Tensor x, const float* weight, float eps, Tensor out);
void linear(cudaStream_t stream, Tensor x, const WeightView& weight, Epilogue epilogue, Tensor out);
void rope_table(cudaStream_t stream, const BatchView& batch, const Frequencies& f, float factor, Tensor out);
void rope_store(cudaStream_t stream, const BatchView& batch, const RopeStoreArgs& args, Tensor table,
                Tensor qkv, const KvView& kv);
void attention(cudaStream_t stream, const BatchView& batch, const AttentionArgs& args, Tensor q,
               const KvView& kv, Tensor out);
void gather_rows(cudaStream_t stream, const BatchView& batch, Tensor x, Tensor out);
void argmax(cudaStream_t stream, Tensor logits, int valid_cols, int* ids);
void add(cudaStream_t stream, Tensor x, Tensor delta);

// Mixtures of experts. `experts` is device memory, one view an expert; `shape` is any one of them (rows,
// cols).
void route(cudaStream_t stream, Tensor logits, bool renormalize, const ExpertChoice& choice);
void expert_gate_up(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const WeightView* experts,
                    const WeightView& shape, Epilogue epilogue, Tensor out);
void expert_down(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const WeightView* experts,
                 const WeightView& shape, Tensor out);

}  // namespace recto::cuda
