// Perplexity against an independent float64 forward (tests/data/model/make_perplexity_expected.py), and the
// divergence of two models against its formula, evaluated directly over stored logits.
#include "support/model_data.h"

#include "engine/bench/perplexity.h"

#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <limits>

#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

QString tiny(const char* name) {
    return QStringLiteral(RECTO_TEST_DATA "/model/tiny/") + name;
}

std::shared_ptr<const Model> load_exact(const std::string& path) {
    LoadOptions options;
    options.dtype = ModelDType::f32;
    return load_model(path, cpu_backend(), options);
}

std::vector<std::int32_t> starter_ids() {
    return read_json(QStringLiteral(RECTO_TEST_DATA "/model/starter_ids.json"))
        .get<std::vector<std::int32_t>>();
}

std::vector<double> log_softmax(const float* row, int vocab) {
    std::vector<double> p(row, row + vocab);
    const double top = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (const double v : p)
        sum += std::exp(v - top);
    for (double& v : p)
        v -= top + std::log(sum);
    return p;
}

bool refuses(const std::function<void()>& what, const char* words) {
    try {
        what();
    } catch (const Error& e) {
        return e.kind() == ErrorKind::argument && std::string(e.what()).find(words) != std::string::npos;
    }
    return false;
}

}  // namespace

class TestPerplexity : public QObject {
    Q_OBJECT
  private slots:
    void equals_an_independent_forward_in_windows_of_any_length() {
        const auto model = load_exact(starter_path());
        for (const auto& e : read_json(QStringLiteral(RECTO_TEST_DATA "/model/starter_perplexity.json"))) {
            QualityOptions options;
            options.context = e["context"];
            const Perplexity p = measure_quality(model, nullptr, starter_ids(), options).a;
            QCOMPARE(p.tokens, e["tokens"].get<std::int64_t>());
            QCOMPARE(p.windows, e["windows"].get<int>());
            QVERIFY2(std::abs(p.value / e["perplexity"].get<double>() - 1) < 1e-4,
                     qPrintable(QString::number(p.value, 'g', 10)));
            QVERIFY(std::abs(p.standard_error / e["standard_error"].get<double>() - 1) < 1e-3);
        }
    }

    // The promise of the quality switch: int8 activations cost less than 0.5 % of perplexity.
    void eight_bit_activations_cost_little_on_the_starter() {
        const auto exact = load_exact(starter_path());
        const auto quick = load_model(starter_path(), cpu_backend());
        QCOMPARE(quick->activations, Activations::int8);
        const QualityReport r = measure_quality(exact, quick, starter_ids(), {});
        qInfo(
            "perplexity float32 %.4f, int8 %.4f, ratio %.5f ± %.5f; KL mean %.6f, 99 %% %.6f; agreement %.4f",
            r.a.value, r.b.value, r.divergence.perplexity_ratio, r.divergence.ratio_standard_error,
            r.divergence.mean, r.divergence.p99, r.divergence.top_agreement);
        QVERIFY(r.divergence.perplexity_ratio < 1.005);
        QVERIFY(std::abs(r.b.value / r.a.value - r.divergence.perplexity_ratio) < 1e-9);
        QVERIFY(r.divergence.mean < 0.002);
    }

    void divergence_is_its_formula_over_the_whole_vocabulary() {
        const auto a = load_exact(tiny("llama-gqa-tied").toStdString());
        const auto b = load_exact(tiny("llama-linear-rope").toStdString());
        const auto ids = read_json(tiny("llama-gqa-tied/ids.json")).get<std::vector<std::int32_t>>();
        SequenceLogitsOptions all;
        const auto logits_a = all_logits(a, ids, all);
        const auto logits_b = all_logits(b, ids, all);
        const int vocab = a->config.vocab;
        std::vector<double> kl;
        double nll_a = 0;
        double nll_b = 0;
        int same = 0;
        for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
            const auto p = log_softmax(logits_a.data() + t * std::size_t(vocab), vocab);
            const auto q = log_softmax(logits_b.data() + t * std::size_t(vocab), vocab);
            kl.push_back(0);
            for (std::size_t i = 0; i < p.size(); ++i)
                kl.back() += std::exp(p[i]) * (p[i] - q[i]);
            nll_a -= p[std::size_t(ids[t + 1])];
            nll_b -= q[std::size_t(ids[t + 1])];
            same += std::max_element(p.begin(), p.end()) - p.begin() ==
                    std::max_element(q.begin(), q.end()) - q.begin();
        }
        const auto n = double(kl.size());
        const QualityReport r = measure_quality(a, b, ids, {});
        double mean = 0;
        for (const double v : kl)
            mean += v / n;
        std::sort(kl.begin(), kl.end());
        QCOMPARE(r.a.tokens, std::int64_t(kl.size()));
        QVERIFY(std::abs(r.divergence.mean - mean) < 1e-9 * mean);
        QVERIFY(std::abs(r.divergence.median - kl[kl.size() / 2]) < 1e-9);  // an odd number of positions
        QVERIFY(std::abs(r.divergence.max - kl.back()) < 1e-9);
        QVERIFY(r.divergence.p99 > kl[kl.size() * 9 / 10] && r.divergence.p99 <= kl.back());
        QCOMPARE(r.divergence.top_agreement, same / n);
        QVERIFY(std::abs(r.a.mean_nll - nll_a / n) < 1e-9);
        QVERIFY(std::abs(r.divergence.perplexity_ratio - std::exp((nll_b - nll_a) / n)) < 1e-9);
    }

    void a_model_does_not_differ_from_itself() {
        const auto a = load_exact(tiny("llama-gqa-tied").toStdString());
        const auto ids = read_json(tiny("llama-gqa-tied/ids.json")).get<std::vector<std::int32_t>>();
        const Divergence d = measure_quality(a, a, ids, {}).divergence;
        QCOMPARE(d.max, 0.0);
        QCOMPARE(d.top_agreement, 1.0);
        QCOMPARE(d.perplexity_ratio, 1.0);
    }

    // 160 tokens in windows of BOS and 31: five full ones and one of five tokens, every one of them scored.
    void windows_begin_with_bos_where_the_tokenizer_wants_it() {
        const auto model = load_exact(tiny("llama-gqa-tied").toStdString());
        const auto ids = read_json(tiny("llama-gqa-tied/ids.json")).get<std::vector<std::int32_t>>();
        QCOMPARE(ids.size(), std::size_t(160));
        QualityOptions options;
        options.context = 32;
        options.bos = 1;
        const Perplexity with = measure_quality(model, nullptr, ids, options).a;
        QCOMPARE(with.tokens, std::int64_t(160));
        QCOMPARE(with.windows, 6);
        options.bos = -1;
        const Perplexity without = measure_quality(model, nullptr, ids, options).a;
        QCOMPARE(without.tokens, std::int64_t(155));
        QCOMPARE(without.windows, 5);
    }

    // config.json: 512 positions in one, 128 in the other.
    void windows_fit_the_shorter_context_of_two_models() {
        const auto longer = load_exact(tiny("llama-gqa-tied").toStdString());
        const auto shorter = load_exact(RECTO_TEST_DATA "/model/quantized/awq-gemm-llama");
        const std::vector<std::int32_t> ids(300, 7);
        QualityOptions common;
        common.common_vocab = std::min(longer->config.vocab, shorter->config.vocab);
        QCOMPARE(measure_quality(longer, nullptr, ids, {}).a.context, 512);
        for (const auto& [a, b] : {std::pair(longer, shorter), std::pair(shorter, longer)}) {
            const QualityReport r = measure_quality(a, b, ids, common);
            QVERIFY(r.a.context == 128 && r.b.context == 128 && r.a.windows == 3);
        }
    }

    void refuses_by_name_what_cannot_be_measured() {
        const auto a = load_exact(tiny("llama-gqa-tied").toStdString());
        const auto wider = load_exact(tiny("llama-untied-bf16").toStdString());
        const std::vector<std::int32_t> ids = {5, 6, 7};
        QualityOptions long_context;
        long_context.context = 4096;
        QVERIFY(refuses([&] { measure_quality(a, nullptr, ids, long_context); }, "[2, 512]"));
        QVERIFY(refuses([&] { measure_quality(a, wider, ids, {}); }, "259 and 301"));
        QVERIFY(
            refuses([&] { measure_quality(a, nullptr, std::vector<std::int32_t>{5}, {}); }, "two tokens"));
        QVERIFY(refuses([&] { measure_quality(a, nullptr, std::vector<std::int32_t>{5, 259}, {}); }, "258"));
        QualityOptions common;
        common.common_vocab = 259;
        QCOMPARE(measure_quality(a, wider, ids, common).b.tokens, std::int64_t(2));
    }

    // The first weight of the last norm, in a copy, becomes a NaN: safetensors are a length, a JSON header,
    // data.
    void damaged_weights_are_an_error() {
        const QTemporaryDir folder;
        QVERIFY(QFile::copy(tiny("llama-gqa-tied/config.json"), folder.filePath("config.json")));
        QByteArray file = read_bytes(tiny("llama-gqa-tied/model.safetensors"));
        std::uint64_t header = 0;
        std::memcpy(&header, file.constData(), sizeof header);
        const auto json = nlohmann::json::parse(file.mid(8, qsizetype(header)).toStdString());
        const std::size_t at = 8 + header + json["model.norm.weight"]["data_offsets"][0].get<std::size_t>();
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(file.data() + at, &nan, sizeof nan);
        QFile out(folder.filePath("model.safetensors"));
        QVERIFY(out.open(QIODevice::WriteOnly) && out.write(file) == file.size());
        out.close();
        const auto model = load_exact(folder.path().toStdString());
        try {
            measure_quality(model, nullptr, std::vector<std::int32_t>{5, 6, 7}, {});
            QFAIL("a perplexity came out");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::runtime);
            QVERIFY(std::string(e.what()).find("not finite") != std::string::npos);
        }
    }

    void stops_when_told() {
        const auto a = load_exact(tiny("llama-gqa-tied").toStdString());
        const std::vector<std::int32_t> ids(100, 7);
        int calls = 0;
        try {
            measure_quality(a, nullptr, ids, {}, [&](double) { return ++calls < 10; });
            QFAIL("it went on");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::cancelled);
        }
        QCOMPARE(calls, 10);
    }
};

RECTO_TEST_CLASS(TestPerplexity);
#include "test_perplexity.moc"
