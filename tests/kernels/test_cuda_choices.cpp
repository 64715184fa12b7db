// Which kernel of a card serves a shape, and what `kernels --list` says of it, without a card.
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include <sstream>

#include "kernels/bench.h"
#include "kernels/cuda/choices.h"
#include "kernels/cuda/general_cut.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::cuda;

namespace {

constexpr CardTraits h200{132, true, true, true}, a100{108, true, false, true}, old_card{80};

std::string list(const CardTraits& card) {
    DeviceInfo device;
    device.kind = "cuda";
    device.name = "a card";
    device.card = card;
    if (card.hopper) device.eight_bit = Activations::token_fp8;
    std::ostringstream out;
    list_card_variants(device, out);
    return out.str();
}

bool says(const std::string& text, const std::string& line) {
    return text.find("\n" + line) != std::string::npos;
}

}  // namespace

class TestCudaChoices : public QObject {
    Q_OBJECT
  private slots:
    // 688 units of 16 outputs, gates and ups, over 132 blocks: 5 each, and 28 blocks have one more.
    void steps_of_few_rows() {
        QVERIFY(list(h200).find("decode steps of 1 to 4 rows") != std::string::npos);
        QVERIFY(list(h200).find("132 blocks; of gate|up 22016x4096 in 4 bits each has 5 to 6 of 688 pairs") !=
                std::string::npos);
        QVERIFY(list(old_card).find("decode steps") == std::string::npos);
    }

    void products_by_rows() {
        using K = ProductKernel;
        QCOMPARE(choose_product(h200, TileKind::dense, false, 32), K::own);
        QCOMPARE(choose_product(h200, TileKind::dense, false, 33), K::library);
        QCOMPARE(choose_product(h200, TileKind::u4, false, 8192), K::own);
        QCOMPARE(choose_product(a100, TileKind::u8, false, 128), K::own);
        QCOMPARE(choose_product(a100, TileKind::u8, false, 129), K::unpacked);
        QCOMPARE(choose_product(h200, TileKind::u4, true, 256), K::own);
        QCOMPARE(choose_product(h200, TileKind::u4, true, 257), K::eight_bit);
        QCOMPARE(choose_product(h200, TileKind::dense, true, 257),
                 K::library);  // nothing to gain by rounding
        QCOMPARE(choose_product(old_card, TileKind::u4, true, 257), K::plain);
        const CardTraits alone{132, true, true, false};  // without cuBLASLt
        QCOMPARE(choose_product(alone, TileKind::dense, false, 8192), K::own);
        QCOMPARE(choose_product(alone, TileKind::u4, false, 8192), K::own);
    }

    // Few tiles are shared until the card is full; a block keeps four chunks.
    void general_cuts() {
        const GeneralShape one = choose_general_cut(64, 32, 1, 108);  // 64 tiles, 432 blocks wanted: 6
        QCOMPARE(one.tokens, 8);
        QCOMPARE(one.run, 6);
        QCOMPARE(one.splits, 6);
        const GeneralShape many = choose_general_cut(64, 32, 2048, 108);
        QCOMPARE(many.tokens, 64);
        QCOMPARE(many.splits, 1);
        QCOMPARE(choose_general_cut(1, 1, 1, 108).splits, 1);
    }

    void draws_and_experts() {
        QCOMPARE(draw_parts(1, 128256), 16);  // at most
        QCOMPARE(draw_parts(64, 128256), 4);  // 264 blocks
        QCOMPARE(draw_parts(256, 128256), 1);
        QCOMPARE(draw_parts(1, 100), 1);
        QCOMPARE(expert_tile_tokens(2, 1, 8), 8);
        QCOMPARE(expert_tile_tokens(128, 64, 8), 32);
        QCOMPARE(expert_tile_tokens(512, 256, 8), 64);
        QCOMPARE(expert_tiles(2, 8, 8), 2);
        QCOMPARE(expert_tiles(512, 64, 8), 16);
        QCOMPARE(expert_splits(132, 2, 64, 112, 8), 4);  // 528 blocks for 128 tiles
        QCOMPARE(expert_splits(132, 2, 64, 112, 3), 3);
        QCOMPARE(expert_splits(132, 1000, 64, 112, 8), 1);
    }

    void the_list_of_a_hopper_card() {
        const std::string text = list(h200);
        QVERIFY2(says(text, "linear 16-bit, 4096x4096, rows 1: wgmma, tiles of 128 outputs x 8 rows"),
                 text.c_str());
        QVERIFY(says(text, "linear 16-bit, 4096x11008, rows 64: cuBLASLt\n"));
        QVERIFY2(
            says(text,
                 "linear 4-bit g32, 4096x4096, rows 1: mma.sync, 128 blocks of 2 slabs of 16 outputs x 8 "
                 "rows"),
            text.c_str());  // 256 slabs on 132 multiprocessors
        QVERIFY(says(text, "linear 4-bit g32, 4096x4096, rows 256: wgmma, tiles of 128 outputs"));
        QVERIFY2(says(text, "linear 4-bit g32, 4096x4096, rows 2048: wgmma, tiles of 128 outputs x 256 rows"),
                 text.c_str());
        QVERIFY(says(
            text, "linear 8-bit g32, fp8_e4m3 above 256 rows, 4096x11008, rows 2048: rounded, 2048 outputs"));
        QVERIFY(says(text,
                     "experts, 2 of 8, 4096x14336, rows 1: grouped mma.sync, tiles of 64 outputs x 8 rows"));
        QVERIFY(
            says(text, "attention, 32/8 heads of 128, decode of 1 x 16384 tokens: split over the context"));
        QVERIFY(says(text, "attention, 32/32 heads of 128, prefill of 2048 tokens: tiles of 128"));
        QVERIFY(says(text, "draw, vocabulary 128256, rows 64: on the device, 4 blocks a row"));
    }

    void the_lists_of_other_cards() {
        const std::string general = list(a100), plain = list(old_card);
        QVERIFY2(says(general,
                      "linear 4-bit g32, 4096x4096, rows 1: mma.sync, tiles of 64 outputs x 8 rows, each "
                      "shared by 6 blocks of 6 chunks\n"),
                 general.c_str());
        QVERIFY(general.find("wgmma") == std::string::npos && general.find("fp8") == std::string::npos);
        QVERIFY(says(plain, "linear 4-bit g32, 4096x4096, rows 256: plain kernel\n"));
        QVERIFY(says(plain, "attention: plain kernel\n") && says(plain, "experts: plain kernel\n"));
        QVERIFY(says(plain, "draw, vocabulary 32000"));
    }
};

RECTO_TEST_CLASS(TestCudaChoices);
#include "test_cuda_choices.moc"
