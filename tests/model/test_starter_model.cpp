// The starter model against an independent float64 forward (tests/data/model/numpy_llama.py) over 619
// positions, and its greedy text on ten prompts.
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QTest>
#include <algorithm>

#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr int kept = 64;  // logits stored for each position: the largest ones

struct Position {
    double log_sum_exp = 0;
    std::vector<std::pair<std::int32_t, float>> best;  // [kept], descending
};

std::vector<Position> read_expected() {
    const QByteArray bytes = read_bytes(QStringLiteral(RECTO_TEST_DATA "/model/starter_logits.bin"));
    constexpr std::size_t record = 4 + std::size_t(kept) * 8;
    std::vector<Position> positions(std::size_t(bytes.size()) / record);
    const char* at = bytes.constData();
    for (Position& p : positions) {
        float lse;
        std::memcpy(&lse, at, 4);
        p.log_sum_exp = lse;
        p.best.resize(kept);
        for (int i = 0; i < kept; ++i) {
            std::memcpy(&p.best[std::size_t(i)].first, at + 4 + i * 8, 4);
            std::memcpy(&p.best[std::size_t(i)].second, at + 8 + i * 8, 4);
        }
        at += record;
    }
    return positions;
}

double log_sum_exp(std::span<const float> row) {
    const float top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float v : row)
        sum += std::exp(double(v) - top);
    return top + std::log(sum);
}

struct Comparison {
    double mean_kl = 0;  // over the kept tokens and "all others" as one: a lower bound of the full divergence
    double agreement = 0;  // share of positions with the same most probable token
    double max_error = 0;  // of the kept logits
};

Comparison compare(const std::shared_ptr<const Model>& model, DType kv) {
    const auto ids =
        read_json(QStringLiteral(RECTO_TEST_DATA "/model/starter_ids.json")).get<std::vector<std::int32_t>>();
    const std::vector<Position> expected = read_expected();
    if (ids.size() != expected.size() || ids.size() < 512)
        throw std::runtime_error("stored logits and ids differ in length");
    Comparison c;
    SequenceLogitsOptions options;
    options.kv_dtype = kv;
    sequence_logits(model, ids, options, [&](std::int64_t i, std::span<const float> row) {
        const Position& p = expected[std::size_t(i)];
        const double lse = log_sum_exp(row);
        double rest_p = 1;
        double rest_q = 1;
        for (const auto& [token, logit] : p.best) {
            const double log_p = logit - p.log_sum_exp;
            const double log_q = row[std::size_t(token)] - lse;
            c.mean_kl += std::exp(log_p) * (log_p - log_q);
            rest_p -= std::exp(log_p);
            rest_q -= std::exp(log_q);
            c.max_error = std::max(c.max_error, double(std::abs(row[std::size_t(token)] - logit)));
        }
        if (rest_p > 1e-9 && rest_q > 1e-9) c.mean_kl += rest_p * std::log(rest_p / rest_q);
        c.agreement += std::max_element(row.begin(), row.end()) - row.begin() == p.best.front().first;
    });
    c.mean_kl /= double(ids.size());
    c.agreement /= double(ids.size());
    return c;
}

}  // namespace

class TestStarterModel : public QObject {
    Q_OBJECT

    static std::shared_ptr<const Model> load(ModelDType dtype) {
        LoadOptions options;
        options.dtype = dtype;
        return load_model(starter_path(), cpu_backend(), options);
    }

  private slots:
    void float32_logits_are_exact() {
        const Comparison c = compare(load(ModelDType::f32), DType::f32);
        qInfo("float32: max error %.2e, KL %.2e, agreement %.4f", c.max_error, c.mean_kl, c.agreement);
        QVERIFY(c.max_error <
                1e-3 * 6.56);  // a thousandth of the logits' standard deviation, as the script printed it
        QVERIFY(c.mean_kl < 1e-6);
        QCOMPARE(c.agreement, 1.0);
    }

    void int8_activations_stay_close() {
        const auto model = load(ModelDType::automatic);
        const Comparison c = compare(model, model->kv_dtype);
        qInfo("int8 activations: KL %.2e, agreement %.4f, max error %.3f", c.mean_kl, c.agreement,
              c.max_error);
        QVERIFY(c.mean_kl < 3e-3);
        QVERIFY(c.agreement >= 0.97);
    }

    void greedy_text_is_the_same() {
        const auto answers = read_json(QStringLiteral(RECTO_TEST_DATA "/model/starter_greedy.json"));
        QCOMPARE(answers.size(), std::size_t(10));
        EngineOptions options;
        options.kv_blocks = 128;
        Engine engine(load(ModelDType::f32), options);
        std::vector<RequestId> ids;
        for (const auto& a : answers)
            ids.push_back(engine.submit(greedy_request(a["ids"].get<std::vector<std::int32_t>>(), 64)));
        const auto found = run_to_end(engine);
        for (std::size_t i = 0; i < ids.size(); ++i)
            QVERIFY2(found.at(ids[i]).tokens == answers[i]["greedy"].get<std::vector<std::int32_t>>(),
                     answers[i]["prompt"].get<std::string>().c_str());
    }

    void stages_sum_to_the_load_time() {
        const auto model = load(ModelDType::automatic);
        double sum = 0;
        for (const LoadStage& s : model->load_stages)
            sum += s.seconds;
        QVERIFY(std::abs(sum - model->load_seconds) < 1e-6 + 0.01 * model->load_seconds);
        QVERIFY(model->weight_bytes >= 90'000'000 && model->weight_bytes <= 98'362'432);
    }

    void a_cancelled_load_says_so() {
        auto cancel = std::make_shared<std::atomic<bool>>(false);
        const auto at_half = [&](const LoadProgress& p) {
            if (p.fraction > 0.5) cancel->store(true);
        };
        try {
            load_model(starter_path(), cpu_backend(), {}, at_half, cancel);
            QFAIL("the load went on");
        } catch (const Error& e) {
            QCOMPARE(int(e.kind()), int(ErrorKind::cancelled));
        }
    }
};

RECTO_TEST_CLASS(TestStarterModel);
#include "test_starter_model.moc"
