// How a decode program (program.h) is cut into blocks, warps and bites, and how its shared memory is laid
// out: pure arithmetic that host and card share, tested without a card.
#pragma once
#include <cstdint>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/tile_cut.h"

namespace recto::cuda {

constexpr int program_warps = 12;
constexpr int program_threads = 32 * program_warps;
constexpr int program_rows = 4;  // of a step, at most

// What a warp asks for at a time: 16 weight rows of 256 inputs in 4 bits, or of 64 in 16.
constexpr int bite_tile_bytes = 2048;
constexpr int bite_bytes = 2176;                // with two chunks' scales (64 bytes) and zero points (32)
constexpr int least_bites = 3, most_bites = 8;  // of a warp's ring

RECTO_HOST_DEVICE constexpr int up_to(int n, int step) {
    return (n + step - 1) / step * step;
}

// A product's units, each of which one block has whole, in slabs of 16 weight rows. Of gated 4-bit weights a
// unit is two slabs, gates' and ups', since tiles keep them apart; of gated 16-bit weights one with 8 rows of
// each, which blocks share more evenly.
struct ProgramCut {
    bool dense, gated;
    int units;
    int bites;                   // of a slab
    unsigned bites_reciprocal;   // 2^32 / bites, rounded up
    int units_each, units_more;  // of every block, and how many blocks have one more

    RECTO_HOST_DEVICE int unit_slabs() const { return gated && !dense ? 2 : 1; }
    RECTO_HOST_DEVICE int unit_outputs() const { return gated && dense ? slab_rows / 2 : slab_rows; }
    RECTO_HOST_DEVICE int slab_of(int bite) const {
        if (bites == 1) return bite;  // 2^32 / 1 is one bit too long
#ifdef __CUDA_ARCH__
        return int(__umulhi(unsigned(bite), bites_reciprocal));
#else
        return int(std::uint64_t(unsigned(bite)) * bites_reciprocal >> 32);
#endif
    }
};
ProgramCut cut_product(bool dense, bool gated, int outputs, int cols, int blocks);

// A warp's part of a product: of its block's bites, slab by slab, those from `begin` to `end`.
struct ProgramRun {
    int first_slab;  // of the block, in the product
    int units;       // of the block
    int first_span;  // place of the first bite in its slab
    int begin, end;

    RECTO_HOST_DEVICE ProgramRun(const ProgramCut& cut, int block, int warp) {
        const int more = block < cut.units_more ? block : cut.units_more;
        units = cut.units_each + (block < cut.units_more ? 1 : 0);
        first_slab = (block * cut.units_each + more) * cut.unit_slabs();
        const int all = units * cut.unit_slabs() * cut.bites;
        begin = all * warp / program_warps;
        end = all * (warp + 1) / program_warps;
        first_span = begin - cut.slab_of(begin) * cut.bites;
    }
};

// A product's inputs in shared memory, then what its warps summed.
struct InputPlace {
    int chunks;    // of 128 inputs, an even number
    int stride;    // bytes of a row (its high bytes, then its low ones, each an odd multiple of 64)
    int sums;      // [chunks][rows] {float step, sum}: of a chunk's integers (4-bit weights)
    int parts;     // [warps][segments][rows][16] floats
    int segments;  // slabs that a warp's run may touch
    int bytes;

    RECTO_HOST_DEVICE InputPlace(const ProgramCut& cut, int cols, int rows)
        : chunks(up_to(cols, 2 * chunk_k) / chunk_k) {
        const int all = (cut.units_each + (cut.units_more > 0 ? 1 : 0)) * cut.unit_slabs() * cut.bites;
        const int run = (all + program_warps - 1) / program_warps;
        segments = (run + cut.bites - 2) / cut.bites + 1;
        stride = chunks * chunk_k * 2 + 128;
        sums = rows * stride;
        parts = up_to(sums + chunks * rows * 8, 16);
        bytes = parts + program_warps * segments * rows * 64;
    }
};

// Into how many shares attention cuts each row's context, of which a block takes one for one unit of heads: a
// long row's as many as its part of all contexts is of the blocks and a short one's at least one, or as many
// for each row, whichever leaves the busiest block less.
struct RowShares {
    int parts[program_rows];  // of each row
    int all;                  // of one unit

    // chunks: visible ones of each row, of decode_chunk tokens; at least 1.
    RECTO_HOST_DEVICE RowShares(const int (&chunks)[program_rows], int rows, int units, int blocks)
        : RowShares() {
        long long sum = 0;
        for (int r = 0; r < rows; ++r)
            sum += chunks[r];
        const int even = int((sum * units + blocks - 1) / blocks);  // chunks of a block
        for (int r = 0; r < rows; ++r)
            add(r, within(chunks[r], chunks[r] / even));
        // Rounded down, since one share more than blocks is a second round; what that left goes to the
        // longest.
        while ((all + 1) * units <= blocks) {
            int longest = -1;
            for (int r = 0; r < rows; ++r)
                if (within(chunks[r], parts[r] + 1) > parts[r] &&
                    (longest < 0 || share(chunks[r], parts[r]) > share(chunks[longest], parts[longest])))
                    longest = r;
            if (longest < 0) break;
            add(longest, 1);
        }
        RowShares equal;
        for (int r = 0; r < rows; ++r)
            equal.add(r, within(chunks[r], blocks / (rows * units)));
        if (equal.cost(chunks, rows, units, blocks) < cost(chunks, rows, units, blocks)) *this = equal;
    }

    // What the rounds of blocks take, in chunks, each as long as its longest share.
    RECTO_HOST_DEVICE int cost(const int (&chunks)[program_rows], int rows, int units, int blocks) const {
        constexpr int round = 10;  // of beginning and merging
        int clocks = 0, most = 0, item = 0, end = blocks;
        for (int r = 0; r < rows; ++r) {
            item += parts[r] * units;
            const int own = share(chunks[r], parts[r]);
            most = most > own ? most : own;
            for (; item >= end; end += blocks) {  // the round is full
                clocks += most + round;
                most = item > end ? own : 0;
            }
        }
        return most > 0 ? clocks + most + round : clocks;
    }

  private:
    RECTO_HOST_DEVICE RowShares() : parts{}, all(0) {}
    RECTO_HOST_DEVICE void add(int row, int n) {
        parts[row] += n;
        all += n;
    }
    static RECTO_HOST_DEVICE int share(int chunks, int parts) { return (chunks + parts - 1) / parts; }
    // None below what keeps a block's warps busy once.
    static RECTO_HOST_DEVICE int within(int chunks, int n) {
        const int busy = (chunks + program_warps - 1) / program_warps;
        n = n < busy ? n : busy;
        n = n < most_splits ? n : most_splits;
        return n > 1 ? n : 1;
    }
};

// Attention's: queries [heads, head_dim] in 16 bits, then what ShareMemory points to.
struct SharePlace {
    int out, top, sum, weight, bytes;

    RECTO_HOST_DEVICE SharePlace(int heads, int head_dim) {
        out = heads * head_dim * 2;
        top = out + program_warps * heads * (head_dim + 4) * 4;
        sum = top + program_warps * heads * 4;
        weight = sum + program_warps * heads * 4;
        bytes = weight + most_splits * heads * 4;
    }
};

}  // namespace recto::cuda
