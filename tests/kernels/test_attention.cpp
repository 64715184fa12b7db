// The CPU's attention against plain loops in double precision (kernels/reference.cpp), and against itself:
// the same bits in every instruction set, however the prompt is cut into chunks, and for every block size.

// Before Qt, whose keyword `slots` is a member of StepBatch.
#include "kernels/check.h"
#include "kernels/cpu_sets.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

class TestAttention : public QObject {
    Q_OBJECT

  private slots:
    void scalar_matches_reference() {
        const auto backend = make_cpu("scalar", 1);
        for (const AttentionCase& c : attention_cases()) {
            const double error = attention_error(c, run_attention(*backend, c, c.context));
            QVERIFY2(error <= 1.0,
                     qPrintable(QString("%1: error / tolerance %2").arg(c.name.c_str()).arg(error)));
        }
    }

    void every_set_gives_the_same_bits() {
        const cpu::CpuFeatures f = cpu::detect_cpu();
        for (const AttentionCase& c : attention_cases()) {
            const std::vector<float> expected = run_attention(*make_cpu("scalar", 1), c, c.context);
            if (f.avx2)
                QVERIFY2(run_attention(*make_cpu("avx2", 2), c, c.context) == expected, c.name.c_str());
            if (f.avx_vnni)
                QVERIFY2(run_attention(*make_cpu("avxvnni", 2), c, c.context) == expected, c.name.c_str());
            if (f.avx512)
                QVERIFY2(run_attention(*make_cpu("avx512", 2), c, c.context) == expected, c.name.c_str());
        }
    }

    void chunks_do_not_matter() {
        for (const AttentionCase& c : attention_cases()) {
            const auto backend = make_cpu("", 2);
            const std::vector<float> expected = run_attention(*backend, c, c.context);
            for (const int chunk : {1, 7, 64}) {
                if (chunk == 1 && c.context > 400) continue;
                QVERIFY2(run_attention(*backend, c, chunk) == expected,
                         qPrintable(QString("%1: chunks of %2").arg(c.name.c_str()).arg(chunk)));
            }
            QVERIFY2(run_attention(*make_cpu("", 5), c, 50) == expected, c.name.c_str());
        }
    }

    void block_size_does_not_matter() {
        for (const AttentionCase& c : attention_cases()) {
            const auto backend = make_cpu("", 2);
            const std::vector<float> expected = run_attention(*backend, c, c.context, 8);
            for (const int size : {16, 24, 32, 64}) {
                QVERIFY2(run_attention(*backend, c, 33, size) == expected,
                         qPrintable(QString("%1: blocks of %2").arg(c.name.c_str()).arg(size)));
            }
        }
    }
};

RECTO_TEST_CLASS(TestAttention);
#include "test_attention.moc"
