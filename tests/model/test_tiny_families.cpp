// A tiny random model of each dense family and feature against transformers' logits in float64, and its GGUF
// twin (tests/data/model/make_tiny_families.py; check_family_twins.py holds the twins against llama.cpp).
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QDir>
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

class TestTinyFamilies : public QObject {
    Q_OBJECT

    static constexpr std::size_t vocab = 128;
    static constexpr std::size_t stride = 3;  // positions from one stored row of logits to the next

    static QString folder(const QString& name) {
        return QStringLiteral(RECTO_TEST_DATA "/model/families/") + name;
    }

    static std::shared_ptr<const Model> load(const QString& path, ModelDType dtype = ModelDType::f32) {
        LoadOptions options;
        options.dtype = dtype;
        return load_model(path.toStdString(), cpu_backend(), options);
    }

    static std::vector<std::int32_t> ids_of(const QString& name) {
        return read_json(folder(name) + "/ids.json").get<std::vector<std::int32_t>>();
    }

    static std::vector<float> exact_logits(const QString& path, const QString& name) {
        SequenceLogitsOptions options;
        options.kv_dtype = DType::f32;
        return all_logits(load(path), ids_of(name), options);
    }

    // Every row: a folder, and the twin where there is one.
    static void add_models(bool twins_only = false) {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("path");
        for (const QString& name :
             QDir(folder({})).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name)) {
            if (!twins_only) QTest::newRow(qPrintable(name)) << name << folder(name);
            const QString twin = folder(name) + "/twin.gguf";
            if (QFile::exists(twin)) QTest::newRow(qPrintable(name + " GGUF")) << name << twin;
        }
    }

    // `found` has every one of the `positions`, `expected` each `stride`-th.
    static void compare(const std::vector<float>& found, const std::vector<float>& expected,
                        std::size_t positions, double bound) {
        QCOMPARE(found.size(), positions * vocab);
        QCOMPARE(expected.size(), (positions + stride - 1) / stride * vocab);
        double worst = 0;
        std::size_t at = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const std::size_t position = i / vocab * stride;
            const double error = std::abs(double(found[position * vocab + i % vocab]) - double(expected[i]));
            if (!(error <= worst)) {
                worst = error;
                at = position;
            }
        }
        QVERIFY2(worst < bound,
                 qPrintable(
                     QStringLiteral("max error %1 at position %2, bound %3").arg(worst).arg(at).arg(bound)));
    }

    // `tokens` greedy ones after `prompt`; how much of the prompt came out of the cache goes to `cached`.
    static std::vector<std::int32_t> greedy(Engine& engine, const std::vector<std::int32_t>& prompt,
                                            std::size_t tokens, int& cached) {
        Request request = greedy_request(prompt, int(tokens));
        request.sampling.ignore_eos =
            false;  // min_tokens masks the end token, as transformers' min_new_tokens
        request.sampling.min_tokens = int(tokens);
        const RequestId id = engine.submit(std::move(request));
        const Answer answer = run_to_end(engine).at(id);
        cached = answer.metrics.cached_tokens;
        return answer.tokens;
    }

  private slots:
    void the_models_are_there() {
        QCOMPARE(QDir(folder({})).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 17);
    }

    void logits_match_transformers_data() { add_models(); }
    void logits_match_transformers() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        const std::vector<float> expected = read_floats(folder(name) + "/logits.f32");
        compare(exact_logits(path, name), expected, 160, 2e-3 * standard_deviation(expected));
    }

    // A longrope model that will run no more than its original context takes the short factors.
    void short_contexts_of_longrope_data() {
        QTest::addColumn<QString>("path");
        for (const char* file : {"phi3-longrope", "phi4-partial", "phi3-longrope/twin.gguf"})
            QTest::newRow(file) << folder(file);
    }
    void short_contexts_of_longrope() {
        QFETCH(QString, path);
        const QString name = path.contains("phi4") ? "phi4-partial" : "phi3-longrope";
        LoadOptions load_options;
        load_options.dtype = ModelDType::f32;
        load_options.context = 64;
        const auto model = load_model(path.toStdString(), cpu_backend(), load_options);
        QCOMPARE(model->config.max_position, 64);
        SequenceLogitsOptions options;
        options.kv_dtype = DType::f32;
        auto ids = ids_of(name);
        ids.resize(64);
        const std::vector<float> expected = read_floats(folder(name) + "/logits_short.f32");
        compare(all_logits(model, ids, options), expected, 64, 2e-3 * standard_deviation(expected));
        const std::vector<float> with_long = read_floats(folder(name) + "/logits.f32");
        QVERIFY(std::abs(with_long[60 / stride * vocab] - expected[60 / stride * vocab]) >
                2e-3 * standard_deviation(expected));
    }

    // The weights are the same numbers, so the logits are the same bits. Not where the file rounds what the
    // folder says: llama3's divisors and longrope's magnitude are stored in single precision.
    void twins_give_the_same_bits_data() { add_models(true); }
    void twins_give_the_same_bits() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        const std::vector<float> twin = exact_logits(path, name), own = exact_logits(folder(name), name);
        QCOMPARE(twin.size(), own.size());
        if (name == "llama-llama3") {
            for (std::size_t i = 0; i < own.size(); ++i)
                QVERIFY(std::abs(twin[i] - own[i]) < 1e-3 * standard_deviation(own));
            return;
        }
        QVERIFY(std::memcmp(twin.data(), own.data(), own.size() * sizeof(float)) == 0);
    }

    void bits_do_not_depend_on_chunks_or_blocks_data() { add_models(); }
    void bits_do_not_depend_on_chunks_or_blocks() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        const auto ids = ids_of(name);
        for (const ModelDType dtype : {ModelDType::f32, ModelDType::automatic}) {
            const auto model = load(path, dtype);
            const QString broken = broken_invariance(model, ids, {1, 7, 64, 160});
            QVERIFY2(broken.isEmpty(), qPrintable(broken));
        }
    }

    void greedy_text_matches_transformers_data() { add_models(); }
    void greedy_text_matches_transformers() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        const auto model = load(path);
        auto ids = ids_of(name);
        ids.resize(16);
        const auto expected = read_json(folder(name) + "/greedy.json").get<std::vector<std::int32_t>>();
        QCOMPARE(expected.size(), std::size_t(64));
        for (const int block_size : {8, 16, 32})
            for (const int chunk : {1, 7, 64}) {
                EngineOptions options;
                options.block_size = block_size;
                options.kv_blocks = 512 / block_size;
                options.fixed_chunk_tokens = chunk;
                Engine engine(model, options);
                int cached = -1;
                QCOMPARE(greedy(engine, ids, expected.size(), cached), expected);
                QCOMPARE(cached, 0);
                // The text so far as the prompt: its full blocks come out of the prefix cache.
                std::vector<std::int32_t> longer = ids;
                longer.insert(longer.end(), expected.begin(), expected.begin() + 40);
                QCOMPARE(greedy(engine, longer, expected.size() - 40, cached),
                         std::vector<std::int32_t>(expected.begin() + 40, expected.end()));
                QCOMPARE(cached, (int(longer.size()) - 1) / block_size * block_size);
            }
    }
};

RECTO_TEST_CLASS(TestTinyFamilies);
#include "test_tiny_families.moc"
