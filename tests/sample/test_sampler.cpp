#include <QElapsedTimer>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "engine/sample/row_ops.h"
#include "engine/sample/sampler.h"
#include "kernels/exp.h"
#include "kernels/philox.h"
#include "support/registry.h"

using namespace recto;

namespace {

std::vector<float> random_logits(unsigned seed, int vocab, float spread) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> row;
    for (int i = 0; i < vocab; ++i)
        row.push_back(normal(random));
    return row;
}

std::vector<float> logs(const std::vector<double>& p) {
    std::vector<float> row;
    for (double x : p)
        row.push_back(float(std::log(x)));
    return row;
}

// The filters from their definitions: full sort, double precision (reference: vLLM V1's rules, ties share
// their fate). Returns token → probability.
std::map<int, double> filtered(const std::vector<float>& row, const FilterParams& f) {
    std::vector<std::pair<double, int>> p;  // descending
    for (std::size_t i = 0; i < row.size(); ++i)
        p.emplace_back(double(row[i]) / f.temperature, int(i));
    std::ranges::sort(p, std::greater<>());
    const double top = p.front().first;
    for (auto& [x, id] : p)
        x = std::exp(x - top);
    std::erase_if(p, [&](const auto& e) { return e.first < f.min_p * (1 - 1e-6); });
    if (f.top_k > 0 && std::size_t(f.top_k) < p.size()) {
        const double kth = p[std::size_t(f.top_k) - 1].first;
        std::erase_if(p, [&](const auto& e) { return e.first < kth * (1 - 1e-7); });
    }
    const auto total = [&] {
        return std::accumulate(p.begin(), p.end(), 0.0, [](double s, const auto& e) { return s + e.first; });
    };
    if (f.top_p < 1) {
        const double all = total();
        double before = 0;
        std::vector<std::pair<double, int>> kept;
        for (std::size_t i = 0; i < p.size();) {
            if (!kept.empty() && before >= f.top_p * all * (1 - 1e-6)) break;
            const double value = p[i].first;
            for (; i < p.size() && std::abs(p[i].first - value) <= 1e-9 * value; ++i) {
                kept.push_back(p[i]);
                before += p[i].first;
            }
        }
        p = kept;
    }
    std::map<int, double> result;
    const double all = total();
    for (const auto& [x, id] : p)
        result[id] = x / all;
    return result;
}

std::set<int> survivor_ids(const std::vector<float>& row, const FilterParams& f) {
    Survivors s;
    if (!s.select(row, f)) return {};
    std::set<int> ids;
    for (int id = 0; id < int(row.size()); ++id)
        if (s.contains(id)) ids.insert(id);
    return ids;
}

std::vector<std::int32_t> draw(std::vector<float> row, const ResolvedSampling& s,
                               std::vector<std::int32_t> prompt = {}, std::vector<std::int32_t> output = {},
                               std::vector<std::uint64_t> seeds = {1}) {
    Sampler sampler(int(row.size()), int(row.size()));
    std::vector<Draw> draws(seeds.size());
    sampler.sample(row, s, prompt, output, seeds, draws);
    std::vector<std::int32_t> ids;
    for (const Draw& d : draws)
        ids.push_back(d.token);
    return ids;
}

ResolvedSampling greedy() {
    ResolvedSampling s;
    s.params.temperature = 0;
    return s;
}

}  // namespace

class TestSampler : public QObject {
    Q_OBJECT
  private slots:
    // The known answers of the generator's authors (Random123, kat_vectors).
    void philoxKnownAnswers() {
        using A4 = std::array<std::uint32_t, 4>;
        QVERIFY((philox4x32({0, 0, 0, 0}, {0, 0}) == A4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
        constexpr std::uint32_t ones = 0xffffffff;
        QVERIFY((philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
                 A4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
        QVERIFY((philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
                 A4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
    }

    // The same words whether made one by one or 64 tokens at once.
    void blocksOfRandomBitsEqualSingleOnes() {
        for (std::uint32_t first : {0U, 64U, 151936U / 64 * 64}) {
            std::array<std::uint32_t, 64> bits;
            philox_bits(first, 77, 0x123456789abcdefULL, bits);
            for (std::uint32_t i = 0; i < 64; ++i)
                QCOMPARE(uniform_of(bits[i]),
                         token_uniform(0x123456789abcdefULL, 77, std::int32_t(first + i)));
        }
    }

    // The draw by its definition, over every survivor.
    void drawIsTheArgmaxOfWeightOverExponential() {
        for (unsigned i = 0; i < 300; ++i) {
            const auto row = random_logits(i, 1 + int(i * 7 % 400), i % 2 == 0 ? 1.0F : 6.0F);
            Survivors s;
            QVERIFY(s.select(
                row, {.temperature = 0.9, .top_k = i % 3 == 0 ? 20 : 0, .top_p = i % 5 == 0 ? 0.8 : 1.0}));
            int best = -1;
            double best_score = 0;
            for (int id = 0; id < int(row.size()); ++id) {
                const double score = double(s.weight(id)) / -std::log(token_uniform(i, i + 5, id));
                if (!s.contains(id) || score <= best_score) continue;
                best_score = score;
                best = id;
            }
            QCOMPARE(s.draw(i, i + 5), best);
        }
    }

    void exponentialIsAccurate() {
        for (float x = 0; x > -86; x -= 0.0037F) {
            const double expected = std::exp(double(x));
            QVERIFY(std::abs(exp_negative(x) - expected) <= 3e-7 * expected);
        }
        QVERIFY(exp_negative(-1e30F) > 0 && exp_negative(-1e30F) < 1e-37F);
        std::vector<float> row, out(1000);
        for (int i = 0; i < 1000; ++i)
            row.push_back(-0.09F * float(i));
        const double sum = row_weights(row, 0, 1, out);
        double expected = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            QVERIFY(out[i] == exp_negative(row[i]));  // the same bits in lanes and alone
            expected += double(out[i]);
        }
        QVERIFY(std::abs(sum - expected) < 1e-6 * expected);
    }

    // V1's column of the five-token table: p = .4 .3 .1 .1 .1.
    void fiveTokenTable() {
        const auto row = logs({.4, .3, .1, .1, .1});
        using Ids = std::set<int>;
        QVERIFY((survivor_ids(row, {.top_p = 0.7}) == Ids{0, 1}));
        QVERIFY((survivor_ids(row, {.top_k = 2, .top_p = 0.5}) == Ids{0}));
        QVERIFY((survivor_ids(row, {.top_k = 3}) == Ids{0, 1, 2, 3, 4}));
        QVERIFY((survivor_ids(row, {.min_p = 0.5}) == Ids{0, 1}));
        QVERIFY((survivor_ids(row, {.min_p = 1.0}) == Ids{0}));
        QVERIFY((survivor_ids(row, {.top_p = 1e-9}) == Ids{0}));
        QVERIFY((survivor_ids(row, {.top_p = 0.71}) == Ids{0, 1, 2, 3, 4}));
        // At temperature 0.5 the weights are .16 .09 .01 .01 .01: 0.4 of the largest drops all but two.
        QVERIFY((survivor_ids(row, {.temperature = 0.5, .min_p = 0.4}) == Ids{0, 1}));
        QVERIFY((survivor_ids(row, {.temperature = 0.5, .min_p = 0.6}) == Ids{0}));
    }

    void filtersAgreeWithTheirDefinitions() {
        std::mt19937 random(5);
        const auto pick = [&](auto... values) {
            const std::array options{values...};
            return options[random() % options.size()];
        };
        for (unsigned i = 0; i < 600; ++i) {
            auto row = random_logits(i, pick(1, 2, 50, 1000, 5000), pick(0.1F, 1.0F, 4.0F, 20.0F));
            if (i % 3 == 0)  // many ties
                for (float& x : row)
                    x = std::round(x);
            const FilterParams f{pick(0.01, 0.5, 1.0, 2.0), pick(0, 1, 3, 40, 256, 257, 3000),
                                 pick(1.0, 0.01, 0.5, 0.9, 0.999), pick(0.0, 0.02, 0.3)};
            const auto expected = filtered(row, f);
            Survivors s;
            QVERIFY(s.select(row, f));
            // Beyond what a float sum can tell, a token on the edge may fall on either side; its whole mass
            // is tiny.
            double total = 0, missing = 0;
            std::map<int, double> got;
            for (int id = 0; id < int(row.size()); ++id) {
                if (!s.contains(id)) continue;
                got[id] = double(s.weight(id));
                total += got[id];
            }
            for (auto& [id, w] : got)
                w /= total;
            for (const auto& [id, p] : expected)
                if (!got.contains(id)) missing += p;
            for (const auto& [id, p] : got)
                if (!expected.contains(id)) missing += p;
            QVERIFY2(missing < 1e-5, qPrintable(QStringLiteral("case %1: mass %2").arg(i).arg(missing)));
            for (const auto& [id, p] : expected)
                if (got.contains(id)) QVERIFY(std::abs(got[id] - p) < 2e-5 * std::max(p, 1e-3));
        }
    }

    void masksEverything() {
        Survivors s;
        const float inf = std::numeric_limits<float>::infinity();
        QVERIFY(!s.select(std::vector<float>{-inf, -inf}, {}));
        QVERIFY((survivor_ids({-inf, 1, -inf, 2}, {}) == std::set<int>{1, 3}));
        QVERIFY((survivor_ids({-inf, 1, -inf, 2}, {.top_k = 3}) == std::set<int>{1, 3}));
    }

    // 100,000 draws against the exact distribution; 99.99 % quantiles of chi-square are the bounds (tables).
    void drawsFollowTheDistribution_data() {
        QTest::addColumn<double>("temperature");
        QTest::addColumn<int>("topK");
        QTest::addColumn<double>("topP");
        QTest::addColumn<double>("minP");
        QTest::newRow("plain") << 1.0 << 0 << 1.0 << 0.0;
        QTest::newRow("cold") << 0.6 << 0 << 1.0 << 0.0;
        QTest::newRow("top_k") << 1.0 << 5 << 1.0 << 0.0;
        QTest::newRow("top_p") << 1.3 << 0 << 0.8 << 0.0;
        QTest::newRow("min_p") << 1.0 << 0 << 1.0 << 0.1;
        QTest::newRow("all") << 0.8 << 9 << 0.9 << 0.05;
    }
    void drawsFollowTheDistribution() {
        QFETCH(double, temperature);
        QFETCH(int, topK);
        QFETCH(double, topP);
        QFETCH(double, minP);
        const auto row = random_logits(77, 40, 1.5F);
        const FilterParams f{temperature, topK, topP, minP};
        const auto expected = filtered(row, f);
        Survivors s;
        QVERIFY(s.select(row, f));
        constexpr int n = 100000;
        // Both ways of asking for a new number: another seed, another index.
        for (const bool by_seed : {true, false}) {
            std::map<int, int> count;
            for (int i = 0; i < n; ++i)
                ++count[by_seed ? s.draw(std::uint64_t(i), 3) : s.draw(99, std::uint32_t(i))];
            double chi2 = 0, tail_expected = 0, tail_got = 0;
            int cells = 0;
            for (const auto& [id, got] : count)
                QVERIFY(expected.contains(id));
            for (const auto& [id, p] : expected) {
                if (p * n < 20) {  // rare tokens in one cell
                    tail_expected += p * n;
                    tail_got += count[id];
                    continue;
                }
                chi2 += (count[id] - p * n) * (count[id] - p * n) / (p * n);
                ++cells;
            }
            if (tail_expected > 5) {
                chi2 += (tail_got - tail_expected) * (tail_got - tail_expected) / tail_expected;
                ++cells;
            }
            // Wilson and Hilferty's approximation of the quantile, z = 3.719.
            const double df = cells - 1;
            if (df < 1) continue;
            const double t = 1 - 2 / (9 * df) + 3.719 * std::sqrt(2 / (9 * df));
            QVERIFY2(chi2 < df * t * t * t,
                     qPrintable(QStringLiteral("chi2 %1 for %2 degrees").arg(chi2).arg(df)));
        }
    }

    void drawsOfNeighbouringSeedsAreIndependent() {
        const auto row = logs({.5, .5});
        Survivors s;
        QVERIFY(s.select(row, {}));
        int equal = 0;
        constexpr int n = 20000;
        for (std::uint64_t i = 0; i < n; ++i)
            equal += s.draw(i, 0) == s.draw(i + 1, 0);
        QVERIFY(std::abs(equal - n / 2) < 4 * std::sqrt(n / 4.0));
        equal = 0;
        for (std::uint32_t i = 0; i < n; ++i)
            equal += s.draw(7, i) == s.draw(7, i + 1);
        QVERIFY(std::abs(equal - n / 2) < 4 * std::sqrt(n / 4.0));
    }

    void oneRowManySeedsEqualsManyRows() {
        ResolvedSampling s;
        const auto row = random_logits(3, 500, 2.0F);
        const auto many = draw(row, s, {}, {}, {5, 6, 7, 8});
        for (std::uint64_t i = 0; i < 4; ++i)
            QCOMPARE(draw(row, s, {}, {}, {5 + i}).front(), many[i]);
    }

    void greedyIsTheLowestOfTheLargest() {
        QCOMPARE(draw({1, 5, 5, 2}, greedy()).front(), 1);
        ResolvedSampling s;
        s.params.temperature = 9e-6;
        QCOMPARE(draw({1, 5, 5, 2}, s).front(), 1);
    }

    void penaltiesFollowTheirFormulas() {
        ResolvedSampling s = greedy();
        // Repetition 2: a positive logit is halved, a negative doubled; prompt and output count.
        s.params.repetition_penalty = 2;
        QCOMPARE(draw({4, 3, 1}, s, {0}, {}).front(), 1);
        QCOMPARE(draw({4, 3, 2.5}, s, {0}, {1}).front(), 2);
        QCOMPARE(draw({-1, -1.5, -3}, s, {0}, {0, 0}).front(), 1);  // once only: −2, not −8
        QCOMPARE(draw({-1, -2.5, -3}, s, {0}, {0, 0}).front(), 0);
        // Frequency: per occurrence in the output; presence: once; neither looks at the prompt.
        s = greedy();
        s.params.frequency_penalty = 0.5;
        QCOMPARE(draw({2, 1, 0}, s, {0, 0, 0}, {0}).front(), 0);
        QCOMPARE(draw({2, 1, 0}, s, {}, {0, 0, 0}).front(), 1);
        s = greedy();
        s.params.presence_penalty = 1.5;
        QCOMPARE(draw({2, 1, 0}, s, {}, {0, 0, 0, 0}).front(), 1);
        QCOMPARE(draw({2, 1, 0}, s, {}, {0, 1}).front(), 0);
        // Order: repetition before frequency. 4 / 2 − 1 = 1 > 0.9; the other way round (4 − 1) / 2 = 1.5.
        s = greedy();
        s.params.repetition_penalty = 2;
        s.params.frequency_penalty = 1;
        QCOMPARE(draw({4, 1.2F, 0}, s, {}, {0}).front(), 1);
    }

    void masksAndBiasComeBeforeTheDraw() {
        ResolvedSampling s = greedy();
        s.params.logit_bias = {{2, 10.0F}, {2, 1.0F}};
        QCOMPARE(draw({9, 1, 0}, s).front(), 2);
        s = greedy();
        s.params.allowed_token_ids = {1, 2};
        QCOMPARE(draw({9, 1, 0}, s).front(), 1);
        s.params.logit_bias = {{0, 100.0F}};  // does not bring a masked token back
        QCOMPARE(draw({9, 1, 0}, s).front(), 1);
        s = greedy();
        s.eos = {0};
        s.params.stop_token_ids = {1};
        s.params.min_tokens = 2;
        QCOMPARE(draw({9, 8, 0}, s, {}, {2}).front(), 2);
        QCOMPARE(draw({9, 8, 0}, s, {}, {2, 2}).front(), 0);
        s = greedy();
        s.bad_words = {{1, 2, 0}};
        QCOMPARE(draw({9, 1, 0}, s, {1, 2}, {}).front(), 0);  // the prompt is no context
        QCOMPARE(draw({9, 1, 0}, s, {}, {1, 2}).front(), 1);
        QCOMPARE(draw({9, 1, 0}, s, {}, {2}).front(), 0);
        s.bad_words = {{0}};
        QCOMPARE(draw({9, 1, 0}, s).front(), 1);
    }

    void rowsBeyondTheTokenizerAreNeverDrawn() {
        Sampler sampler(6, 4);
        std::vector<float> row{0, 0, 1, 0, 50, 60};
        std::vector<Draw> draws(1);
        const std::vector<std::uint64_t> seeds{1};
        sampler.sample(row, greedy(), {}, {}, seeds, draws);
        QCOMPARE(draws[0].token, 2);
        row = {0, 0, 1, 0, std::numeric_limits<float>::quiet_NaN(), 60};
        sampler.sample(row, ResolvedSampling{}, {}, {}, seeds, draws);
        QVERIFY(draws[0].token >= 0 && draws[0].token < 4);
    }

    void nonFiniteRowsFail() {
        for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
            QCOMPARE(draw({1, bad, 2}, greedy()).front(), -1);
            QCOMPARE(draw({1, bad, 2}, ResolvedSampling{}).front(), -1);
        }
    }

    void veryLowTemperatureIsRaised() {
        ResolvedSampling s;
        s.params.temperature = 1e-4;
        // At 0.01 a difference of 0.01 gives e: both are drawn; at 1e-4 the second would never be (e^-100).
        std::set<int> seen;
        for (std::uint64_t i = 0; i < 200; ++i)
            seen.insert(draw({1.0F, 0.99F}, s, {}, {}, {i}).front());
        QCOMPARE(seen.size(), std::size_t(2));
    }

    // Not a bound on a machine: it says how long a row takes, and fails only if something is quadratic.
    void speedOnLargeVocabularies() {
        for (int vocab : {49152, 151936}) {
            auto row = random_logits(1, vocab, 2.5F);
            struct Case {
                const char* name;
                double top_p;
                int top_k;
            };
            for (const Case c : {Case{"temperature", 1.0, 0}, Case{"top_p 0.95", 0.95, 0},
                                 Case{"top_k 50", 1.0, 50}, Case{"top_k 1000, top_p 0.9", 0.9, 1000}}) {
                ResolvedSampling s;
                s.params.top_p = c.top_p;
                s.params.top_k = c.top_k;
                s.params.temperature = 0.8;
                Sampler sampler(vocab, vocab);
                std::vector<Draw> draws(1);
                QElapsedTimer timer;
                timer.start();
                constexpr int repeats = 50;
                for (std::uint64_t i = 0; i < repeats; ++i)
                    sampler.sample(row, s, {}, {}, std::vector<std::uint64_t>{i}, draws);
                const double us = double(timer.nsecsElapsed()) / 1e3 / repeats;
                qInfo("%6d ids, %-22s %7.1f us a row", vocab, c.name, us);
                QVERIFY(us < 50000);
            }
        }
    }
};

RECTO_TEST_CLASS(TestSampler);
#include "test_sampler.moc"
