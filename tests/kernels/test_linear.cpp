// The CPU's linear against plain loops in double precision (kernels/reference.cpp), and against itself: the
// same bits in every instruction set, for every number of rows beside a row, and for every number of threads.
#include <cstring>

// Before Qt, whose keyword `slots` is a member of StepBatch.
#include "kernels/check.h"
#include "kernels/error.h"
#include "kernels/cpu_sets.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

class TestLinear : public QObject {
    Q_OBJECT

  private slots:
    void scalar_matches_reference() {
        const auto backend = make_cpu("scalar", 1);
        for (const LinearCase& c : linear_cases()) {
            const LinearInput in = linear_input(c, 5);
            const double error = linear_error(c, in, 5, run_linear(*backend, c, in, 0, 5));
            QVERIFY2(error <= 1.0,
                     qPrintable(QString("%1: error / tolerance %2").arg(c.name.c_str()).arg(error)));
        }
    }

    void every_set_and_row_count_gives_the_same_bits() {
        constexpr std::int64_t most = 64;
        const auto scalar = make_cpu("scalar", 1);
        for (const LinearCase& c : linear_cases()) {
            const LinearInput in = linear_input(c, most);
            const std::size_t n = std::size_t(case_outputs(c));
            const std::vector<float> expected = run_linear(*scalar, c, in, 0, most);
            for (const std::int64_t rows : {1, 2, 5, 16}) {
                const std::vector<float> fewer = run_linear(*scalar, c, in, 3, rows);
                QVERIFY2(same_bits(fewer.data(), expected.data() + 3 * n, std::size_t(rows) * n),
                         qPrintable(QString("%1: scalar, %2 rows").arg(c.name.c_str()).arg(rows)));
            }
            for (const std::string& set : vector_sets()) {
                const auto backend = make_cpu(set, 2);
                for (const std::int64_t rows : {1, 2, 3, 5, 8, 13, 16, 64}) {
                    const std::vector<float> out = run_linear(*backend, c, in, most - rows, rows);
                    QVERIFY2(
                        same_bits(out.data(), expected.data() + std::size_t(most - rows) * n, out.size()),
                        qPrintable(QString("%1: %2, %3 rows").arg(c.name.c_str(), set.c_str()).arg(rows)));
                }
            }
        }
    }

    void thread_count_does_not_matter() {
        const std::vector<LinearCase> cases = linear_cases();
        for (const LinearCase& c : {cases[0], cases[6], cases[cases.size() - 1]}) {
            const LinearInput in = linear_input(c, 30);
            const std::vector<float> one = run_linear(*make_cpu("", 1), c, in, 0, 30);
            for (const int threads : {2, 3, 5}) {
                QVERIFY(run_linear(*make_cpu("", threads), c, in, 0, 30) == one);
            }
        }
    }

    void a_non_finite_row_stays_alone() {
        for (const LinearCase& c : linear_cases()) {
            LinearInput in = linear_input(c, 6);
            const auto backend = make_cpu("", 2);
            const std::vector<float> clean = run_linear(*backend, c, in, 0, 6);
            const std::size_t n = std::size_t(case_outputs(c));
            in.x[std::size_t(2 * c.parts[0].cols + 1)] = HUGE_VALF;
            in.x[std::size_t(4 * c.parts[0].cols + 7)] = std::nanf("");
            const std::vector<float> out = run_linear(*backend, c, in, 0, 6);
            for (const std::size_t r : {0, 1, 3, 5})
                QVERIFY(same_bits(&out[r * n], &clean[r * n], n));
            for (const std::size_t r : {2, 4}) {
                bool finite = true;
                for (std::size_t i = 0; i < n; ++i)
                    finite = finite && std::isfinite(out[r * n + i]);
                QVERIFY2(!finite, c.name.c_str());
            }
        }
    }

    void an_unknown_set_is_refused() {
        QVERIFY_EXCEPTION_THROWN(make_cpu("sse9", 1), Error);
        CpuOptions options;
        options.threads = -1;
        QVERIFY_EXCEPTION_THROWN(make_cpu_backend(options), Error);
    }

    void packed_bytes_follow_the_source() {
        // Q4_1 has 20 bytes for 32 weights, Q8_0 34; rows are padded to 16, planes to 64 bytes a tile.
        const auto backend = make_cpu("", 2);
        const auto check = [&](const WeightForm& form, double bytes_per_weight) {
            const auto w = make_synthetic({64, 576, form, 1, false, false});
            const WeightRows* parts[] = {w.get()};
            const auto packed = backend->pack(parts, Activations::int8);
            QVERIFY(double(packed->bytes()) <= 64 * 576 * bytes_per_weight + 4 * 2 * 64);
            QCOMPARE(packed->rows(), std::int64_t(64));
            QCOMPARE(packed->cols(), std::int64_t(576));
        };
        check(grouped_form(QuantInt::u4, 32, ScaleForm::f16, OffsetForm::f16, "Q4_1"), 20.0 / 32);
        check(grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0"), 34.0 / 32);
        check(grouped_form(QuantInt::u4, 64, ScaleForm::f16, OffsetForm::zero_point, "AWQ"), 0.5 + 2.5 / 64);
        check(dense_form(DType::bf16), 2.0);
    }
};

RECTO_TEST_CLASS(TestLinear);
#include "test_linear.moc"
