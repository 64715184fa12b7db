// The starter model's real file. RECTO_STARTER_MODEL names it; without it these tests fail.
// Expected numbers: gguf-py 0.19.0 reading the same file.
#include <QTest>
#include <cmath>

#include "engine/load/model_source.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;

class TestStarter : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        QVERIFY2(qEnvironmentVariableIsSet("RECTO_STARTER_MODEL"),
                 "RECTO_STARTER_MODEL should be the path of SmolLM2-135M-Instruct.Q4_1.gguf");
        source_ = open_model(qgetenv("RECTO_STARTER_MODEL").toStdString());
    }

    void configuration() {
        const ModelConfig& c = source_->config();
        QCOMPARE(c.layers, 30);
        QCOMPARE(c.heads, 9);
        QCOMPARE(c.kv_heads, 3);
        QCOMPARE(c.head_dim, 64);
        QCOMPARE(c.hidden, 576);
        QCOMPARE(c.intermediate, 1536);
        QCOMPARE(c.vocab, 49152);
        QCOMPARE(c.max_position, 8192);
        QCOMPARE(c.rope.theta, 100000.0);
        QVERIFY(c.tied_embedding);
        QCOMPARE(source_->quantization(), std::string("Q4_1 (mixed)"));
        QCOMPARE(source_->tensors().size(), 272U);
        QCOMPARE(source_->file_bytes(), 98362432U);
    }

    void vocabulary() {
        const auto files = source_->tokenizer_files();
        QCOMPARE(files.gguf->tokens.size(), 49152U);
        QCOMPARE(files.gguf->merges.size(), 48900U);
        QCOMPARE(files.gguf->tokens[1], std::string("<|im_start|>"));
        QCOMPARE(files.gguf->pre, std::string("smollm"));
        QVERIFY(files.chat_template.starts_with("{% for message in messages %}"));
    }

    void weights() {
        for (const auto& [role, layer, expected] : expected_sums()) {
            const auto weight = source_->weight(role, layer);
            std::vector<float> row(std::size_t(weight->cols()));
            double sum = 0, squares = 0;
            for (std::int64_t r = 0; r < weight->rows(); ++r) {
                weight->read_f32(r, 1, row.data());
                for (std::size_t i = 0; i < row.size(); ++i)
                    sum += row[i] * double(1 + (r + std::int64_t(i)) % 7);
                for (const float w : row)
                    squares += double(w) * w;
            }
            QVERIFY2(std::abs(sum - expected.weighted) < 1e-6 * std::sqrt(squares) * 100,
                     QByteArray::number(sum, 'g', 17));
            QVERIFY2(std::abs(squares / expected.squares - 1) < 1e-9, QByteArray::number(squares, 'g', 17));
        }
    }

  private:
    struct Sums {
        double weighted, squares;  // Σ w·(1 + (row + column) mod 7), Σ w², rows in Hugging Face's order
    };
    struct Expected {
        TensorRole role;
        int layer;
        Sums sums;
    };
    static std::vector<Expected> expected_sums();

    std::unique_ptr<ModelSource> source_;
};

std::vector<TestStarter::Expected> TestStarter::expected_sums() {
    return {
        {TensorRole::embedding, 0, {-63066.70046901703, 520415.71544763993}},
        {TensorRole::attn_q, 0, {512.3338928222656, 26749.573275085306}},
        {TensorRole::attn_k, 17, {281.4458770751953, 3902.2612334810547}},
        {TensorRole::attn_v, 29, {-198.05377197265625, 9188.002153100446}},
        {TensorRole::ffn_down, 11, {490.98216247558594, 35137.2006794319}},
    };
}

RECTO_TEST_CLASS(TestStarter);
#include "test_starter.moc"
