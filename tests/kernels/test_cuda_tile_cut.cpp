// How a card's products are cut, checked without a card by counting: every chunk of every tile belongs to one
// block, and what blocks that share a tile rely on holds.
#include <map>
#include <set>

#include "kernels/cuda/tile_cut.h"

#include <QTest>

#include "support/registry.h"

using namespace recto::cuda;

namespace {

constexpr int multiprocessors = 132;

struct Shape {
    const char* name;
    int weight_rows, inputs;
};
// Llama-2-7B's and Llama-3-8B's layers, an embedding, odd and tiny ones.
constexpr Shape shapes[] = {
    {"q|k|v", 12288, 4096},       {"o", 4096, 4096},         {"gate|up", 22016, 4096},
    {"down", 4096, 11008},        {"GQA q|k|v", 6144, 4096}, {"down 14336", 4096, 14336},
    {"vocabulary", 128256, 4096}, {"one block", 40, 64},     {"three blocks", 180, 700}};

TileProblem problem_of(const Shape& s, TileKind kind, std::int64_t rows) {
    return {kind, (s.weight_rows + block_rows - 1) / block_rows, (s.inputs + chunk_k - 1) / chunk_k, rows};
}

template <class Check>
void every_cut(Check&& check) {
    for (const Shape& s : shapes)
        for (const TileKind kind : {TileKind::dense, TileKind::u4, TileKind::u8})
            for (const std::int64_t rows :
                 {1, 4, 16, 33, 64, 100, 128, 136, 160, 192, 200, 256, 300, 400, 2048, 8192}) {
                const TileProblem p = problem_of(s, kind, rows);
                const TileShape cut = choose_cut(p, multiprocessors);
                QCOMPARE(cut.slabs.grid > 0, kind != TileKind::dense && rows <= thin_tokens);
                if (cut.slabs.grid == 0) check(p, cut);
            }
}

}  // namespace

class TestCudaTileCut : public QObject {
    Q_OBJECT
  private slots:
    void coversEveryChunkOnce() {
        every_cut([](const TileProblem& p, const TileShape& s) {
            const int row_tiles = (p.blocks + 1) / 2, token_tiles = int((p.rows + s.tokens - 1) / s.tokens);
            std::map<std::pair<int, int>, int> covered;  // tile → chunks
            for (int block = 0; block < s.grid; ++block) {
                Pieces pieces(row_tiles, token_tiles, p.chunks, s, block);
                for (Piece piece; pieces.next(piece);) {
                    QVERIFY(piece.row_tile < row_tiles && piece.token_tile < token_tiles);
                    QVERIFY(0 <= piece.first && piece.first < piece.last && piece.last <= p.chunks);
                    covered[{piece.row_tile, piece.token_tile}] += piece.last - piece.first;
                }
            }
            QCOMPARE(int(covered.size()), row_tiles * token_tiles);
            for (const auto& [tile, chunks] : covered)
                QCOMPARE(chunks, p.chunks);
        });
    }

    // The owner of a shared tile waits for the others: they must run beside it, none may wait before it has
    // left its own part, and each has one place for such a part.
    void sharersLeaveTheirPartFirst() {
        int shared = 0;
        every_cut([&shared](const TileProblem& p, const TileShape& s) {
            if (s.run == 0) return;
            QVERIFY(s.grid <= multiprocessors);
            const int row_tiles = (p.blocks + 1) / 2, token_tiles = int((p.rows + s.tokens - 1) / s.tokens);
            std::map<int, std::set<int>> blocks_of;  // tile → blocks in ascending order
            for (int block = 0; block < s.grid; ++block) {
                Pieces pieces(row_tiles, token_tiles, p.chunks, s, block);
                int number = 0;
                for (Piece piece; pieces.next(piece); ++number) {
                    if (piece.first != 0) QCOMPARE(number, 0);  // left before anything is waited for
                    blocks_of[piece.token_tile * row_tiles + piece.row_tile].insert(block);
                }
            }
            const Pieces any(row_tiles, token_tiles, p.chunks, s, 0);
            for (const auto& [tile, blocks] : blocks_of) {
                QCOMPARE(any.owner(tile), *blocks.begin());
                QCOMPARE(any.last_sharer(tile), *blocks.rbegin());
                QCOMPARE(int(blocks.size()), any.last_sharer(tile) - any.owner(tile) + 1);
                shared += blocks.size() > 1;
            }
        });
        QVERIFY(shared > 0);
    }

    // Whole slabs: each belongs to one pass of one block, its warps have places for them all, and enough
    // threads write a pass's outputs side by side.
    void slabsOfFewTokens() {
        for (const Shape& s : shapes)
            for (const TileKind kind : {TileKind::u4, TileKind::u8})
                for (const bool gated : {false, true}) {
                    const int blocks = (s.weight_rows + block_rows - 1) / block_rows;
                    const SlabCut cut = cut_slabs(kind, blocks, gated, multiprocessors);
                    const int slabs = gated ? 2 : 1;  // of a unit
                    QCOMPARE(cut.all_units * slabs * slab_rows, blocks * block_rows);
                    QVERIFY(cut.grid <= multiprocessors);
                    QVERIFY((cut.grid - 1) * cut.units < cut.all_units);
                    QVERIFY(cut.grid * cut.units >= cut.all_units);
                    QVERIFY(cut.units_a_pass >= 1 && cut.units_a_pass <= cut.units);
                    QVERIFY(cut.warp_slabs <= most_warp_slabs(kind));
                    QVERIFY((cut.warp_slabs << cut.group_shift) >= cut.units_a_pass * slabs);
                    QVERIFY(cut.group_shift >= 1 && cut.group_shift <= 4);  // of 16 warps
                    QVERIFY(cut.units_a_pass * slab_rows <= 1 << cut.row_shift);
                    QVERIFY(1 << cut.row_shift <= 512);
                }
    }

    void holdsAllTokensOfFewRows() {
        every_cut([](const TileProblem& p, const TileShape& s) {
            if (s.tokens == 160 || s.tokens == 192 || s.tokens == 224) {
                const std::int64_t tiles = (p.rows + s.tokens - 1) / s.tokens;
                QVERIFY(p.kind != TileKind::dense && (s.tokens - 32) * tiles < p.rows);
            } else {
                QVERIFY(s.tokens >= 8 && s.tokens <= 256 && (s.tokens & (s.tokens - 1)) == 0);
            }
            if (p.rows <= 64) QVERIFY(s.tokens >= p.rows && s.tokens < 2 * p.rows + 8);
        });
    }
};

RECTO_TEST_CLASS(TestCudaTileCut);
#include "test_cuda_tile_cut.moc"
