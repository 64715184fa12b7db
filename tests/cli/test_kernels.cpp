// kernels: the lists for reading, and the check that runs where Qt does not.
#include <QTest>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

class TestKernels : public QObject {
    Q_OBJECT

  private slots:
    void list_names_the_set_in_use_and_a_variant_for_each_operation() {
        const Run run = run_cli({"kernels", "--list"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const Json version = Json::parse(run_cli({"version", "--json"}).out.toStdString());
        const std::string set = version["cpu"]["kernels"].get<std::string>();
        const std::string name = set.substr(0, set.find(' '));
        QVERIFY2(run.out.contains(QByteArray::fromStdString("kernels: " + name)), run.all().c_str());
        for (const char* words :
             {"linear Q4_1, rows 1: ", "linear Q8_0, rows 512: ", "attention, float16 cache: "})
            QVERIFY2(run.out.contains(words), run.out.constData());
    }

    void check_holds_every_case_against_the_reference() {
        const Run run = run_cli({"kernels", "--check"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        QVERIFY2(!run.out.contains("FAIL"), run.out.constData());
        QVERIFY2(run.out.count("\nok ") > 50, run.out.constData());
    }

    void bench_takes_a_name() {
        const Run run = run_cli({"kernels", "--bench", "attention"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        QVERIFY2(run.out.contains("GB/s") && run.out.contains("measured ceilings"), run.out.constData());
    }

    // A name takes its cases and no others, and one that is nobody's must not look like success.
    void check_takes_a_name() {
        const Run run = run_cli({"kernels", "--check", "Q6_K"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const QList<QByteArray> lines = QByteArray(run.out).trimmed().split('\n');
        QVERIFY(lines.size() > 5);
        for (qsizetype i = 0; i + 1 < lines.size(); ++i)
            QVERIFY2(lines[i].contains("Q6_K"), lines[i].constData());
    }
    void a_name_of_no_case_is_an_error() {
        for (const char* way : {"--check", "--bench"}) {
            const Run run = run_cli({"kernels", way, "no such case"});
            QCOMPARE(run.code, 2);
            QVERIFY2(run.err.contains("no such case") && run.err.count('\n') == 1, run.all().c_str());
        }
    }

    void one_of_the_three_is_needed() {
        for (const QStringList& arguments :
             {QStringList{"kernels"}, QStringList{"kernels", "--list", "--check"}}) {
            const std::string wrong = not_one_line_error(run_cli(arguments), 2);
            QVERIFY2(wrong.empty(), wrong.c_str());
        }
    }
};

RECTO_TEST_CLASS(TestKernels);
#include "test_kernels.moc"
