// How a decode program is shared out, checked without a card by counting who has which weights.
#include <algorithm>
#include <vector>

#include "kernels/cuda/program_cut.h"
#include "kernels/cuda/program_room.h"

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

// A decoder of 4-bit weights with a 16-bit head, one layer like the other.
struct Model {
    int layers, hidden, width, qkv, group, vocabulary;
};
constexpr Model llama_7b = {32, 4096, 11008, 12288, 1, 32000};
constexpr Model llama_8b = {32, 4096, 14336, 6144, 4, 128256};
constexpr Model llama_70b = {80, 8192, 28672, 10240, 8, 32000};
constexpr Model qwen_7b = {28, 3584, 18944, 4608, 7, 152064};

constexpr int h200_shared = 227 * 1024, h200_blocks = 132;
constexpr int rtx_shared = 99 * 1024, rtx_blocks = 128;
constexpr int step_size = 144;  // sizeof(ProgramStep), whose header needs CUDA's

// What becomes of a step: `steps` of each program, `products` in them, `alone` that no program has.
struct Collected {
    std::vector<int> steps, products;
    std::vector<ProgramLayout> layouts;
    int alone = 0;
};

Collected collect(const Model& m, int rows, int shared_bytes, int blocks) {
    Collected c;
    ProgramRoom room(shared_bytes, step_size);
    int steps = 0, products = 0;
    const auto enqueue = [&] {
        if (steps == 0) return;
        c.steps.push_back(steps);
        c.products.push_back(products);
        c.layouts.push_back(room.layout());
        room.clear();
        steps = products = 0;
    };
    const auto offer = [&](int inputs, bool product) {
        const StepPlace place = room.place(inputs);
        if (place != StepPlace::here) enqueue();
        if (place == StepPlace::none) {
            ++c.alone;
            return;
        }
        room.take(inputs);
        ++steps;
        products += product ? 1 : 0;
    };
    const auto product = [&](int outputs, int cols, bool gated, bool dense) {
        offer(InputPlace(cut_product(dense, gated, outputs, cols, blocks), cols, rows).bytes, true);
    };
    for (int layer = 0; layer < m.layers; ++layer) {
        product(m.qkv, m.hidden, false, false);
        offer(SharePlace(m.group, 128).bytes, false);
        product(m.hidden, m.hidden, false, false);
        product(m.width, m.hidden, true, false);
        product(m.hidden, m.width, false, false);
    }
    product(m.vocabulary, m.hidden, false, true);
    enqueue();
    return c;
}

bool whole(const Collected& c, int steps) {
    return c.alone == 0 && c.steps == std::vector{steps};
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
                              Case{{63, 57}, 32, {2, 2}},  // 30 each: 2 and 1, and one is left over
                              Case{{60, 60, 57, 60}, 16, {2, 2, 2, 2}},
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

    // For every width and number of steps, by the sum that must not be more than a block may have: the list,
    // the inputs, three bites of 2,176 bytes for each of twelve warps, and 4 KiB.
    void finds_room() {
        const auto sum = [](int steps, int inputs) {
            return (steps * 144 + 127) / 128 * 128 + (inputs + 127) / 128 * 128 + 12 * 3 * 2176 + 4096;
        };
        for (const int shared : {rtx_shared, 163 * 1024, h200_shared})
            for (const int first : {64, 9000, 50000})
                for (const int steps : {0, 1, 5, 100, 179, 180}) {
                    ProgramRoom room(shared, step_size);
                    for (int i = 0; i < steps; ++i)
                        room.take(i == 0 ? first : 64);
                    for (int inputs = 16; inputs < shared + 1000; inputs += 16) {
                        const int widest = steps > 0 ? std::max(first, inputs) : inputs;
                        const bool here = steps < 180 && sum(steps + 1, widest) <= shared;
                        const bool next = sum(1, inputs) <= shared;
                        QVERIFY(room.place(inputs) == (here   ? StepPlace::here
                                                       : next ? StepPlace::next
                                                              : StepPlace::none));
                    }
                    room.clear();
                    QVERIFY(room.place(64) == StepPlace::here);
                }
    }

    // The layout's parts follow each other and leave the 4 KiB.
    void lays_out_shared_memory() {
        for (int inputs = 16; inputs < h200_shared; inputs += 1008) {
            const ProgramLayout l = lay_out_program(7, step_size, inputs, h200_shared);
            QCOMPARE(l.step_bytes, 1024);  // 1,008
            QVERIFY(l.x_bytes >= inputs && l.x_bytes < inputs + 128 && l.x_bytes % 128 == 0);
            QCOMPARE(l.ring_bytes, l.depth * 2176);
            QVERIFY(l.depth >= 0 && l.depth <= 8);
            if (l.depth > 0) QVERIFY(1024 + l.x_bytes + 12 * l.ring_bytes + 4096 <= h200_shared);
            if (l.depth < 8) QVERIFY(1024 + l.x_bytes + 12 * (l.ring_bytes + 2176) + 4096 > h200_shared);
        }
    }

    // `down` of 86 chunks: rows of 2 x 128 bytes a chunk and 128 more, 8 bytes a chunk and row for sums, and
    // for 12 warps 2 slabs of 64 bytes a row. It is the widest; 161 steps of 144 bytes are 23,184.
    void llama_7b_is_one_program() {
        for (int rows = 1; rows <= 4; ++rows)
            QVERIFY(whole(collect(llama_7b, rows, h200_shared, h200_blocks), 161));
        const ProgramLayout l = collect(llama_7b, 4, h200_shared, h200_blocks).layouts[0];
        QCOMPARE(l.step_bytes, 23296);
        QCOMPARE(l.x_bytes,
                 (4 * (86 * 256 + 128) + 4 * 86 * 8 + 12 * 2 * 4 * 64 + 64));  // 97,472 and padding
        QCOMPARE(l.depth, (232448 - 4096 - 23296 - 97536) / (12 * 2176));
        QCOMPARE(l.depth, 4);
    }

    // `down` of 148 chunks has 38,016 bytes a row: 4 rows and three bites a warp (78,336) are more than there
    // is.
    void qwen_7b_runs_down_alone_at_four_rows() {
        const int depths[] = {6, 4, 3};
        // At one row attention is wider: 7 heads of 128, of which every warp has FP32 sums.
        const int inputs[] = {50432, 2 * 38016 + 2 * 148 * 8 + 12 * 2 * 2 * 64 + 64,
                              3 * 38016 + 3 * 148 * 8 + 12 * 2 * 3 * 64 + 32};
        for (int rows = 1; rows <= 3; ++rows) {
            const Collected c = collect(qwen_7b, rows, h200_shared, h200_blocks);
            QVERIFY(whole(c, 28 * 5 + 1));
            QCOMPARE(c.layouts[0].step_bytes, 20352);  // 141 x 144 = 20,304
            QCOMPARE(c.layouts[0].x_bytes, inputs[rows - 1]);
            QCOMPARE(c.layouts[0].depth, depths[rows - 1]);
        }
        QVERIFY(4 * 38016 > 232448 - 4096 - 78336);
        const Collected c = collect(qwen_7b, 4, h200_shared, h200_blocks);
        QCOMPARE(c.alone, 28);
        std::vector<int> steps(28, 4), products(28, 3);  // of each layer qkv, attention, o, gate|up
        steps.push_back(1);                              // the head
        products.push_back(1);
        QVERIFY(c.steps == steps && c.products == products);
        QCOMPARE(c.layouts[0].depth, 6);  // (232,448 - 4,096 - 640 - 50,432) / 26,112 = 6.8
    }

    // `down` of 224 chunks: 57,472 bytes a row. 180 steps of 144 bytes (25,984) fit beside two of them, not
    // three.
    void llama_70b_runs_down_alone_from_three_rows() {
        for (int rows = 1; rows <= 2; ++rows) {
            const Collected c = collect(llama_70b, rows, h200_shared, h200_blocks);
            QVERIFY(c.alone == 0 && c.steps == (std::vector{180, 180, 41}));
        }
        const ProgramLayout l = collect(llama_70b, 2, h200_shared, h200_blocks).layouts[0];
        QCOMPARE(l.step_bytes, 25984);
        QCOMPARE(l.x_bytes, 2 * 57472 + 2 * 224 * 8 + 12 * 2 * 2 * 64);  // 121,600
        QCOMPARE(l.depth, 3);                                            // 80,768 / 26,112 = 3.09
        for (int rows = 3; rows <= 4; ++rows) {
            const Collected c = collect(llama_70b, rows, h200_shared, h200_blocks);
            QCOMPARE(c.alone, 80);
            QVERIFY(std::count(c.products.begin(), c.products.end(), 3) == 80 && c.products.size() == 81);
        }
    }

    // 101,376 bytes leave 18,944 for inputs and list: `down` has 22,144 a row, the others 10,112 and less.
    void small_cards_run_down_alone() {
        const Collected c = collect(llama_7b, 1, rtx_shared, rtx_blocks);
        QCOMPARE(c.alone, 32);
        QCOMPARE(int(c.steps.size()), 33);
        for (int i = 0; i < 32; ++i) {
            QCOMPARE(c.steps[std::size_t(i)], 4);
            QCOMPARE(c.products[std::size_t(i)], 3);
            QCOMPARE(c.layouts[std::size_t(i)].step_bytes, 640);
            QCOMPARE(c.layouts[std::size_t(i)].x_bytes, 32 * 256 + 128 + 32 * 8 + 12 * 2 * 64);
            QCOMPARE(c.layouts[std::size_t(i)].depth, 3);
        }
        QCOMPARE(c.products[32], 1);
    }

    // What is lost: 4 heads at a time of attention have 28,800 bytes, and two products are between it and
    // `down`.
    void small_cards_run_grouped_heads_one_by_one() {
        const Collected c = collect(llama_8b, 1, rtx_shared, rtx_blocks);
        QCOMPARE(c.alone, 2 * 32);
        for (const int products : c.products)
            QVERIFY(products < least_products);
    }

    // By what was measured (program_room.h): few products pay at one and two rows; at three and four those of
    // some layers do, with rings that hold more than three bites.
    void short_programs_of_many_rows_run_one_by_one() {
        const auto depth = [](int n) { return ProgramLayout{144, 1024, n * 2176, n}; };
        for (const int rows : {1, 2}) {
            QVERIFY(is_worthwhile(3, rows, depth(3)));
            QVERIFY(!is_worthwhile(2, rows, depth(8)));
        }
        for (const int rows : {3, 4}) {
            QVERIFY(is_worthwhile(129, rows, depth(4)));   // Llama-2-7B
            QVERIFY(!is_worthwhile(113, rows, depth(3)));  // Qwen2.5-7B, three rows
            QVERIFY(!is_worthwhile(3, rows, depth(6)));    // four
        }
    }

    // A list that has grown costs a new program, not the step: `down` of 23,296 inputs and 3 rows (149,248
    // bytes of 150,016 that are left for list and inputs) fits beside five steps and not beside six.
    void a_long_list_begins_a_new_program() {
        Collected c = collect({3, 512, 23296, 1536, 1, 1008}, 3, h200_shared, h200_blocks);
        QCOMPARE(c.alone, 0);
        QVERIFY(c.steps == (std::vector{5, 5, 5, 1}) && c.products == (std::vector{4, 4, 4, 1}));
        for (int i = 0; i < 3; ++i) {
            QCOMPARE(c.layouts[std::size_t(i)].x_bytes, 149248);
            QCOMPARE(c.layouts[std::size_t(i)].depth, 3);
        }
        QCOMPARE(c.layouts[3].depth, 8);
        // 35,328 inputs and 2 rows, 149,120 bytes: six steps, so that attention is the first of the second
        // program.
        c = collect({2, 512, 35328, 1536, 1, 1008}, 2, h200_shared, h200_blocks);
        QCOMPARE(c.alone, 0);
        QVERIFY(c.steps == (std::vector{6, 5}) && c.products == (std::vector{5, 4}));
        QCOMPARE(c.layouts[0].x_bytes, 149120);
        // 37,888 and 2 rows: `down` by itself, and the programs between are worth it.
        c = collect({2, 512, 37888, 1536, 1, 1008}, 2, h200_shared, h200_blocks);
        QCOMPARE(c.alone, 2);
        QVERIFY(c.steps == (std::vector{4, 4, 1}) && c.products == (std::vector{3, 3, 1}));
        // 18,944 and 4 rows: `down` by itself, as of Qwen2.5-7B.
        c = collect({2, 512, 18944, 1536, 1, 1008}, 4, h200_shared, h200_blocks);
        QCOMPARE(c.alone, 2);
        QVERIFY(c.steps == (std::vector{4, 4, 1}));
    }
};

RECTO_TEST_CLASS(TestCudaProgramCut);
#include "test_cuda_program_cut.moc"
