// The example program of engine/llm.h, run as it is shipped.
#include <QTest>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

namespace {

Run run_example(const QStringList& arguments) {
    Run run;
    QProcess process;
    process.start(QStringLiteral(RECTO_BINARY_DIR "/offline_generate"), arguments);
    if (!process.waitForStarted()) throw std::runtime_error("offline_generate did not start; is it built?");
    finish(process, run);
    return run;
}

}  // namespace

class TestExample : public QObject {
    Q_OBJECT
  private slots:
    void fourPromptsOnTheStarter() {
        const Run run = run_example({starter_model()});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        QCOMPARE(run.out.count("Prompt: "), 4);
        QCOMPARE(run.out.count("Generated text: "), 4);
        QVERIFY(run.out.contains("Prompt: The capital of France is\nGenerated text: "));
        const auto seconds = [&](const char* label) {
            const auto at = run.out.indexOf(label);
            return at < 0 ? -1.0 : run.out.mid(at + qstrlen(label)).trimmed().split(' ').first().toDouble();
        };
        QVERIFY2(seconds("load time: ") > 0, run.all().c_str());
        QVERIFY2(seconds("generation time: ") > 0, run.all().c_str());
    }

    void whatIsWrongIsOneLine() {
        Run run = run_example({starter_model(), "awq"});
        QCOMPARE(run.code, 1);
        QVERIFY2(run.err.contains("expected awq weights, found Q4_1"), run.all().c_str());
        run = run_example({"/no/such/model"});
        QCOMPARE(run.code, 1);
        QVERIFY2(run.err.startsWith("offline_generate: ") && run.err.count('\n') == 1, run.all().c_str());
    }
};

RECTO_TEST_CLASS(TestExample);
#include "test_example.moc"
