// Tiny random models of odd shapes against transformers' logits in float64
// (tests/data/model/make_tiny_models.py).
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QDir>
#include <QTemporaryDir>
#include <QTest>

#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

class TestTinyModels : public QObject {
    Q_OBJECT

    static QString folder(const QString& name) {
        return QStringLiteral(RECTO_TEST_DATA "/model/tiny/") + name;
    }

    static std::shared_ptr<const Model> load_exact(const QString& name) {
        LoadOptions options;
        options.dtype = ModelDType::f32;
        return load_model(folder(name).toStdString(), cpu_backend(), options);
    }

    static void add_models() {
        QTest::addColumn<QString>("name");
        const QStringList names = QDir(folder({})).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
        for (const QString& name : names)
            QTest::newRow(qPrintable(name)) << name;
    }

  private slots:
    void the_models_are_there() {
        QCOMPARE(QDir(folder({})).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 8);
    }

    void logits_match_transformers_data() { add_models(); }
    void logits_match_transformers() {
        QFETCH(QString, name);
        const auto model = load_exact(name);
        const auto ids = read_json(folder(name) + "/ids.json").get<std::vector<std::int32_t>>();
        const std::vector<float> expected = read_floats(folder(name) + "/logits.f32");
        SequenceLogitsOptions options;
        options.kv_dtype = DType::f32;
        const std::vector<float> found = all_logits(model, ids, options);
        QCOMPARE(found.size(), expected.size());
        double worst = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
            worst = std::max(worst, double(std::abs(found[i] - expected[i])));
        // FP32 against float64: the bound is a thousandth of the logits' own spread.
        const double bound = 1e-3 * standard_deviation(expected);
        QVERIFY2(worst < bound, qPrintable(QStringLiteral("max error %1, bound %2").arg(worst).arg(bound)));
    }

    void bits_do_not_depend_on_chunks_or_blocks_data() { add_models(); }
    void bits_do_not_depend_on_chunks_or_blocks() {
        QFETCH(QString, name);
        const auto ids = read_json(folder(name) + "/ids.json").get<std::vector<std::int32_t>>();
        const auto model = load_exact(name);
        const auto quick = load_model(folder(name).toStdString(), cpu_backend());
        for (const auto& m : {model, quick}) {
            const QString broken = broken_invariance(m, ids, {1, 7, 64, 160});
            QVERIFY2(broken.isEmpty(), qPrintable(broken));
        }
    }

    void greedy_text_matches_transformers_data() { add_models(); }
    void greedy_text_matches_transformers() {
        QFETCH(QString, name);
        const auto model = load_exact(name);
        auto ids = read_json(folder(name) + "/ids.json").get<std::vector<std::int32_t>>();
        ids.resize(16);
        const auto expected = read_json(folder(name) + "/greedy.json").get<std::vector<std::int32_t>>();
        EngineOptions options;
        options.kv_blocks = 64;
        Engine engine(model, options);
        Request request = greedy_request(ids, int(expected.size()));
        request.sampling.ignore_eos = false;  // transformers' min_new_tokens masks the end token, as min_tokens does
        request.sampling.min_tokens = int(expected.size());
        const RequestId id = engine.submit(std::move(request));
        QCOMPARE(run_to_end(engine).at(id).tokens, expected);
    }

    void a_quantity_that_lies_is_named() {
        QTemporaryDir dir;
        for (const QString& file : QDir(folder("llama-gqa-tied")).entryList(QDir::Files))
            QVERIFY(QFile::copy(folder("llama-gqa-tied/") + file, dir.filePath(file)));
        QByteArray config = read_bytes(dir.filePath("config.json"));
        QVERIFY(config.contains("\"intermediate_size\": 96"));
        config.replace("\"intermediate_size\": 96", "\"intermediate_size\": 128");
        QFile::remove(dir.filePath("config.json"));
        QFile f(dir.filePath("config.json"));
        QVERIFY(f.open(QIODevice::WriteOnly) && f.write(config) == config.size());
        f.close();
        try {
            load_model(dir.path().toStdString(), cpu_backend());
            QFAIL("a model whose tensors have other shapes than its config was loaded");
        } catch (const Error& e) {
            QCOMPARE(int(e.kind()), int(ErrorKind::input));
            QVERIFY2(std::string(e.what()).find("128") != std::string::npos, e.what());
        }
    }
};

RECTO_TEST_CLASS(TestTinyModels);
#include "test_tiny_models.moc"
