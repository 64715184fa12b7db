// Mixtures of experts on the CPU against plain loops in double precision (kernels/reference.cpp), and against
// themselves: the same bits in every instruction set, whatever rows stand beside a row, for every number of
// threads.
#include <cmath>
#include <cstring>
#include <numeric>

// Before Qt, whose keyword `slots` is a member of StepBatch.
#include "kernels/check.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu_sets.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

struct Chosen {
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
};
Chosen choose(const std::vector<float>& logits, int k, bool renormalize) {
    Chosen c{std::vector<std::int32_t>(std::size_t(k)), std::vector<float>(std::size_t(k))};
    cpu::choose_experts(logits.data(), std::int64_t(logits.size()), k, renormalize, c.ids.data(),
                        c.weights.data());
    return c;
}

}  // namespace

class TestExperts : public QObject {
    Q_OBJECT

  private slots:
    void scalar_matches_reference() {
        const auto backend = make_cpu("scalar", 1);
        for (const ExpertCase& c : expert_cases()) {
            const ExpertInput in = expert_input(c, 9);
            const double error = expert_error(c, in, 9, run_experts(*backend, c, in, 0, 9));
            QVERIFY2(error <= 1.0,
                     qPrintable(QString("%1: error / tolerance %2").arg(c.name.c_str()).arg(error)));
        }
    }

    void a_row_has_the_same_bits_alone_and_in_a_batch() {
        constexpr std::int64_t most = 64;
        const auto scalar = make_cpu("scalar", 1);
        for (const ExpertCase& c : expert_cases()) {
            const ExpertInput in = expert_input(c, most);
            const ExpertOutput expected = run_experts(*scalar, c, in, 0, most);
            const auto hidden = std::size_t(c.down.rows);
            for (const std::string& set : all_sets()) {
                const auto backend = make_cpu(set, 2);
                for (const std::int64_t rows : {1, 2, 5, 17, 64}) {
                    const std::int64_t first = (most - rows) / 2;
                    const ExpertOutput out = run_experts(*backend, c, in, first, rows);
                    QVERIFY2(
                        same_bits(out.out.data(), expected.out.data() + std::size_t(first) * hidden,
                                  out.out.size()),
                        qPrintable(QString("%1: %2, %3 rows").arg(c.name.c_str(), set.c_str()).arg(rows)));
                }
            }
        }
    }

    void thread_count_does_not_matter() {
        for (const ExpertCase& c : {expert_cases()[0], expert_cases()[3]}) {
            const ExpertInput in = expert_input(c, 20);
            const std::vector<float> one = run_experts(*make_cpu("", 1), c, in, 0, 20).out;
            for (const int threads : {2, 3, 5})
                QVERIFY(run_experts(*make_cpu("", threads), c, in, 0, 20).out == one);
        }
    }

    void a_non_finite_row_stays_alone() {
        for (const ExpertCase& c : expert_cases()) {
            ExpertInput in = expert_input(c, 6);
            const auto backend = make_cpu("", 2);
            const ExpertOutput clean = run_experts(*backend, c, in, 0, 6);
            const auto hidden = std::size_t(c.down.rows), experts = std::size_t(c.experts);
            in.x[2 * hidden + 1] = HUGE_VALF;
            // A row that broke earlier breaks its scores too, all of them.
            std::fill_n(in.logits.begin() + std::ptrdiff_t(4 * experts), experts, std::nanf(""));
            const ExpertOutput out = run_experts(*backend, c, in, 0, 6);
            for (const std::size_t r : {0, 1, 3, 5})
                QVERIFY2(same_bits(&out.out[r * hidden], &clean.out[r * hidden], hidden), c.name.c_str());
            for (const std::size_t r : {2, 4}) {
                bool finite = true;
                for (std::size_t i = 0; i < hidden; ++i)
                    finite = finite && std::isfinite(out.out[r * hidden + i]);
                QVERIFY2(!finite, c.name.c_str());
            }
            for (const std::int32_t id : out.ids)
                QVERIFY(id >= 0 && id < c.experts);
        }
    }

    void equal_scores_go_to_the_lower_number() {
        const Chosen c = choose({1.0F, 3.0F, 2.0F, 3.0F, 2.0F, 2.0F}, 3, true);
        QVERIFY((c.ids == std::vector<std::int32_t>{1, 2, 3}));
        const double e = std::exp(-1.0), total = 2.0 + e;  // e^0 twice and e^-1
        QVERIFY(std::fabs(c.weights[0] - 1.0 / total) < 1e-7 && c.weights[0] == c.weights[2]);
        QVERIFY(std::fabs(c.weights[1] - e / total) < 1e-7);
        QVERIFY(
            (choose(std::vector<float>(7, -4.0F), 4, false).ids == std::vector<std::int32_t>{0, 1, 2, 3}));
    }

    void large_scores_do_not_overflow() {
        const Chosen c = choose({900.0F, -900.0F, 899.0F, 0.0F}, 2, false);
        QVERIFY((c.ids == std::vector<std::int32_t>{0, 2}));
        QVERIFY(std::fabs(c.weights[0] - 1.0 / (1.0 + std::exp(-1.0))) < 1e-6);
    }

    void groups_hold_every_slot_once() {
        const std::vector<std::int32_t> ids{1, 4, 0, 4, 1, 3, 0, 1};
        ExpertChoice choice;
        choice.ids = const_cast<std::int32_t*>(ids.data());
        choice.rows = 4;
        choice.per_row = 2;
        const cpu::ExpertGroups g = cpu::group_by_expert(choice, 6);
        QVERIFY((g.order == std::vector<std::int32_t>{2, 6, 0, 4, 7, 5, 1, 3}));
        QCOMPARE(g.groups.size(), std::size_t(4));  // experts 0, 1, 3, 4
        QCOMPARE(g.groups[2].expert, 3);
        QCOMPARE(g.groups[2].first, std::int64_t(5));
        QCOMPARE(g.groups[2].count, std::int64_t(1));
    }
};

RECTO_TEST_CLASS(TestExperts);
#include "test_experts.moc"
