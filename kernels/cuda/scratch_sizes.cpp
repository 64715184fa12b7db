#include "kernels/cuda/scratch_sizes.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/backend.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/tile_cut.h"

namespace recto {
namespace cuda {
namespace {

constexpr int widest_tile = 256;
// Of 16-bit rows at a time: enough for full-speed products, and a part of it is still in the second-level
// cache when it is read.
constexpr std::int64_t most_unpacked_bytes = std::int64_t(64) << 20;

// A slice of 8-bit rows and the rows of x that meet it stay in the 50 MB of an H200's L2; a multiple of 1,024
// outputs fills the card's 132 SMs with tiles of 128 x 256.
constexpr std::int64_t most_slice_bytes = 32 << 20;
constexpr int slice_step = 1024;
constexpr std::size_t eight_sum_bytes = 32 << 20;
constexpr int group_rows = 16;

constexpr std::int64_t most_expert_slots = 16384;                   // of a slice
constexpr std::int64_t most_expert_bytes = std::int64_t(64) << 20;  // of each memory

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

}  // namespace

AttentionSizes attention_sizes(const BatchLimits& limits, int multiprocessors) {
    const AttentionShape shape{limits.heads, multiprocessors};
    const auto partials = std::size_t(shape.most_partials());
    const std::size_t states = partials * std::size_t(shape.unit_heads());
    AttentionSizes s;
    s.items = shape.most_decode_items(limits);
    s.tiles = shape.most_prefill_tiles(limits);
    s.plan_ints = std::size_t(4 * (1 + s.items + s.tiles));
    s.out = states * std::size_t(limits.heads.head_dim) * sizeof(float);
    s.states = states * 2 * sizeof(float);
    s.arrived = (partials + attention_claims) * sizeof(int);
    return s;
}

LinearSizes linear_sizes(const CardTraits& card, const ProductNeeds& needs, std::int64_t max_rows) {
    LinearSizes s;
    s.partials = std::size_t(card.multiprocessors) * 2 * 2 * widest_tile / 2 * 128 * sizeof(float);
    s.counters = counter_count * sizeof(unsigned);
    if (card.library && max_rows > own_dense_rows) s.library = library_workspace_bytes;
    s.rows = std::size_t(max_rows) * std::size_t(needs.input + needs.pair) * 2 + 512;
    if (max_rows > own_quantized_rows(card.hopper)) s.unpacked = std::size_t(needs.unpacked_bytes);
    return s;
}

EightSizes eight_sizes(const ProductNeeds& needs, std::int64_t max_rows) {
    if (needs.eight_input == 0 || max_rows <= eight_bit_rows) return {};
    return {std::size_t(max_rows * needs.eight_input), std::size_t(max_rows) * sizeof(float),
            std::size_t(needs.eight_slice_bytes), eight_sum_bytes};
}

int eight_slice_groups(std::int64_t inputs, int row_groups) {
    const std::int64_t rows = std::max<std::int64_t>(most_slice_bytes / inputs / slice_step, 1) * slice_step;
    return std::min(int(rows / group_rows), row_groups);
}

ExpertSizes expert_sizes(const ProductNeeds& needs, std::int64_t max_rows) {
    if (needs.experts == 0) return {};
    ExpertSizes s;
    s.most_slots = std::min(max_rows * needs.experts, most_expert_slots);  // a row meets an expert once
    if (needs.expert_row_bytes > 0)
        s.most_slots = std::min(s.most_slots, most_expert_bytes / needs.expert_row_bytes);
    if (needs.expert_input > 0)
        s.most_slots = std::min(s.most_slots, most_expert_bytes / (2 * needs.expert_input));
    s.most_slots = std::max(s.most_slots, needs.experts);  // at least one row's
    s.sorted = std::size_t(s.most_slots * sorted_slot_bytes + 256);
    // Few rows share their products among several blocks, whose sums need the room.
    const std::int64_t shared =
        std::min(s.most_slots * most_expert_splits,
                 most_expert_bytes / std::max<std::int64_t>(needs.expert_row_bytes, 1));
    s.products = std::size_t(needs.expert_row_bytes * std::max(s.most_slots, shared));
    s.inputs = std::size_t(s.most_slots * needs.expert_input * 2);
    return s;
}

PacketSizes packet_sizes(const BatchLimits& limits, std::size_t plan_ints) {
    const auto rows = std::size_t(limits.max_rows), sequences = std::size_t(limits.max_sequences),
               outputs = std::size_t(limits.max_outputs);
    const std::size_t table_ints = sequences * std::size_t(limits.max_blocks);
    const std::size_t draw_ints = sizeof(RowDraw) / sizeof(int);
    constexpr std::size_t alignment = 256;  // of every array
    PacketSizes s;
    for (const std::size_t ints :
         {rows, rows, rows, rows, rows, outputs, sequences + 1, sequences, outputs, outputs * draw_ints,
          outputs * max_row_parts * (row_part_bytes / sizeof(int)), plan_ints, table_ints, table_ints})
        s.fixed += (ints * sizeof(int) + alignment - 1) / alignment * alignment;
    s.landing =
        (5 * rows + outputs * (1 + draw_ints) + 6 * sequences + 1 + table_ints + plan_ints) * sizeof(int);
    return s;
}

}  // namespace cuda

void expect_product(ProductNeeds& needs, const ProductShape& shape) {
    using namespace cuda;
    needs.input = std::max(needs.input, shape.cols);
    if (shape.gated) needs.pair = std::max(needs.pair, shape.rows);
    if (!shape.grouped) return;
    const std::int64_t outputs = shape.gated ? shape.rows / 2 : shape.rows;
    const std::int64_t blocks = ceil_div(outputs, shape.gated ? block_rows / 2 : block_rows);
    const std::int64_t block_bytes = block_rows * shape.cols * 2;
    needs.unpacked_bytes =
        std::max({needs.unpacked_bytes, block_bytes, std::min(most_unpacked_bytes, blocks * block_bytes)});
    if (!shape.eight) return;
    const std::int64_t inputs = ceil_div(shape.cols, chunk_k) * chunk_k;
    const int groups = int(ceil_div(outputs, group_rows)) * (shape.gated ? 2 : 1);
    needs.eight_input = std::max(needs.eight_input, inputs);
    needs.eight_slice_bytes =
        std::max(needs.eight_slice_bytes, eight_slice_groups(inputs, groups) * group_rows * inputs);
}

std::size_t product_scratch_bytes(const CardTraits& card, const ProductNeeds& needs, std::int64_t rows) {
    using namespace cuda;
    if (!card.tiles) return 0;
    const LinearSizes l = linear_sizes(card, needs, rows);
    const EightSizes e = eight_sizes(needs, rows);
    const ExpertSizes x = expert_sizes(needs, rows);
    std::size_t sum = 0;
    for (const std::size_t bytes : {l.partials, l.counters, l.library, l.rows, l.unpacked, e.x8, e.x_scale,
                                    e.w8, e.sums, x.sorted, x.products, x.inputs})
        sum += bytes;
    return sum;
}

std::size_t step_scratch_bytes(const CardTraits& card, const BatchLimits& limits) {
    using namespace cuda;
    AttentionSizes attention;
    if (card.tiles && limits.heads.heads > 0) attention = attention_sizes(limits, card.multiprocessors);
    const PacketSizes packet = packet_sizes(limits, attention.plan_ints);
    return attention.out + attention.states + attention.arrived + packet.fixed + packet.landing;
}

std::size_t card_scratch_bytes(const CardTraits& card, const ProductNeeds& needs, const BatchLimits& limits) {
    return product_scratch_bytes(card, needs, std::max(limits.max_rows, limits.max_outputs)) +
           step_scratch_bytes(card, limits);
}

}  // namespace recto
