// How a matrix product over tiled weights is cut into blocks of threads: pure arithmetic on the shape, so
// that it can be printed, and tested without a card.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define RECTO_HOST_DEVICE __host__ __device__
#else
#define RECTO_HOST_DEVICE
#endif

namespace recto::cuda {

constexpr int block_rows = 64;  // of the weight, a block of tiles
constexpr int tile_k = 64;
constexpr int chunk_k = 128;  // inputs are padded to it

enum class TileKind : std::uint8_t { dense, u4, u8 };

constexpr int tile_blocks = 2;  // of a tile: a warpgroup each
constexpr int tile_rows = tile_blocks * block_rows;

// Quantized weights and at most this many rows of x: a block has slabs of 16 weight rows whole.
constexpr int thin_tokens = 16;
constexpr int slab_rows = 16;
// That a warp takes at a time: its sums must fit the registers, its ring several chunks.
RECTO_HOST_DEVICE constexpr int most_warp_slabs(TileKind kind) {
    return kind == TileKind::u8 ? 2 : 3;
}
// A unit of work is a slab, or for gated weights a slab of gate rows and one of the up rows that belong to
// it.
struct SlabCut {
    int grid = 0;          // blocks launched; 0: not cut so
    int all_units = 0;     // of the weight
    int units = 0;         // of a block
    int units_a_pass = 0;  // that its warps take at a time
    int group_shift = 0;   // log2 of the groups of warps that share a pass's slabs; the rest share the inputs
    int warp_slabs = 0;    // most of a warp in a pass
    int row_shift = 0;     // log2 of the threads side by side that write a token's outputs of a pass
};
SlabCut cut_slabs(TileKind kind, int blocks, bool gated, int multiprocessors);

struct TileShape {
    int tokens = 0;  // columns of D a block of threads holds: 8, 16, 32, 64, 128, 160, 192, 224, 256
    int grid = 0;    // blocks launched
    int run = 0;     // chunks of 128 inputs a block takes; 0: whole tiles, one after another
    int splits =
        0;  // blocks that share a tile, run chunks each; 0 with run > 0: runs go on into the next tile
    SlabCut slabs = {};  // of few tokens: the other fields but `tokens` do not count
};

struct TileProblem {
    TileKind kind = TileKind::dense;
    int blocks = 0;         // of 64 weight rows
    int chunks = 0;         // of 128 inputs
    std::int64_t rows = 0;  // of x
    bool gated = false;
};
// The cut of least estimated time. Where blocks share tiles there are at most as many as multiprocessors.
TileShape choose_cut(const TileProblem& problem, int multiprocessors);

// A run of chunks of one tile.
struct Piece {
    int row_tile = 0, token_tile = 0, first = 0, last = 0;  // chunks [first, last)
};

// The pieces of one block of threads, in its order. Tiles are numbered along the weight first.
struct Pieces {
    int row_tiles, chunks;
    TileShape shape;
    int block;
    int at, end;  // runs that go on: chunk numbers; else tile numbers

    RECTO_HOST_DEVICE Pieces(int row_tiles_, int token_tiles, int chunks_, const TileShape& shape_,
                             int block_)
        : row_tiles(row_tiles_), chunks(chunks_), shape(shape_), block(block_) {
        const int tiles = row_tiles * token_tiles;
        if (goes_on()) {
            at = block * shape.run;
            end = at + shape.run < tiles * chunks ? at + shape.run : tiles * chunks;
        } else if (shape.splits > 0) {
            at = block / shape.splits;
            end = at + 1;
        } else {
            at = block;
            end = tiles;
        }
    }
    RECTO_HOST_DEVICE bool goes_on() const { return shape.run > 0 && shape.splits == 0; }

    RECTO_HOST_DEVICE bool next(Piece& p) {
        if (at >= end) return false;
        const int tile = goes_on() ? at / chunks : at;
        p.row_tile = tile % row_tiles;
        p.token_tile = tile / row_tiles;
        p.first = 0;
        p.last = chunks;
        if (goes_on()) {
            p.first = at - tile * chunks;
            if (p.first + end - at < chunks) p.last = p.first + end - at;
            at += p.last - p.first;
        } else if (shape.splits > 0) {
            p.first = block % shape.splits * shape.run;
            if (p.first + shape.run < chunks) p.last = p.first + shape.run;
            at = end;
        } else {
            at += shape.grid;
        }
        return true;
    }

    // The blocks that share a tile: the owner, which has its first inputs, up to the last, in the order of
    // the inputs.
    RECTO_HOST_DEVICE int owner(int tile) const {
        return shape.splits > 0 ? tile * shape.splits : tile * chunks / shape.run;
    }
    RECTO_HOST_DEVICE int last_sharer(int tile) const {
        return shape.splits > 0 ? owner(tile) + shape.splits - 1 : ((tile + 1) * chunks - 1) / shape.run;
    }
};

}  // namespace recto::cuda
