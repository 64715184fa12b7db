// Who computes what in a step's attention, decided on the host from the step's lengths and carried in its
// packet.
//
// Rows that are their sequence's only one this step (decode) are cut along the context, so that the card is
// full however few they are (flash-decoding: Dao, Haziza, Massa and Sizov 2023); a fixed grid walks the list,
// so that a captured graph serves any lengths. Longer chunks (prefill) are cut into tiles of queries.
#pragma once
#include <cstddef>
#include <vector>

#include "kernels/batch.h"

namespace recto::cuda {

// Heads of one group that one pass over K and V serves: the columns of mma.m16n8k16.
constexpr int decode_heads = 8;
constexpr int decode_threads = 128;
constexpr int decode_chunk = 16;  // tokens a warp takes at a time
constexpr int most_splits = 128;  // of one row

// Blocks that registers let a multiprocessor hold (attention_decode.cuh is compiled for it).
constexpr int decode_blocks_per_multiprocessor(int head_dim) {
    return head_dim <= 128 ? 3 : 2;
}

constexpr int prefill_threads = 128;
// Rows of a prefill block: (query, head of the group) pairs, heads innermost.
constexpr int prefill_rows(int head_dim) {
    return head_dim <= 128 ? 128 : 64;
}

// Share `split` of `splits` of one row's context. With splits > 1 its result is partial: number
// first_partial + split, times the head groups.
struct DecodeItem {
    int row, split, splits, first_partial;
};

// Packed rows first_packed … of the chunk of `queries` rows from `first_row` on.
struct PrefillTile {
    int sequence, first_row, queries, first_packed;
};

struct AttentionShape {
    HeadShape heads;
    int multiprocessors = 0;

    int group() const { return heads.heads / heads.kv_heads; }
    // What one item of the list is launched for: a KV head and at most decode_heads of its group.
    int units() const { return heads.kv_heads * ((group() + decode_heads - 1) / decode_heads); }
    int unit_heads() const { return group() < decode_heads ? group() : decode_heads; }
    int decode_blocks() const { return multiprocessors * decode_blocks_per_multiprocessor(heads.head_dim); }
    // Partial results (splits of a row times units) that there is room for.
    int most_partials() const { return 8 * decode_blocks(); }
    int most_decode_items(const BatchLimits& limits) const {
        return limits.max_sequences + most_partials() / units();
    }
    int most_prefill_tiles(const BatchLimits& limits) const {
        return limits.max_rows * group() / prefill_rows(heads.head_dim) + limits.max_sequences;
    }
};

struct AttentionPlan {
    std::vector<DecodeItem> decode;    // longest share first
    std::vector<PrefillTile> prefill;  // longest context first
    // The decode rows' contexts are so long together that reading them wants the first-level cache (launch.h)
    // more than an early start: 217 to 239 us a layer of Llama-2-7B at 256 sequences of 180 tokens became
    // 205.
    bool reads_much = false;
};
AttentionPlan plan_attention(const StepBatch& step, const AttentionShape& shape);

}  // namespace recto::cuda
