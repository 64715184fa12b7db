// Which attention kernel serves what: a pure function of shapes and types, and the launches.
#include "kernels/cuda/attention.h"

#include <cassert>

#include "kernels/cuda/attention_state.h"

namespace recto::cuda {

namespace {

bool sixteen_bit(DType t) {
    return t == DType::f16 || t == DType::bf16;
}

}  // namespace

bool tiled_attention_serves(bool planned, DType activation, DType cache, int head_dim) {
    return planned && tiled_head_dim(head_dim) && sixteen_bit(activation) &&
           (sixteen_bit(cache) || cache == DType::f8_e4m3);
}

void attention(cudaStream_t stream, const BatchView& batch, const AttentionState& state,
               const AttentionArgs& args, Tensor q, const KvView& kv, Tensor out) {
    if (!tiled_attention_serves(state.planned(), q.dtype, kv.dtype, args.shape.head_dim)) {
        attention_plain(stream, batch, args, q, kv, out);
        return;
    }
    assert(out.dtype == q.dtype && args.shape.heads == state.shape().heads.heads &&
           args.shape.kv_heads == state.shape().heads.kv_heads &&
           args.shape.head_dim == state.shape().heads.head_dim);
    const int group = state.shape().group();
    const AttentionHeads heads{args.shape.kv_heads, group,        state.shape().units() / args.shape.kv_heads,
                               args.scale,          args.softcap, args.window};
    const auto pick = [&](auto f16, auto bf16, auto e4m3) {
        return kv.dtype == DType::f16 ? f16 : kv.dtype == DType::bf16 ? bf16 : e4m3;
    };
    const AttentionPlan& plan = state.plan();
    if (!plan.prefill.empty()) {
        const PrefillParameters p{batch, heads, kv, q.data, out.data, q.row_stride, out.row_stride, q.dtype};
        pick(prefill_f16, prefill_bf16, prefill_e4m3)(stream, p, int(plan.prefill.size()));
    }
    if (!plan.decode.empty()) {
        const DecodeParameters p{batch,          heads,    kv,
                                 q.data,         out.data, q.row_stride,
                                 out.row_stride, q.dtype,  state.workspace(),
                                 plan.reads_much};
        pick(decode_f16, decode_bf16, decode_e4m3)(stream, p, state.shape().decode_blocks());
    }
}

}  // namespace recto::cuda
