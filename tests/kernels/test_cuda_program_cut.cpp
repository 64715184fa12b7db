// How a decode program is shared out, checked without a card by counting who has which weights.
#include <algorithm>
#include <vector>

#include "kernels/cuda/program_cut.h"

#include <QTest>

#include "support/registry.h"

using namespace recto::cuda;

namespace {

struct Shape {
    int outputs, cols;
};
// Llama-2-7B's, Qwen2.5's with an odd number of chunks, SmolLM2's, one smaller than a card, a head of many
// outputs.
constexpr Shape shapes[] = {{12288, 4096}, {4096, 11008}, {11008, 4096},  {1536, 8960}, {576, 1536},
                            {960, 576},    {64, 128},     {128256, 4096}, {40, 320}};
constexpr int grids[] = {1, 7, 108, 132};

template <class F>
void every_cut(F&& f) {
    for (const Shape& s : shapes)
        for (const bool dense : {false, true})
            for (const bool gated : {false, true})
                for (const int blocks : grids)
                    f(s, cut_product(dense, gated, s.outputs, s.cols, blocks), blocks);
}

}  // namespace

class TestCudaProgramCut : public QObject {
    Q_OBJECT

  private slots:
    void bites_hold_all_inputs() {
        every_cut([](const Shape& s, const ProgramCut& cut, int) {
            const int inputs = cut.dense ? 64 : 256;  // 16 rows of them are 2 KiB
            QVERIFY(cut.bites * inputs >= s.cols && (cut.bites - 1) * inputs < s.cols);
            QVERIFY(cut.units * cut.unit_outputs() >= s.outputs);
            QVERIFY((cut.units - 1) * cut.unit_outputs() < s.outputs);
            // Weight rows of a unit: as many as its outputs have, in slabs of 16.
            QCOMPARE(cut.unit_slabs() * 16, cut.unit_outputs() * (cut.gated ? 2 : 1));
        });
    }

    // By division, for every bite that a block can have.
    void finds_slabs_without_division() {
        every_cut([](const Shape&, const ProgramCut& cut, int) {
            const int all = (cut.units_each + 1) * cut.unit_slabs() * cut.bites;
            for (int bite = 0; bite<all; bite += all> 100000 ? 97 : 1)
                QCOMPARE(cut.slab_of(bite), bite / cut.bites);
        });
    }

    void warps_cover_each_bite_once() {
        every_cut([](const Shape&, const ProgramCut& cut, int blocks) {
            long long seen = 0, next_slab = 0;
            for (int block = 0; block < blocks; ++block) {
                int end = 0;
                for (int warp = 0; warp < program_warps; ++warp) {
                    const ProgramRun run(cut, block, warp);
                    QCOMPARE((long long)run.first_slab, next_slab);
                    QCOMPARE(run.begin, end);  // no gap, no overlap
                    QCOMPARE(run.first_span, run.begin % cut.bites);
                    end = run.end;
                    seen += run.end - run.begin;
                }
                const ProgramRun last(cut, block, program_warps - 1);
                QCOMPARE(end, last.units * cut.unit_slabs() * cut.bites);
                next_slab += last.units * cut.unit_slabs();
            }
            QCOMPARE(next_slab, (long long)cut.units * cut.unit_slabs());
            QCOMPARE(seen, next_slab * cut.bites);
        });
    }

    // What a warp sums has a place for every slab that its run touches.
    void sums_have_room() {
        every_cut([](const Shape& s, const ProgramCut& cut, int blocks) {
            for (int rows = 1; rows <= program_rows; ++rows) {
                const InputPlace place(cut, s.cols, rows);
                int most = 0;
                for (int block = 0; block < blocks; ++block)
                    for (int warp = 0; warp < program_warps; ++warp) {
                        const ProgramRun run(cut, block, warp);
                        if (run.begin == run.end) continue;
                        most = std::max(most, (run.end - 1) / cut.bites - run.begin / cut.bites + 1);
                    }
                QVERIFY(place.segments >= most);
                QVERIFY(place.bytes >= place.parts + program_warps * most * rows * 16 * int(sizeof(float)));
                QVERIFY(place.sums >= rows * (s.cols * 2));  // 16 bits an input
                QVERIFY(place.parts >= place.sums + rows * place.chunks * 8);
                QVERIFY(place.chunks * 128 >= s.cols && place.chunks % 2 == 0);
                QCOMPARE(place.parts % 16, 0);
                QCOMPARE(place.stride % 128, 0);
                QCOMPARE(place.stride / 2 % 128, 64);  // a row's high and low bytes in different banks
            }
        });
    }

    // Shares of contexts (in chunks of 16 tokens) on 132 blocks, by hand: an even share is all chunks times
    // units over 132, rounded up.
    void rows_have_shares_by_length() {
        struct Case {
            std::vector<int> chunks;
            int units;
            std::vector<int> parts;
        };
        for (const Case& c : {Case{{1024}, 32, {4}},                       // 249 each
                              Case{{1024, 10, 10, 10}, 32, {4, 1, 1, 1}},  // 256
                              Case{{100, 100, 100, 100}, 32, {1, 1, 1, 1}},
                              Case{{13}, 32, {2}},  // 4, but 12 warps are busy once with 7
                              Case{{3}, 32, {1}}, Case{{1024}, 8, {16}},  // 63
                              Case{{100000, 1, 1}, 1, {128, 1, 1}}}) {
            int chunks[program_rows] = {};
            std::copy(c.chunks.begin(), c.chunks.end(), chunks);
            const RowShares shares(chunks, int(c.chunks.size()), c.units, 132);
            int all = 0;
            for (std::size_t r = 0; r < c.parts.size(); ++r) {
                QCOMPARE(shares.parts[r], c.parts[r]);
                all += c.parts[r];
            }
            QCOMPARE(shares.all, all);
        }
    }

    void attention_has_room() {
        for (const int heads : {1, 4, 8})
            for (const int dim : {64, 128}) {
                const SharePlace place(heads, dim);
                QVERIFY(place.out >= heads * dim * 2);
                QVERIFY(place.top >= place.out + program_warps * heads * dim * 4);
                QVERIFY(place.weight >= place.sum + program_warps * heads * 4);
                QVERIFY(place.bytes >= place.weight + most_splits * heads * 4);
                QCOMPARE(place.out % 16, 0);
            }
    }
};

RECTO_TEST_CLASS(TestCudaProgramCut);
#include "test_cuda_program_cut.moc"
