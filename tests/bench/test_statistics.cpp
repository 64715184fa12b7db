// Quantiles and the rank test against SciPy 1.17.1 and NumPy 2.4.6 (scipy.stats.mannwhitneyu,
// numpy.quantile), SHA-256 against the examples of FIPS 180-4, and the words of a verdict.
#include <QTest>
#include <cmath>

#include "engine/bench/sha256.h"
#include "engine/bench/statistics.h"
#include "engine/bench/verdict.h"
#include "support/registry.h"

using namespace recto;
using Samples = std::vector<double>;

class TestStatistics : public QObject {
    Q_OBJECT

    static bool near(double got, double wanted, double tolerance = 1e-12) {
        if (std::abs(got - wanted) <= tolerance) return true;
        qWarning("got %.17g, expected %.17g", got, wanted);
        return false;
    }
    static TimedFigure figure(Samples samples) {
        TimedFigure f;
        f.samples = std::move(samples);
        return f;
    }

  private slots:
    void quantiles_are_numpys() {
        const Samples x = {3.1, 1.2, 5.5, 2.7, 4.4, 9.9, 0.3};
        const std::vector<std::pair<double, double>> wanted = {
            {0, 0.3}, {0.25, 1.95}, {0.5, 3.1}, {0.75, 4.95}, {0.95, 8.58}, {0.99, 9.636}, {1, 9.9}};
        for (const auto& [q, value] : wanted)
            QVERIFY(near(quantile(x, q), value));
        QCOMPARE(quantile({}, 0.5), 0.0);
    }

    // method='exact'; with ties method=PermutationMethod(n_resamples=inf), which is exact too.
    void rank_test_is_scipys() {
        struct Case {
            Samples a, b;
            double p;
        };
        const std::vector<Case> cases = {
            {{1, 2, 3}, {4, 5, 6}, 0.1},
            {{1, 2, 3, 4}, {5, 6, 7, 8}, 0.02857142857142857},
            {{0, 1, 2, 3, 4}, {10, 11, 12, 13, 14}, 0.007936507936507936},
            {{0, 1, 2, 3, 4, 5}, {10, 11, 12, 13, 14, 15}, 0.0021645021645021645},
            {{10.1, 10.4, 9.9, 10.2, 10.0, 10.3},
             {10.25, 10.5, 10.35, 10.6, 10.15, 10.7},
             0.06493506493506493},
            {{5, 7, 3, 9}, {4, 8, 10, 11, 12, 6, 13}, 0.16363636363636364},
            {{1, 2, 2, 3, 4, 4}, {2, 3, 4, 4, 5, 6}, 0.16883116883116883},
            {{1, 1, 2, 5, 5}, {5, 5, 6, 7}, 0.09523809523809523},
            {{1, 1, 1, 1}, {1, 1, 1, 1}, 1.0},
        };
        for (const Case& c : cases) {
            QVERIFY(near(rank_test_p(c.a, c.b), c.p));
            QVERIFY(near(rank_test_p(c.b, c.a), c.p));
        }
        QCOMPARE(rank_test_p(Samples{}, Samples{1, 2}), 1.0);
    }

    // method='asymptotic', use_continuity=True.
    void large_rank_test_is_scipys() {
        Samples a, b, c, d;
        for (int i = 0; i < 40; ++i) {
            a.push_back((i * 37 % 101) / 10.0);
            if (i < 35) b.push_back((i * 53 % 103) / 10.0 + 1.3);
            c.push_back(i * 7 % 11);
            d.push_back(i * 5 % 13);
        }
        QVERIFY(near(rank_test_p(a, b), 0.06537558656762443));
        QVERIFY(near(rank_test_p(c, d), 0.3565163742027996));
    }

    // users.md §5: clear = ranges do not overlap and |ratio − 1| > floor.
    void words_are_those_of_the_definition() {
        const auto word = [](Samples a, Samples b) { return judge(figure(a), figure(b), true)->word; };
        const Samples base = {100, 100.1, 99.9, 100.05, 99.95, 100};
        const Samples far = {110, 110.1, 109.9, 110.05, 109.95, 110};
        QCOMPARE(word(base, far), "clear");
        // Ranges apart, but by 0.5 %: under the floor of 1 %.
        QCOMPARE(word(base, {100.5, 100.51, 100.49, 100.5, 100.52, 100.5}), "within noise");
        // The ranges overlap in one sample, the ranks are far apart (p = 0.0216 by SciPy 1.17.1), 5 % above.
        const Samples overlapping = {105, 106, 104, 105.5, 104.5, 99.97};
        const auto likely = judge(figure(base), figure(overlapping), true);
        QCOMPARE(likely->word, "likely");
        QVERIFY(likely->p < 0.05);
        // Overlap and ranks mixed.
        QCOMPARE(word({100, 103, 98, 101, 99, 102}, {101.5, 104, 99.5, 102.5, 100.5, 103.5}), "within noise");
        QVERIFY(!judge(figure({}), figure({1.0}), true));
    }

    // users.md §5: 5 + 5 runs are the fewest that can tell.
    void few_runs_cannot_tell() {
        const auto a = figure({100, 100.1, 99.9, 100.05}), b = figure({200, 200.1, 199.9, 200.05});
        const auto few = judge(a, b, true);
        QCOMPARE(few->word, "too few runs");
        QCOMPARE(few->better, ' ');
        QVERIFY(near(few->ratio, 200.025 / 100.025) && near(few->p, 0.02857142857142857));  // SciPy, as above
        QCOMPARE(judge(figure({100}), figure({100}), true)->word, "too few runs");
        TimedFigure five = a, other = b;
        five.samples.push_back(100);
        QCOMPARE(judge(five, b, true)->word, "too few runs");
        QCOMPARE(judge(b, five, true)->word, "too few runs");
        other.samples.push_back(200);
        QCOMPARE(judge(five, other, true)->word, "clear");
    }

    void better_says_which_side() {
        const Samples low = {1, 1.01, 0.99, 1, 1.02};
        const Samples high = {2, 2.01, 1.99, 2, 2.02};
        QCOMPARE(judge(figure(low), figure(high), true)->better, 'B');
        QCOMPARE(judge(figure(low), figure(high), false)->better, 'A');
        QCOMPARE(judge(figure(high), figure(low), false)->better, 'B');
        QCOMPARE(judge(figure(low), figure(low), false)->better, ' ');
        QVERIFY(near(judge(figure(low), figure(high), true)->ratio, 2));
    }

    // A's own runs, dealt A B B A A B: {100, 108, 100} against {104, 104, 104} is a spread of 4 %.
    void the_floor_is_what_a_differs_from_itself() {
        const Samples a = {100, 104, 104, 108, 100, 104};
        QVERIFY(near(self_spread(a), 0.04));
        const Samples b = {109, 109.1, 109.2, 109.3, 109.4, 109.5};
        const auto v = judge(figure(a), figure(b), true);
        QVERIFY(near(v->floor, 0.04));
        QCOMPARE(v->word, "clear");  // ranges apart, 5 % above 104
        QCOMPARE(judge(figure(a), figure({108.1, 108.11, 108.12, 108.13, 108.14, 108.15}), true)->word,
                 "within noise");  // ranges apart, but 3.97 % above
        QVERIFY(near(judge(figure({100, 100, 100, 100}), figure(b), true)->floor, 0.01));
    }

    void sha256_examples() {
        const auto hash = [](const std::string& text) {
            Sha256 h;
            for (std::size_t at = 0; at < text.size(); at += 37)
                h.add(text.data() + at, std::min<std::size_t>(37, text.size() - at));
            return h.hex();
        };
        QCOMPARE(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        QCOMPARE(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        QCOMPARE(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        QCOMPARE(hash(std::string(1000000, 'a')),
                 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
};

RECTO_TEST_CLASS(TestStatistics);
#include "test_statistics.moc"
