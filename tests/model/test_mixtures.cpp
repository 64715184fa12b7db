// Tiny random mixtures of experts against transformers' logits in float64
// (tests/data/model/make_tiny_mixtures.py): Mixtral and Qwen3-MoE, from folders and from GGUF.
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

class TestMixtures : public QObject {
    Q_OBJECT

    static QString folder(const QString& name) {
        return QStringLiteral(RECTO_TEST_DATA "/model/mixture/") + name;
    }
    static QString twin(const QString& name) { return folder(name) + "/twin.gguf"; }

    static std::shared_ptr<const Model> load(const QString& path, ModelDType dtype = ModelDType::f32) {
        LoadOptions options;
        options.dtype = dtype;
        return load_model(path.toStdString(), cpu_backend(), options);
    }

    static std::vector<std::int32_t> ids_of(const QString& name) {
        return read_json(folder(name) + "/ids.json").get<std::vector<std::int32_t>>();
    }

    // Everything that can be opened: folders, and GGUF files with what they are held against.
    static void add_models() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("path");
        for (const QString& name :
             QDir(folder({})).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name)) {
            if (QFileInfo::exists(folder(name) + "/config.json"))
                QTest::newRow(qPrintable(name)) << name << folder(name);
            if (QFileInfo::exists(twin(name)))
                QTest::newRow(qPrintable(name + " GGUF")) << name << twin(name);
        }
    }

    static std::vector<float> logits(const std::shared_ptr<const Model>& model, const QString& name) {
        SequenceLogitsOptions options;
        options.kv_dtype = model->kv_dtype;
        return all_logits(model, ids_of(name), options);
    }

    static std::vector<std::int32_t> greedy(Engine& engine, const std::vector<std::int32_t>& prompt,
                                            int tokens) {
        Request request = greedy_request(prompt, tokens);
        request.sampling.ignore_eos =
            false;  // transformers' min_new_tokens masks the end token, as min_tokens does
        request.sampling.min_tokens = tokens;
        const RequestId id = engine.submit(std::move(request));
        return run_to_end(engine).at(id).tokens;
    }

  private slots:
    void the_models_are_there() {
        QCOMPARE(QDir(folder({})).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 5);
        for (const char* name : {"mixtral", "qwen3-moe", "mixtral-quantized"})
            QVERIFY(QFileInfo::exists(twin(name)));
    }

    void logits_match_transformers_data() { add_models(); }
    void logits_match_transformers() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        const std::vector<float> expected = read_floats(folder(name) + "/logits.f32");
        const std::vector<float> found = logits(load(path), name);
        QCOMPARE(found.size(), expected.size());
        double worst = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
            worst = std::max(worst, double(std::abs(found[i] - expected[i])));
        // FP32 against float64: the bound is a thousandth of the logits' own spread.
        const double bound = 1e-3 * standard_deviation(expected);
        QVERIFY2(worst < bound, qPrintable(QStringLiteral("max error %1, bound %2").arg(worst).arg(bound)));
    }

    void greedy_text_matches_transformers_data() { add_models(); }
    void greedy_text_matches_transformers() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        auto prompt = ids_of(name);
        prompt.resize(16);
        const auto expected = read_json(folder(name) + "/greedy.json").get<std::vector<std::int32_t>>();
        EngineOptions options;
        options.kv_blocks = 64;
        Engine engine(load(path), options);
        QCOMPARE(greedy(engine, prompt, int(expected.size())), expected);
    }

    void bits_do_not_depend_on_chunks_or_blocks_data() { add_models(); }
    void bits_do_not_depend_on_chunks_or_blocks() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        const auto ids = ids_of(name);
        // With int8 activations too: a row alone (chunks of 1) is what it is in a batch of 160.
        for (const auto& model : {load(path), load(path, ModelDType::automatic)}) {
            const QString broken = broken_invariance(model, ids, {1, 7, 160});
            QVERIFY2(broken.isEmpty(), qPrintable(broken));
        }
    }

    // Alone, beside seven others, and again from the prefix cache: the same tokens and the same
    // log-probabilities.
    void a_request_is_the_same_alone_in_a_batch_and_from_the_cache_data() { add_models(); }
    void a_request_is_the_same_alone_in_a_batch_and_from_the_cache() {
        QFETCH(QString, name);
        QFETCH(QString, path);
        const auto model = load(path, ModelDType::automatic);
        auto prompt = ids_of(name);
        prompt.resize(70);
        EngineOptions options;
        options.kv_blocks = 128;
        Engine alone(model, options);
        const auto expected = greedy(alone, prompt, 40);
        Engine engine(model, options);
        std::vector<RequestId> requests;
        for (int i = 0; i < 8; ++i) {
            auto other = ids_of(name);
            other.erase(other.begin(), other.begin() + (i == 3 ? 0 : 11 + 5 * i));
            other.resize(i == 3 ? 70 : 30 + 7 * std::size_t(i));
            Request request = greedy_request(other, 40);
            request.sampling.ignore_eos = false;
            request.sampling.min_tokens = 40;
            requests.push_back(engine.submit(std::move(request)));
        }
        auto answers = run_to_end(engine);
        QCOMPARE(answers.at(requests[3]).tokens, expected);
        Request again = greedy_request(prompt, 40);
        again.sampling.ignore_eos = false;
        again.sampling.min_tokens = 40;
        const RequestId id = engine.submit(std::move(again));
        answers = run_to_end(engine);
        QCOMPARE(answers.at(id).tokens, expected);
        QVERIFY(answers.at(id).metrics.cached_tokens >= 64);
    }

    void a_gguf_file_gives_the_bits_of_its_folder() {
        for (const char* name : {"mixtral", "qwen3-moe"})
            QVERIFY2(logits(load(twin(name)), name) == logits(load(folder(name)), name), name);
    }

    // Weights of 4 and 6 bits with int8 activations, against the float64 logits of the same weights.
    void int8_activations_stay_close() {
        const QString name = "mixtral-quantized";
        const std::vector<float> expected = read_floats(folder(name) + "/logits.f32");
        const std::vector<float> found = logits(load(twin(name), ModelDType::automatic), name);
        double squares = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
            squares += double(found[i] - expected[i]) * double(found[i] - expected[i]);
        const double deviation = std::sqrt(squares / double(found.size()));
        // An 8-bit value is rounded by up to 1/254 of its group's largest: a few hundredths after three
        // products.
        QVERIFY2(deviation < 0.05 * standard_deviation(expected), qPrintable(QString::number(deviation)));
        QVERIFY(deviation > 0);
    }

    void the_configuration_says_which_layers_are_mixtures() {
        const auto sparse = load(folder("qwen3-moe"))->config.experts;
        QCOMPARE(sparse.count, 8);
        QCOMPARE(sparse.per_token, 3);
        QCOMPARE(sparse.intermediate, 40);
        QVERIFY(sparse.renormalize);
        QVERIFY((sparse.layers == std::vector<bool>{false, true, false, true}));
        const auto gguf = load(twin("qwen3-moe"))->config.experts;
        QVERIFY(gguf.layers == sparse.layers && gguf.intermediate == 40 && gguf.per_token == 3);
        const auto named = load(folder("qwen3-moe-biases"))->config.experts;
        QVERIFY((named.layers == std::vector<bool>{true, false, true}) && !named.renormalize);
        const auto all = load(folder("mixtral"))->config;
        QVERIFY((all.experts.layers == std::vector<bool>{true, true}) && all.experts.intermediate == 96);
        QCOMPARE(all.family, std::string("Mixtral"));
        QCOMPARE(load(twin("mixtral"))->config.family, std::string("Mixtral"));
    }

    void a_count_that_lies_is_named_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("was");
        QTest::addColumn<QByteArray>("is");
        QTest::addColumn<QByteArray>("named");
        QTest::newRow("more experts") << "mixtral" << QByteArray("\"num_local_experts\": 4")
                                      << QByteArray("\"num_local_experts\": 6") << QByteArray("[6, 64]");
        QTest::newRow("more experts than there are")
            << "mixtral" << QByteArray("\"num_experts_per_tok\": 2")
            << QByteArray("\"num_experts_per_tok\": 5") << QByteArray("all of the 4 experts");
        QTest::newRow("wider experts")
            << "qwen3-moe" << QByteArray("\"moe_intermediate_size\": 40")
            << QByteArray("\"moe_intermediate_size\": 48") << QByteArray("[48, 64]");
        QTest::newRow("stacked") << "mixtral-stacked" << QByteArray("\"intermediate_size\": 96")
                                 << QByteArray("\"intermediate_size\": 80") << QByteArray("[5, 160, 64]");
        QTest::newRow("another layer")
            << "qwen3-moe" << QByteArray("\"decoder_sparse_step\": 2")
            << QByteArray("\"decoder_sparse_step\": 1") << QByteArray("model.layers.0.mlp.gate.weight");
    }
    void a_count_that_lies_is_named() {
        QFETCH(QString, name);
        QFETCH(QByteArray, was);
        QFETCH(QByteArray, is);
        QFETCH(QByteArray, named);
        QTemporaryDir dir;
        for (const QString& file : QDir(folder(name)).entryList(QDir::Files))
            QVERIFY(QFile::copy(folder(name) + "/" + file, dir.filePath(file)));
        QByteArray config = read_bytes(dir.filePath("config.json"));
        QVERIFY(config.contains(was));
        config.replace(was, is);
        QFile::remove(dir.filePath("config.json"));
        QFile f(dir.filePath("config.json"));
        QVERIFY(f.open(QIODevice::WriteOnly) && f.write(config) == config.size());
        f.close();
        try {
            (void)load(dir.path());
            QFAIL("a model whose tensors have other shapes than its config was loaded");
        } catch (const Error& e) {
            QCOMPARE(int(e.kind()), int(ErrorKind::input));
            QVERIFY2(QByteArray(e.what()).contains(named), e.what());
        }
    }
};

RECTO_TEST_CLASS(TestMixtures);
#include "test_mixtures.moc"
