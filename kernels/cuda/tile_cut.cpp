#include <algorithm>

#include "kernels/cuda/tile_cut.h"

namespace recto::cuda {
namespace {

// Estimates are in clocks of one SM of an H200 (132 SMs at 1.8 GHz, 4.2 TB/s: 17.7 bytes a clock and SM).
constexpr double bytes_a_clock = 17.7;     // from memory, when all SMs ask
constexpr double most_bytes_a_clock = 24;  // that one SM was seen to take, when few ask
constexpr double block_overhead = 4000;    // prologue and epilogue of a block
constexpr double l2_bytes_a_clock = 25;    // of partial sums
constexpr double exchange_wait = 5000;     // of many tokens, until the other blocks' sums are there

constexpr double cells = double(tile_rows) * chunk_k;  // of a chunk of one tile

double weight_bytes(const TileProblem& w) {
    switch (w.kind) {
        case TileKind::dense:
            return cells * 2;
        case TileKind::u4:
            return cells / 2 * 1.06;
        case TileKind::u8:
            return cells * 1.06;
    }
    return 0;
}

// A chunk of one tile. 2,048 multiply-adds a clock; narrower tiles feed the tensor cores less well.
double chunk_clocks(const TileProblem& w, int tokens, double share_of_memory) {
    const double rate = 2048 * (tokens > 224   ? 0.78
                                : tokens > 192 ? 0.75
                                : tokens > 160 ? 0.71
                                : tokens > 128 ? 0.67
                                : tokens > 64  ? 0.63
                                               : 0.6);
    const double compute = cells * tokens / rate;
    const double unpack = w.kind == TileKind::dense ? 0 : 1150;
    return std::max({compute, unpack, weight_bytes(w) / share_of_memory});
}

}  // namespace

SlabCut cut_slabs(TileKind kind, int blocks, bool gated, int multiprocessors) {
    const auto up = [](int n, int d) { return (n + d - 1) / d; };
    constexpr int most_slabs = 12;  // of a pass
    const int slabs = gated ? 2 : 1;
    SlabCut cut;
    cut.all_units = blocks * (block_rows / slab_rows) / slabs;
    cut.units = up(cut.all_units, multiprocessors);
    cut.grid = up(cut.all_units, cut.units);  // fewer blocks with as much each rather than some that end late
    cut.units_a_pass = up(cut.units, up(cut.units * slabs, most_slabs));
    const int pass = cut.units_a_pass * slabs;
    cut.group_shift = 1;
    while (up(pass, 1 << cut.group_shift) > most_warp_slabs(kind))
        ++cut.group_shift;
    cut.warp_slabs = up(pass, 1 << cut.group_shift);
    while ((1 << cut.row_shift) < cut.units_a_pass * slab_rows)
        ++cut.row_shift;
    return cut;
}

TileShape choose_cut(const TileProblem& w, int multiprocessors) {
    const std::int64_t rows = w.rows;
    const double sms = multiprocessors;
    TileShape best;
    double least = 0;
    const auto consider = [&](int tokens, std::int64_t splits, bool goes_on) {
        const std::int64_t tiles =
                               (w.blocks + tile_blocks - 1) / tile_blocks * ((rows + tokens - 1) / tokens),
                           chunks = w.chunks;
        TileShape s;
        s.tokens = tokens;
        double clocks = 0;
        const double partial = double(tile_rows) * tokens * 4 / l2_bytes_a_clock;
        const double wait = tokens > 32 ? exchange_wait : 0;
        if (goes_on) {
            const std::int64_t run =
                std::max<std::int64_t>(2, (tiles * chunks + multiprocessors - 1) / multiprocessors);
            s.run = int(run);
            s.grid = int((tiles * chunks + run - 1) / run);
            // A block leaves one part, and the owner of a tile adds those of all that share it.
            const double sharers = std::max(1.0, double(chunks) / double(run));
            clocks = double(run) * chunk_clocks(w, tokens, bytes_a_clock) + block_overhead + wait +
                     partial * (1 + sharers);
        } else if (splits > 1) {
            const std::int64_t run = (chunks + splits - 1) / splits, parts = (chunks + run - 1) / run;
            if (tiles * parts > multiprocessors) return;  // partial sums have room for one block an SM
            s.run = int(run);
            s.splits = int(parts);
            s.grid = int(tiles * parts);
            const double memory = std::min(most_bytes_a_clock, bytes_a_clock * sms / double(s.grid));
            // Of many tokens every block adds its share of the parts, else one adds them all.
            const double exchange = tokens > 32 ? 2 * partial : partial * double(parts);
            clocks = double(run) * chunk_clocks(w, tokens, memory) + block_overhead + wait + exchange;
        } else {
            s.grid = int(std::min<std::int64_t>(tiles, multiprocessors));
            // The last round's blocks share the memory among fewer.
            const std::int64_t full = tiles / multiprocessors, rest = tiles % multiprocessors;
            clocks = double(full * chunks) * chunk_clocks(w, tokens, bytes_a_clock) + block_overhead;
            if (rest > 0)
                clocks +=
                    double(chunks) *
                    chunk_clocks(w, tokens, std::min(most_bytes_a_clock, bytes_a_clock * sms / double(rest)));
        }
        if (best.tokens == 0 || clocks < least) {
            best = s;
            least = clocks;
        }
    };
    int narrow = 8;
    while (narrow < 256 && narrow < rows)
        narrow *= 2;
    if (w.kind != TileKind::dense && narrow <= thin_tokens) {
        best.tokens = narrow;
        best.slabs = cut_slabs(w.kind, w.blocks, w.gated, multiprocessors);
        best.grid = best.slabs.grid;
        return best;
    }
    // Quantized weights have widths between: the least that holds the rows in as few tiles.
    int between = 0;
    if (w.kind != TileKind::dense && narrow == 256) {
        const std::int64_t tiles = (rows + 255) / 256;
        between = int((rows + 32 * tiles - 1) / (32 * tiles) * 32);
    }
    for (const int tokens : {narrow, narrow / 2, between}) {
        if (tokens < 8 || (tokens < narrow && tokens < 128))
            continue;  // narrower only where two tiles may pay
        consider(tokens, 1, false);
        for (const std::int64_t splits : {2, 3, 4, 5, 6, 8})
            consider(tokens, splits, false);
        // With many tiles of tokens, whole tiles in step share what they read of x and of the weights in the
        // second-level cache; runs that go on lose more by that than their even ends gain (1,305 against
        // 1,165 us for the 4-bit products of Llama-2-7B's layer at 2,048 rows).
        if (4 * tokens >= rows) consider(tokens, 1, true);
    }
    return best;
}

}  // namespace recto::cuda
