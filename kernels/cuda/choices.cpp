#include "kernels/cuda/choices.h"

#include <algorithm>

#include "kernels/backend.h"
#include "kernels/cuda/scratch_sizes.h"

namespace recto::cuda {

ProductKernel choose_product(const CardTraits& card, TileKind kind, bool eight, std::int64_t rows) {
    const bool dense = kind == TileKind::dense;
    if (!card.tiles) return ProductKernel::plain;
    if (eight && !dense && rows > eight_bit_rows) return ProductKernel::eight_bit;
    const std::int64_t own_rows = dense ? own_dense_rows : own_quantized_rows(card.hopper);
    if (rows <= own_rows || !card.library) return ProductKernel::own;
    return dense ? ProductKernel::library : ProductKernel::unpacked;
}

// Enough to fill the card, and each with some thousand logits.
int draw_parts(std::int64_t rows, int columns) {
    constexpr int wanted_blocks = 264;
    constexpr int least_columns = 4096;
    return std::clamp(std::min(int(wanted_blocks / rows), columns / least_columns), 1, max_row_parts);
}

// Experts get unlike shares: about the double of an even one fits.
int expert_tile_tokens(std::int64_t slots, std::int64_t rows, std::int64_t experts) {
    const std::int64_t most = std::min(rows, 2 * slots / experts);  // an expert meets a row once
    return most <= 8 ? 8 : most <= 32 ? 32 : 64;
}

std::int64_t expert_tiles(std::int64_t slots, int tokens, std::int64_t experts) {
    return std::min(slots, slots / tokens + experts);
}

int expert_splits(int multiprocessors, std::int64_t tiles, int blocks, int chunks, std::int64_t room) {
    constexpr int least_run = 4;  // chunks of 128 inputs
    const std::int64_t wanted =
        std::int64_t(multiprocessors) * expert_blocks_a_multiprocessor / (tiles * blocks);
    return int(std::clamp<std::int64_t>(std::min({wanted, room, std::int64_t(chunks / least_run)}), 1,
                                        most_expert_splits));
}

}  // namespace recto::cuda
