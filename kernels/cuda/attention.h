// The attention kernels of sm_80 and newer: what their launches are given. kernels.h has the operation.
#pragma once
#include <cuda_runtime.h>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/kernels.h"

namespace recto::cuda {

struct AttentionHeads {
    int kv_heads, group;
    int head_groups;       // of at most decode_heads heads, within a group
    float scale, softcap;  // as AttentionArgs
    int window;
};

struct DecodeParameters {
    BatchView batch;
    AttentionHeads heads;
    KvView kv;
    const void* q;  // [rows, heads * head_dim], rows q_stride elements apart
    void* out;
    long long q_stride, out_stride;
    DType activation;  // of q and out: f16 or bf16
    AttentionWorkspace workspace;
    bool after;  // starts when the kernel before has ended; see AttentionPlan::reads_much
};

struct PrefillParameters {
    BatchView batch;
    AttentionHeads heads;
    KvView kv;
    const void* q;
    void* out;
    long long q_stride, out_stride;
    DType activation;
};

// Whether kernels for this head size are compiled.
constexpr bool tiled_head_dim(int head_dim) {
    return head_dim == 64 || head_dim == 80 || head_dim == 96 || head_dim == 128 || head_dim == 256;
}

// One file a cache type, so that they compile side by side.
void decode_f16(cudaStream_t stream, const DecodeParameters& p, int blocks);
void decode_bf16(cudaStream_t stream, const DecodeParameters& p, int blocks);
void decode_e4m3(cudaStream_t stream, const DecodeParameters& p, int blocks);
void prefill_f16(cudaStream_t stream, const PrefillParameters& p, int tiles);
void prefill_bf16(cudaStream_t stream, const PrefillParameters& p, int tiles);
void prefill_e4m3(cudaStream_t stream, const PrefillParameters& p, int tiles);

}  // namespace recto::cuda
