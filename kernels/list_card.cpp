// Which kernel of a card serves which shape: the functions that choose, asked.
#include <algorithm>
#include <ostream>
#include <string>

#include "kernels/bench.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/choices.h"
#include "kernels/cuda/general_cut.h"
#include "kernels/cuda/program_room.h"
#include "kernels/cuda/scratch_sizes.h"

namespace recto {
namespace {

using namespace cuda;

std::string number(std::int64_t n) {
    return std::to_string(n);
}

std::string shared_by(int blocks, int run) {
    return blocks > 1 ? ", each shared by " + number(blocks) + " blocks of " + number(run) + " chunks" : "";
}

// Chunks are of 128 inputs.
std::string hopper_text(const TileShape& s) {
    if (s.slabs.grid > 0)
        return "mma.sync, " + number(s.slabs.grid) + " blocks of " + number(s.slabs.units) +
               " slabs of 16 outputs x " + number(s.tokens) + " rows";
    const std::string tiles =
        "wgmma, tiles of " + number(tile_rows) + " outputs x " + number(s.tokens) + " rows";
    if (s.run > 0 && s.splits == 0)
        return tiles + ", " + number(s.grid) + " blocks of " + number(s.run) + " chunks across tiles";
    return s.run > 0 ? tiles + shared_by(s.splits, s.run) : tiles + ", " + number(s.grid) + " blocks";
}

std::string general_text(const GeneralShape& s) {
    return "mma.sync, tiles of " + number(block_rows) + " outputs x " + number(s.tokens) + " rows" +
           shared_by(s.splits, s.run);
}

struct WeightKind {
    const char* name;
    TileKind kind;
};
constexpr WeightKind weight_kinds[] = {
    {"16-bit", TileKind::dense}, {"4-bit g32", TileKind::u4}, {"8-bit g32", TileKind::u8}};

std::string product_text(const CardTraits& card, const WeightKind& w, bool eight, int outputs, int inputs,
                         std::int64_t rows) {
    const int blocks = (outputs + block_rows - 1) / block_rows, chunks = (inputs + chunk_k - 1) / chunk_k;
    switch (choose_product(card, w.kind, eight, rows)) {
        case ProductKernel::plain:
            return "plain kernel";
        case ProductKernel::own: {
            if (!card.hopper)
                return general_text(choose_general_cut(blocks, chunks, rows, card.multiprocessors));
            TileProblem problem;
            problem.kind = w.kind;
            problem.blocks = blocks;
            problem.chunks = chunks;
            problem.rows = rows;
            return hopper_text(choose_cut(problem, card.multiprocessors));
        }
        case ProductKernel::library:
            return "cuBLASLt";
        case ProductKernel::unpacked: {
            ProductNeeds needs;
            expect_product(needs, {outputs, inputs, false, true});
            return "unpacked, " + number(needs.unpacked_bytes / (2 * inputs)) +
                   " outputs at a time, and cuBLASLt";
        }
        case ProductKernel::eight_bit: {
            const std::int64_t padded = std::int64_t(chunks) * chunk_k;
            return "rounded, " + number(eight_slice_groups(padded, (outputs + 15) / 16) * 16) +
                   " outputs at a time, and cuBLASLt";
        }
    }
    return {};
}

void list_products(const DeviceInfo& device, std::ostream& out) {
    constexpr int outputs = 4096;
    for (const bool eight : {false, true}) {
        if (eight && !device.eight_bit) continue;
        for (const WeightKind& w : weight_kinds) {
            if (eight && w.kind == TileKind::dense) continue;
            for (const int inputs : {4096, 11008})
                for (const std::int64_t rows : {1, 8, 16, 64, 256, 2048}) {
                    if (eight && rows <= eight_bit_rows) continue;  // as without
                    out << "linear " << w.name
                        << (eight ? ", " + activations_name(*device.eight_bit) : std::string()) << ", "
                        << outputs << "x" << inputs << ", rows " << rows << ": "
                        << product_text(device.card, w, eight, outputs, inputs, rows) << "\n";
                }
        }
    }
    if (device.card.tiles)
        out << "linear, float32 activations, widths that are no multiple of 8, or groups that are not 16, "
               "32, "
               "64, a multiple of 128 or a row: plain kernel\n";
}

void list_steps(const CardTraits& card, std::ostream& out) {
    if (!card.tiles) return;
    const ProgramCut cut = cut_product(false, true, 11008, 4096, card.multiprocessors);
    out << "decode steps of 1 to " << program_rows
        << " rows, weights of 16 bits or of 4 with groups of a multiple of 128, heads of 64 or 128 without "
           "norms: one kernel for up to "
        << most_program_steps
        << " products and attentions in a row whose inputs fit shared memory with the list of operations, at "
           "least "
        << least_products << " of them products (" << least_products_of_many_rows
        << " of three and four rows), " << card.multiprocessors
        << " blocks; of gate|up 22016x4096 in 4 bits each has " << cut.units_each << " to "
        << cut.units_each + (cut.units_more > 0 ? 1 : 0) << " of " << cut.units << " pairs of slabs\n";
}

StepBatch decode_step(int sequences, int tokens) {
    StepBatch step;
    step.query_start = {0};
    for (int s = 0; s < sequences; ++s) {
        step.positions.push_back(tokens - 1);
        step.context_tokens.push_back(tokens);
        step.query_start.push_back(s + 1);
    }
    return step;
}

StepBatch prefill_step(int tokens) {
    StepBatch step;
    for (int t = 0; t < tokens; ++t)
        step.positions.push_back(t);
    step.context_tokens = {tokens};
    step.query_start = {0, tokens};
    return step;
}

void list_attention(const CardTraits& card, std::ostream& out) {
    if (!card.tiles) {
        out << "attention: plain kernel\n";
        return;
    }
    for (const HeadShape heads : {HeadShape{32, 32, 128}, HeadShape{32, 8, 128}}) {
        const AttentionShape shape{heads, card.multiprocessors};
        const std::string name = "attention, " + number(heads.heads) + "/" + number(heads.kv_heads) +
                                 " heads of " + number(heads.head_dim);
        for (const int sequences : {1, 16, 64}) {
            for (const int tokens : {256, 4096, 16384}) {
                const AttentionPlan plan = plan_attention(decode_step(sequences, tokens), shape);
                int most = 1, whole = 0;
                for (const DecodeItem& item : plan.decode) {
                    most = std::max(most, item.splits);
                    whole += item.splits == 1 ? 1 : 0;
                }
                out << name << ", decode of " << sequences << " x " << tokens << " tokens: "
                    << (most == 1 ? std::string("whole rows")
                                  : (whole > 0 ? number(whole) + " whole rows, the others " : std::string()) +
                                        "split over the context, " + number(most) + " shares a row")
                    << ", "
                    << std::min<std::int64_t>(shape.decode_blocks(),
                                              std::int64_t(plan.decode.size()) * shape.units())
                    << " of " << shape.decode_blocks() << " blocks\n";
            }
        }
        const AttentionPlan plan = plan_attention(prefill_step(2048), shape);
        out << name << ", prefill of 2048 tokens: tiles of " << prefill_rows(heads.head_dim)
            << " (query, head) pairs, " << plan.prefill.size() * std::size_t(heads.kv_heads) << " blocks\n";
    }
    out << "attention, float32 activations or cache, or heads that are not of 64, 80, 96, 128 or 256: plain "
           "kernel\n";
}

void list_experts(const CardTraits& card, std::ostream& out) {
    if (!card.tiles) {
        out << "experts: plain kernel\n";
        return;
    }
    constexpr int experts = 8, chosen = 2, hidden = 4096, width = 14336;  // Mixtral 8x7B
    ProductNeeds needs;
    needs.experts = experts;
    needs.expert_row_bytes = hidden * 4;
    for (const std::int64_t rows : {1, 8, 16, 64, 256, 2048}) {
        const ExpertSizes sizes = expert_sizes(needs, rows);
        const std::int64_t together = std::min(rows, sizes.most_slots / chosen), slots = together * chosen;
        const int tokens = expert_tile_tokens(slots, together, experts);
        const int splits =
            expert_splits(card.multiprocessors, expert_tiles(slots, tokens, experts), hidden / block_rows,
                          width / chunk_k, std::int64_t(sizes.products) / (slots * needs.expert_row_bytes));
        out << "experts, " << chosen << " of " << experts << ", " << hidden << "x" << width << ", rows "
            << rows << ": grouped mma.sync, "
            << (together < rows ? number(together) + " rows at a time, " : "") << "tiles of " << block_rows
            << " outputs x " << tokens << " rows"
            << (splits > 1 ? ", down's shared by " + number(splits) + " blocks" : "") << "\n";
    }
    out << "experts, float32 activations or groups as above: plain kernel\n";
}

void list_draws(std::ostream& out) {
    for (const int columns : {32000, 128256})
        for (const std::int64_t rows : {1, 16, 64, 256})
            out << "draw, vocabulary " << columns << ", rows " << rows << ": on the device, "
                << draw_parts(rows, columns) << " blocks a row for the largest logit, then one\n";
}

}  // namespace

void list_card_variants(const DeviceInfo& device, std::ostream& out) {
    out << device.name << ": " << device.card.multiprocessors
        << " multiprocessors\nkernels: " << device.kernels << "\n";
    list_steps(device.card, out);
    list_products(device, out);
    list_experts(device.card, out);
    list_attention(device.card, out);
    list_draws(out);
}

}  // namespace recto
