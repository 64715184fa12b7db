// What a card's backend takes for its operations, added up by hand for shapes of well-known models on an
// H200. Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "kernels/card_scratch.h"
#include "kernels/cuda/scratch_sizes.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::cuda;

namespace {

constexpr CardTraits h200{132, true, true, true};
constexpr std::size_t mib = 1 << 20;
constexpr std::size_t partials = 132 * 2 * 2 * 128 * 128 * 4;

ProductNeeds llama_2_7b(bool grouped, bool eight) {
    ProductNeeds needs;
    expect_product(needs, {12288, 4096, false, grouped, eight});
    expect_product(needs, {22016, 4096, true, grouped, eight});
    expect_product(needs, {4096, 11008, false, grouped, eight});
    expect_product(needs, {32000, 4096});
    return needs;
}

}  // namespace

class TestCardScratch : public QObject {
    Q_OBJECT
  private slots:
    // The output head has more columns than gate|up, but nothing of it meets after a product.
    void dense_products() {
        const ProductNeeds needs = llama_2_7b(false, false);
        QCOMPARE(needs.input, 11008);
        QCOMPARE(needs.pair, 22016);
        QCOMPARE(needs.unpacked_bytes, 0);
        const LinearSizes s = linear_sizes(h200, needs, 8192);
        QCOMPARE(s.partials, partials);
        QCOMPARE(s.library, 64 * mib);
        QCOMPARE(s.rows, 8192UL * (11008 + 22016) * 2 + 512);
        QCOMPARE(s.unpacked, 0U);
        QCOMPARE(product_scratch_bytes(h200, needs, 8192), partials + 65536 * 4 + 64 * mib + s.rows);
    }

    void few_rows_need_no_library() {
        const LinearSizes s = linear_sizes(h200, llama_2_7b(true, false), 32);
        QCOMPARE(s.library, 0U);
        QCOMPARE(s.unpacked, 0U);
        QCOMPARE(linear_sizes({132, true, true, false}, {}, 8192).library, 0U);  // there is none
    }

    // Where there is no wgmma, from the row count on at which they go through cuBLASLt.
    void quantized_weights_are_unpacked() {
        const ProductNeeds needs = llama_2_7b(true, false);
        QCOMPARE(needs.unpacked_bytes, std::int64_t(64 * mib));  // gate|up has 172 MiB
        QCOMPARE(linear_sizes(h200, needs, 8192).unpacked, 0U);  // products of its own for any rows
        QCOMPARE(linear_sizes({108, true, false, true}, needs, 128).unpacked, 0U);
        QCOMPARE(linear_sizes({108, true, false, true}, needs, 129).unpacked, 64 * mib);
        ProductNeeds small;  // 43 gate and 43 up rows: two blocks of 32 each, of 64 lines of 96 numbers
        expect_product(small, {86, 96, true, true});
        QCOMPARE(small.unpacked_bytes, 2 * 64 * 96 * 2);
    }

    // 32 MiB of 4,096 inputs are 8,192 outputs; of 11,008 inputs 3,048, of which 2,048 are whole thousands.
    void eight_bit_products() {
        QCOMPARE(eight_slice_groups(4096, 10000), 8192 / 16);
        QCOMPARE(eight_slice_groups(11008, 10000), 2048 / 16);
        QCOMPARE(eight_slice_groups(4096, 7), 7);
        const ProductNeeds needs = llama_2_7b(true, true);
        QCOMPARE(needs.eight_input, 11008);
        QCOMPARE(needs.eight_slice_bytes, std::int64_t(32 * mib));
        QCOMPARE(eight_sizes(needs, 256).x8, 0U);
        const EightSizes s = eight_sizes(needs, 8192);
        QCOMPARE(s.x8, 8192U * 11008);
        QCOMPARE(s.x_scale, 8192U * 4);
        QCOMPARE(s.w8, 32 * mib);
        QCOMPARE(s.sums, 32 * mib);
    }

    // Mixtral: 8 experts of 4,096 outputs, FP32. 64 MiB hold 4,096 slots of 16 KiB, however many rows a step
    // has.
    void mixtures() {
        ProductNeeds needs;
        needs.experts = 8;
        needs.expert_row_bytes = 4096 * 4;
        QCOMPARE(expert_sizes(needs, 8192).most_slots, 4096);
        QCOMPARE(expert_sizes(needs, 8192).products, 64 * mib);
        QCOMPARE(expert_sizes(needs, 8192).sorted, 4096U * 16 + 256);
        QCOMPARE(expert_sizes(needs, 8192).inputs, 0U);
        // One row's 8 slots, each shared by up to 8 blocks.
        QCOMPARE(expert_sizes(needs, 1).most_slots, 8);
        QCOMPARE(expert_sizes(needs, 1).products, 8U * 8 * 4096 * 4);
        QCOMPARE(expert_sizes({}, 8192).sorted, 0U);
    }

    // 32 heads of 128, no groups: 3,168 partial results of one head, two counts; 256 rows and 99 splits of
    // each head at most, and 64 tiles a chunk with 256 cut ones.
    void a_steps_arrays() {
        BatchLimits limits;
        limits.max_rows = 8192;
        limits.max_sequences = limits.max_outputs = 256;
        limits.max_blocks = 256;
        const std::size_t tables = 256 * 256 * 4;
        const PacketSizes packet = packet_sizes(limits, 0);
        // Five numbers a row; a draw is 40 bytes, 16 parts of 12; query_start alone is not a multiple of 256.
        QCOMPARE(packet.fixed, 5UL * 32768 + 4 * 1024 + 256 + 256 * (40 + 192) + 2 * tables);
        QCOMPARE(packet.landing, (5UL * 8192 + 256 * 11 + 6 * 256 + 1) * 4 + tables);
        QCOMPARE(step_scratch_bytes(h200, limits), packet.fixed + packet.landing);
        limits.heads = {32, 32, 128};
        const std::size_t plan = 16 * (1 + (256 + 99) + (64 + 256));
        QCOMPARE(step_scratch_bytes(h200, limits),
                 packet.fixed + packet.landing + 3168 * (130 * 4 + 4) + 8 + plan + (plan + 255) / 256 * 256);
    }

    void plain_kernels_need_only_the_step() {
        BatchLimits limits;
        limits.heads = {32, 32, 128};
        CardTraits plain = h200;
        plain.tiles = false;
        QCOMPARE(card_scratch_bytes(plain, llama_2_7b(false, false), limits),
                 step_scratch_bytes(plain, limits));
        QCOMPARE(
            card_scratch_bytes(h200, llama_2_7b(false, false), limits),
            product_scratch_bytes(h200, llama_2_7b(false, false), 512) + step_scratch_bytes(h200, limits));
    }
};

RECTO_TEST_CLASS(TestCardScratch);
#include "test_card_scratch.moc"
