// Which kernel of a card serves a shape, and how it is cut: pure functions of numbers, printed by
// `recto-cli kernels --list` and tested without a card. Attention's are in attention_plan.h, the own
// products' cuts in tile_cut.h and general_cut.h.
#pragma once
#include <cstdint>

#include "kernels/card_scratch.h"
#include "kernels/cuda/tile_cut.h"

namespace recto::cuda {

enum class ProductKernel : std::uint8_t {
    plain,      // no tensor cores
    own,        // wgmma or mma.sync, by the card
    library,    // cuBLASLt
    unpacked,   // a quantized weight as 16-bit rows, some blocks at a time, and cuBLASLt
    eight_bit,  // both sides rounded to 8 bits, and cuBLASLt
};
// `eight`: the weight was packed for 8-bit products.
ProductKernel choose_product(const CardTraits& card, TileKind kind, bool eight, std::int64_t rows);

// Blocks that share a row of logits in the first pass of drawing tokens.
int draw_parts(std::int64_t rows, int columns);

// Tokens of a tile of a mixture's product: 8, 32, 64. A slot is a (row, expert) pair.
int expert_tile_tokens(std::int64_t slots, std::int64_t rows, std::int64_t experts);
// The most tiles that so many slots make.
std::int64_t expert_tiles(std::int64_t slots, int tokens, std::int64_t experts);
constexpr int expert_blocks_a_multiprocessor = 4;
// Blocks that share a tile's inputs in a mixture's `down`; at most `room`, by the memory for their sums.
int expert_splits(int multiprocessors, std::int64_t tiles, int blocks, int chunks, std::int64_t room);

}  // namespace recto::cuda
