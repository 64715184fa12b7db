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

// How the device draws the token of one output row (Backend::draw).
enum class DrawKind : std::int32_t {
    none,    // not on the device: the host reads the row's logits
    greedy,  // the largest logit, the lowest id of equal ones
    random,
};

// The rules are those of engine/sample/survivors.h: min_p, then top_k, then top_p, then the argmax of w_i /
// E_i with w_i = exp((logit_i − largest) · inverse_temperature) and E_i = −ln of the token's own uniform
// number.
struct RowDraw {
    double top_p = 1.0;              // 1: off
    std::uint64_t seed = 0;          // with output_index the key of the uniform numbers (kernels/philox.h)
    std::uint32_t output_index = 0;  // of the token in its output
    float inverse_temperature = 1.0F;
    float min_p = 0.0F;      // 0: off
    std::int32_t top_k = 0;  // ≤ 0: off
    DrawKind kind = DrawKind::none;
    std::int32_t reserved = 0;
};

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

    // The rest is for backends that draw tokens (Backend::asynchronous); empty elsewhere.
    std::vector<RowDraw> draws;  // [outputs], or empty: none
    // [rows], or empty: −1, or the row's token is the one that the step before drew for this one of its
    // outputs.
    std::vector<std::int32_t> token_from;
    // [sequences], or empty: a number that means this sequence and no other, ever. A block table that the
    // device knows by it is not uploaded again.
    std::vector<std::uint64_t> sequence_ids;

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
