// What a model needs of a device, on made-up cards: the arithmetic of budgets and of layers kept in host
// memory. Expected values: the sizes that the starter's header states, added up by hand in the comments.
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "engine/choose_device.h"
#include "engine/save/make_model.h"
#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr std::uint64_t mib = 1 << 20;
// Of the starter: embedding Q8_0 49152 × 576 × 34/32 = 30,081,024; the last norm 2,304; a layer 2,211,840 of
// Q4_1 (3,538,944 weights × 20/32) and two norms of 2,304.
constexpr std::uint64_t layer_bytes = 2'211'840 + 4'608, other_bytes = 30'081'024 + 2'304;
constexpr int layers = 30;

DeviceInfo card(std::uint64_t free_bytes) {
    DeviceInfo device;
    device.kind = "cuda";
    device.activation = DType::f16;
    device.memory_total = device.memory_free = free_bytes;
    return device;
}

}  // namespace

class TestMemoryEstimate : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() { source_ = open_model(starter_path()); }

    // CLI.md: auto is 8 bits on the CPU and 16 on a card. What a card lacks is refused, not replaced.
    void activations_are_what_was_asked_for() {
        DeviceInfo device = card(80'000 * mib);
        LoadOptions asked;
        QCOMPARE(settle_activations(device, asked), Activations::floating);
        asked.activations = ActivationMode::eight;
        QVERIFY_THROWS_EXCEPTION(Error, settle_activations(device, asked));
        device.eight_bit = Activations::token_fp8;
        QCOMPARE(settle_activations(device, asked), Activations::token_fp8);
        asked.activations = ActivationMode::floating;
        QCOMPARE(settle_activations(device, asked), Activations::floating);
        DeviceInfo cpu;
        cpu.kind = "cpu";
        cpu.eight_bit = Activations::int8;
        QCOMPARE(settle_activations(cpu, {}), Activations::int8);
        LoadOptions exact;
        exact.dtype = ModelDType::f32;
        QCOMPARE(settle_activations(cpu, exact), Activations::floating);
    }

    void everything_fits() {
        const MemoryEstimate e = estimate_memory(*source_, card(80'000 * mib));
        QCOMPARE(e.weight_bytes, other_bytes + layers * layer_bytes);
        QCOMPARE(e.host_weight_bytes, 0U);
        QVERIFY(e.host_layers.empty());
        QCOMPARE(e.budget_bytes, std::uint64_t(double(80'000 * mib) * 0.9));
        QVERIFY(e.fits && e.needed_offload_bytes == 0);
        QCOMPARE(e.longest_context, 8192);
    }

    // The CPU gives all that is free; the card's share and offload are none of its business.
    void the_cpu_has_no_budget() {
        DeviceInfo cpu = card(2'000 * mib);
        cpu.kind = "cpu";
        LoadOptions options;
        options.gpu_memory_utilization = 0.05;
        options.cpu_offload_bytes = 20 * mib;
        const MemoryEstimate e = estimate_memory(*source_, cpu, options);
        QCOMPARE(e.budget_bytes, 2'000 * mib);
        QCOMPARE(e.host_weight_bytes, 0U);
    }

    // A card takes 8,192 rows of 16-bit activations and 256 rows of logits a step, and 16 of prompts', the
    // CPU 512 and 16 of 32 bits.
    void the_workspace_is_the_devices() {
        const MemoryEstimate e = estimate_memory(*source_, card(80'000 * mib));
        // Residual and norm 576 × 6, q|k|v 960 × 2, attention 576 × 2, gated 1536 × 2, RoPE 64 × 4; logits
        // and the gathered rows (49152 + 576 + 1) × 4. The step's arrays with three tables of 256 × 512.
        const std::uint64_t expected =
            8192ULL * (3456 + 1920 + 1152 + 3072 + 256) + 272ULL * 198'916 + 3 * 256 * 512 * 4;
        QVERIFY(e.workspace_bytes >= expected && e.workspace_bytes < expected + mib);
    }

    // What the card's operations keep, by the shapes of the header: as card_scratch.h adds it up.
    void the_workspace_holds_what_operations_keep() {
        DeviceInfo device = card(80'000 * mib);
        const std::uint64_t plain = estimate_memory(*source_, device).workspace_bytes;
        device.card = {132, true, true, true};
        const std::uint64_t sums = 132ULL * 2 * 2 * 128 * 128 * 4 + 65536 * 4, library = 64 * mib;
        const std::uint64_t rows = 8192ULL * (1536 + 2 * 1536) * 2 + 512;
        // 3 of 9 heads share a KV head: 3,168 partial results of 3 heads, two counts; 256 + 1,056 shares, 192
        // + 256 tiles.
        const std::uint64_t attention = 3168ULL * (3 * 66 * 4 + 4) + 8;
        const std::uint64_t plan = 16ULL * (1 + 1312 + 448);
        const std::uint64_t expected = sums + library + rows + attention + plan + (plan + 255) / 256 * 256;
        QCOMPARE(estimate_memory(*source_, device).workspace_bytes - plain, expected);
        // Nothing quantized is left, and FP32 has no tensor-core products.
        LoadOptions exact;
        exact.dtype = ModelDType::f32;
        QCOMPARE(estimate_memory(*source_, device, exact).workspace_bytes - plain, expected - (rows - 512));
    }

    // A second model finds the first one's scratch memory, and uses it.
    void what_operations_hold_is_in_the_budget() {
        DeviceInfo device = card(70'000 * mib);
        device.scratch_held = 10'000 * mib;
        QCOMPARE(estimate_memory(*source_, device).budget_bytes, std::uint64_t(double(80'000 * mib) * 0.9));
    }

    void packed_weights_data() {
        QTest::addColumn<double>("card_bits");  // of codes, 16-bit scales and, where there are any, offsets
        QTest::newRow("Q4_0") << 4.5;
        QTest::newRow("Q4_1") << 5.0;
        QTest::newRow("Q5_0") << 8.5;
        QTest::newRow("Q5_1") << 9.0;
        QTest::newRow("Q8_0") << 8.5;
        QTest::newRow("Q2_K") << 6.0;  // groups of 16
        QTest::newRow("Q3_K") << 5.0;  // the same
        QTest::newRow("Q4_K") << 5.0;
        QTest::newRow("Q5_K") << 9.0;
        QTest::newRow("Q6_K") << 9.0;  // groups of 16
        QTest::newRow("IQ4_NL") << 8.5;
        QTest::newRow("IQ4_XS") << 8.5;
        QTest::newRow("F16") << 16.0;
        QTest::newRow("F32") << 16.0;  // rounded
    }

    // Codes of 2, 3, 5 and 6 bits are wider in memory than in the file. On the CPU the estimate is what a
    // load takes, but for the rounding of a tile's planes to 64 bytes.
    void packed_weights() {
        QFETCH(double, card_bits);
        const QTemporaryDir folder;
        const auto path = std::filesystem::path(folder.path().toStdString()) /
                          (std::string(QTest::currentDataTag()) + ".gguf");
        MakeModelOptions options;
        options.quantization = std::string("gguf:") + QTest::currentDataTag();
        make_model(options, path);
        const auto source = open_model(path);
        double elements = 0, norms = 0;
        for (const TensorInfo& t : source->tensors())
            if (t.shape.size() == 2)
                elements += double(t.shape[0] * t.shape[1]);
            else
                norms += double(t.bytes);
        const MemoryEstimate e = estimate_memory(*source, card(80'000 * mib));
        QVERIFY2(std::fabs(double(e.weight_bytes) - elements * card_bits / 8 - norms) < 64,
                 qPrintable(QString::number(e.weight_bytes)));
        const auto backend = cpu_backend();
        const double expected = double(estimate_memory(*source, backend->device()).weight_bytes);
        const double loaded = double(load_model(path, backend)->weight_bytes);
        QVERIFY2(loaded >= expected && loaded < expected * 1.03,
                 qPrintable(QStringLiteral("%1 of %2").arg(loaded).arg(expected)));
    }

    void offload_takes_whole_layers_evenly() {
        LoadOptions options;
        options.cpu_offload_bytes = 9 * layer_bytes + 1;
        const MemoryEstimate e = estimate_memory(*source_, card(80'000 * mib), options);
        QCOMPARE(e.host_weight_bytes, 10 * layer_bytes);
        // Two layers at a time pass through the card.
        QCOMPARE(e.weight_bytes, other_bytes + (layers - 10 + 2) * layer_bytes);
        QCOMPARE(e.host_layers, (std::vector<int>{1, 4, 7, 10, 13, 16, 19, 22, 25, 28}));
    }

    void more_than_all_layers_is_all() {
        LoadOptions options;
        options.cpu_offload_bytes = 1'000 * mib;
        const MemoryEstimate e = estimate_memory(*source_, card(80'000 * mib), options);
        QCOMPARE(e.host_layers.size(), std::size_t(layers));
        QCOMPARE(e.host_layers.front(), 0);
        QCOMPARE(e.host_layers.back(), layers - 1);
    }

    // Room for 2,048 tokens of 23,040 bytes, 47,185,920 bytes, is what 22 layers free; two more pass through
    // the card.
    void the_needed_offload_is_named() {
        const MemoryEstimate all = estimate_memory(*source_, card(80'000 * mib));
        LoadOptions options;
        options.gpu_memory_utilization = 1;
        const DeviceInfo small = card(all.weight_bytes + all.workspace_bytes);
        const MemoryEstimate e = estimate_memory(*source_, small, options);
        QCOMPARE(e.longest_context, 0);
        QCOMPARE(e.needed_offload_bytes, 24 * layer_bytes);
        options.cpu_offload_bytes = e.needed_offload_bytes;
        const MemoryEstimate offloaded = estimate_memory(*source_, small, options);
        QCOMPARE(offloaded.host_layers.size(), 24U);
        QVERIFY(offloaded.longest_context >= 2048);
        QCOMPARE(offloaded.needed_offload_bytes, 0U);
    }

    void no_offload_helps_a_card_that_is_too_small() {
        const MemoryEstimate e = estimate_memory(*source_, card(40 * mib));
        QCOMPARE(e.longest_context, 0);
        QCOMPARE(e.needed_offload_bytes, 0U);
    }

    void less_than_the_full_context() {
        const MemoryEstimate all = estimate_memory(*source_, card(80'000 * mib));
        LoadOptions options;
        options.gpu_memory_utilization = 0.5;
        const std::uint64_t budget = all.weight_bytes + all.workspace_bytes + 1000 * all.kv_bytes_per_token;
        const MemoryEstimate e = estimate_memory(*source_, card(2 * budget), options);
        QCOMPARE(e.longest_context, 1000);
        QVERIFY(!e.fits);
    }

  private:
    std::unique_ptr<ModelSource> source_;
};

RECTO_TEST_CLASS(TestMemoryEstimate);
#include "test_memory_estimate.moc"
