// The program itself: what it refuses before there is a window, as recto-cli refuses it (CLI.md's exit
// codes).
#include <QProcess>
#include <QProcessEnvironment>
#include <QTemporaryDir>
#include <QTest>

#include "support/registry.h"

class TestWindowProgram : public QObject {
    Q_OBJECT

  private Q_SLOTS:
    void a_device_that_cannot_be_used_is_refused_data() {
        QTest::addColumn<QString>("device");
        QTest::addColumn<int>("code");
        for (const char* wrong : {"cuda:x", "cuda:", "cuda:-1", "cuda:1 ", "cuda0", "CPU", "tpu", ""})
            QTest::newRow(wrong) << QString::fromLatin1(wrong) << 2;
        QTest::newRow("absent") << QStringLiteral("cuda:99") << 1;  // on a machine with cards too
    }
    void a_device_that_cannot_be_used_is_refused() {
        QFETCH(QString, device);
        QFETCH(int, code);
        const QTemporaryDir profile;
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QStringLiteral("XDG_RUNTIME_DIR"), profile.path());  // Qt remarks on a missing one
        process.setProcessEnvironment(environment);
        process.start(QStringLiteral(RECTO_BINARY_DIR "/recto"),
                      {QStringLiteral("--profile"), profile.path(), QStringLiteral("--device"), device});
        QVERIFY2(process.waitForStarted(), "recto did not start; is it built?");
        const bool ended = process.waitForFinished(120'000);
        if (!ended) process.kill();
        process.waitForFinished();
        const QByteArray said = process.readAllStandardError();
        QVERIFY2(ended, "it opened the window");
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), code);
        QVERIFY2(said.startsWith("recto: --device ") && said.count('\n') == 1, said.constData());
        QVERIFY2(said.contains(device.toLatin1()), said.constData());
    }
};

RECTO_TEST_CLASS(TestWindowProgram);
#include "test_window_program.moc"
