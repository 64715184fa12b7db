// How a product is cut into blocks of threads.
#include <algorithm>

#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

TileShape choose_tile(const TileWeight& w, std::int64_t rows, int multiprocessors) {
    TileShape s;
    // The narrowest block that holds all rows; above 256, the width that leaves the least of a last block empty.
    s.tokens = 8;
    while (s.tokens < 256 && s.tokens < rows)
        s.tokens *= 2;
    if (rows > 256) {
        const auto padded = [rows](std::int64_t n) { return (rows + n - 1) / n * n; };
        if (padded(128) * 10 < padded(256) * 9) s.tokens = 128;
    }
    const std::int64_t row_tiles = (w.blocks + 1) / 2, token_tiles = (rows + s.tokens - 1) / s.tokens;
    const std::int64_t tiles = row_tiles * token_tiles;
    const std::int64_t rounds = (tiles + multiprocessors - 1) / multiprocessors;
    // Whole tiles where they fill their last round well: no sums to exchange.
    if (10 * tiles >= 9 * rounds * multiprocessors) {
        s.grid = int(std::min<std::int64_t>(tiles, multiprocessors));
        return s;
    }
    const std::int64_t chunks = tiles * w.chunks;
    constexpr std::int64_t shortest_run = 2;  // chunks: less is all prologue
    const std::int64_t run = std::max(shortest_run, (chunks + multiprocessors - 1) / multiprocessors);
    s.pieces = int(run);
    s.grid = int((chunks + run - 1) / run);
    return s;
}

}  // namespace recto::cuda
