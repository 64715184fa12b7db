// What one step computes, as plain host arrays. The scheduler fills it; a backend uploads it in one packet.
//
// A step has `rows` tokens to compute. Rows of one sequence are neighbours, in ascending position. There is
// no prefill mode and no decode mode: a decoding sequence has one row, a prefilling one has a chunk.
#pragma once
#include <cstdint>
#include <vector>

// Qt makes a keyword of `slots`; the tests include Qt headers before this one.
#pragma push_macro("slots")
#undef slots

namespace recto {

struct StepBatch {
    std::vector<std::int32_t> token_ids;     // [rows]
    std::vector<std::int32_t> positions;     // [rows] position of the token in its sequence
    std::vector<std::int32_t> row_sequence;  // [rows] index into the per-sequence arrays below
    std::vector<std::int32_t> slots;  // [rows] physical slot that K and V go to: block * block_size + offset
    std::vector<std::int32_t> query_start;  // [sequences + 1] first row of each sequence
    std::vector<std::int32_t>
        context_tokens;  // [sequences] tokens in the KV cache once this step's are written
    std::vector<std::int32_t> block_tables;  // [sequences, max_blocks] physical block ids, row-major
    std::int32_t max_blocks = 0;             // row length of block_tables
    std::vector<std::int32_t> logit_rows;    // [outputs] rows whose logits are wanted, ascending

    std::int32_t rows() const { return std::int32_t(token_ids.size()); }
    std::int32_t sequences() const { return std::int32_t(context_tokens.size()); }
    std::int32_t outputs() const { return std::int32_t(logit_rows.size()); }
};

struct HeadShape {
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
};

// The largest step a workspace is made for.
struct BatchLimits {
    std::int32_t max_rows = 512;  // tokens a step
    std::int32_t max_sequences = 16;
    std::int32_t max_outputs = 16;  // rows that need logits
    std::int32_t max_blocks = 0;    // blocks of the longest sequence
    HeadShape heads;  // of the steps' attention, whose work is planned per step; zeros where there is none
};

}  // namespace recto

#pragma pop_macro("slots")
