// How large each piece of a card's scratch memory is (kernels/card_scratch.h). Those who allocate ask here,
// so that the sum is what they take.
#pragma once
#include <limits>

#include "kernels/card_scratch.h"

namespace recto::cuda {

// Dense products of more rows than this go through cuBLASLt.
constexpr std::int64_t own_dense_rows = 32;
// Where products have no wgmma, quantized ones of more rows than this too, by way of 16-bit rows: there
// unpacking once for every 64 rows costs more than writing the weight out and reading it back.
constexpr std::int64_t own_general_rows = 128;
constexpr std::int64_t own_quantized_rows(bool hopper) {
    return hopper ? std::numeric_limits<std::int64_t>::max() : own_general_rows;
}

constexpr std::size_t library_workspace_bytes = 64U << 20;  // what NVIDIA advises for Hopper is 32 MiB
constexpr std::size_t counter_count = std::size_t(1) << 16;

// Zero: not needed for that many rows.
struct LinearSizes {
    std::size_t partials = 0, counters = 0, library = 0;
    std::size_t rows = 0;  // copied inputs, then pairs
    std::size_t unpacked = 0;
};
LinearSizes linear_sizes(const CardTraits& card, const ProductNeeds& needs, std::int64_t max_rows);

struct EightSizes {
    std::size_t x8 = 0, x_scale = 0, w8 = 0, sums = 0;
};
EightSizes eight_sizes(const ProductNeeds& needs, std::int64_t max_rows);
// Groups of 16 rows of a weight with `inputs` padded columns that are rounded and multiplied at a time.
int eight_slice_groups(std::int64_t inputs, int row_groups);

struct ExpertSizes {
    std::int64_t most_slots = 0;  // of a slice
    std::size_t sorted = 0, products = 0, inputs = 0;
};
ExpertSizes expert_sizes(const ProductNeeds& needs, std::int64_t max_rows);
constexpr int most_expert_splits = 8;
constexpr std::int64_t sorted_slot_bytes = 16;  // a slot and its ExpertTile

constexpr std::size_t attention_claims = 2;  // counts of a launch

// Where shares of one row meet (AttentionState), and the plan of a step.
struct AttentionSizes {
    int items = 0, tiles = 0;  // at most, of a plan
    std::size_t plan_ints = 0;
    std::size_t out = 0, states = 0, arrived = 0;  // the last with attention_claims at its end
};
AttentionSizes attention_sizes(const BatchLimits& limits, int multiprocessors);

struct PacketSizes {
    std::size_t fixed = 0;    // the arrays that kernels read
    std::size_t landing = 0;  // where the packet arrives
};
PacketSizes packet_sizes(const BatchLimits& limits, std::size_t plan_ints);
constexpr int max_row_parts = 16;           // of a row of logits
constexpr std::size_t row_part_bytes = 12;  // RowPart

}  // namespace recto::cuda
