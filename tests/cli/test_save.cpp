// convert and make-model: what they promise to a script.
#include <sys/resource.h>
#include <QDir>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

class TestSave : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    QString path(const QString& name) const { return folder_.filePath(name); }
    static QStringList made_like_tiny(const QString& quantization, const QString& out) {
        return {"make-model", "--like", "tiny", "--quantization", quantization, "--out", out};
    }
    static QByteArrayList files_of(const QString& folder) {
        QByteArrayList names;
        for (const QString& name : QDir(folder).entryList(QDir::Files, QDir::Name))
            names << name.toUtf8();
        return names;
    }

  private slots:
    void a_made_model_generates_the_same_text_each_time_data() {
        QTest::addColumn<QString>("quantization");
        for (const char* name : {"none", "awq", "gptq", "compressed-tensors", "gguf:Q4_K", "gguf:IQ4_XS"})
            QTest::newRow(name) << name;
    }
    void a_made_model_generates_the_same_text_each_time() {
        QFETCH(QString, quantization);
        QByteArray texts[2];
        for (int i = 0; i < 2; ++i) {
            const QString out = path(QString("%1-%2").arg(quantization).arg(i));
            const Run made = run_cli(made_like_tiny(quantization, out) << "--seed"
                                                                       << "9");
            QVERIFY2(made.code == 0 && made.out.isEmpty() && made.err.isEmpty(), made.all().c_str());
            const Run run = run_cli({"generate", "--model", out, "--prompt", "Hello", "--max-tokens", "12",
                                     "--temperature", "0", "--ignore-eos", "--json"});
            QVERIFY2(run.code == 0, run.all().c_str());
            const Json answer = json_lines(run.out).front();
            QCOMPARE(answer["outputs"][0]["token_ids"].size(), std::size_t(12));
            texts[i] = QByteArray::fromStdString(answer["outputs"][0]["text"].get<std::string>());
        }
        QCOMPARE(texts[0], texts[1]);
    }

    // A layer that the configuration does not ask for is not in the copy either.
    void what_a_conversion_leaves_out_is_told() {
        const QString whole = path("whole"), half = path("half");
        QCOMPARE(run_cli(made_like_tiny("none", whole)).code, 0);
        QFile config(QDir(whole).filePath("config.json"));
        QVERIFY(config.open(QIODevice::ReadOnly));
        Json settings = Json::parse(config.readAll().toStdString());
        config.close();
        QCOMPARE(settings["num_hidden_layers"].get<int>(), 2);
        settings["num_hidden_layers"] = 1;
        QVERIFY(config.open(QIODevice::WriteOnly | QIODevice::Truncate));
        config.write(QByteArray::fromStdString(settings.dump()));
        config.close();
        const Run run = run_cli({"convert", "--model", whole, "--out", half});
        QVERIFY2(run.code == 0 && run.err.startsWith("recto-cli: warning: ") &&
                     run.err.contains("the configuration asks for 1 layer") && run.err.count('\n') == 1,
                 run.all().c_str());
    }

    void a_converted_model_gives_the_same_logits() {
        const QString gguf = path("source.gguf"), out = path("converted");
        QCOMPARE(run_cli(made_like_tiny("gguf:Q5_K", gguf)).code, 0);
        const Run run = run_cli({"convert", "--model", gguf, "--out", out, "--dtype", "float32", "--json"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        QVERIFY(json_lines(run.out).front()["tokenizer"].get<bool>());
        QCOMPARE(files_of(out), QByteArrayList({"config.json", "generation_config.json", "model.safetensors",
                                                "tokenizer.json", "tokenizer_config.json"}));
        QByteArray logits[2];
        for (int i = 0; i < 2; ++i) {
            const QString file = path(QString("logits%1.npy").arg(i));
            QCOMPARE(run_cli({"logits", "--model", i == 0 ? gguf : out, "--dtype", "float32", "--ids",
                              "1,99,300,4,511", "--out", file})
                         .code,
                     0);
            logits[i] = file_bytes(file);
        }
        QVERIFY(logits[0] == logits[1]);  // the same float32 weights, the same kernels
        const QStringList tokenize = {"tokenize", "--text", "ab cd, 12!", "--model"};
        QCOMPARE(run_cli(QStringList(tokenize) << out).out, run_cli(QStringList(tokenize) << gguf).out);
    }

    void what_is_left_out_is_said() {
        const Run run = run_cli({"convert", "--model", tiny_model(), "--out", path("bare")});
        QVERIFY2(run.code == 0, run.all().c_str());
        QCOMPARE(run.err, "recto-cli: " + path("bare").toUtf8() +
                              ": written without a tokenizer: the folder has none\n");
    }

    void wrong_arguments_are_refused_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("said");
        QDir().mkpath(path("full"));
        write_file(path("full/mine.txt"), "mine");
        QTest::newRow("no --out") << QStringList{"convert", "--model", tiny_model()} << "--out";
        QTest::newRow("no --like") << QStringList{"make-model", "--out", path("x")} << "--like";
        QTest::newRow("full folder") << QStringList{"convert", "--model", tiny_model(), "--out", path("full")}
                                     << "full: expected a new or empty folder";
        QTest::newRow("full folder, made") << made_like_tiny("awq", path("full")) << "nothing is overwritten";
        QTest::newRow("a file") << QStringList{"convert", "--model", tiny_model(), "--out",
                                               path("full/mine.txt")}
                                << "found a file of this name";
        QTest::newRow("dtype") << QStringList{"convert", "--model", tiny_model(), "--out",
                                              path("x"), "--dtype", "int4"}
                               << "int4";
        QTest::newRow("shape") << QStringList{"make-model", "--like", "gpt-9", "--out", path("x")}
                               << "got gpt-9";
        QTest::newRow("quantization") << made_like_tiny("exl2", path("x")) << "got exl2";
        QTest::newRow("type") << made_like_tiny("gguf:Q9", path("x")) << "got Q9";
        QTest::newRow("group") << (made_like_tiny("awq", path("x")) << "--group-size"
                                                                    << "100")
                               << "100";
        QTest::newRow("layers") << (made_like_tiny("awq", path("x")) << "--layers"
                                                                     << "0")
                                << "--layers";
    }
    void wrong_arguments_are_refused() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, said);
        const Run run = run_cli(arguments);
        const std::string wrong = not_one_line_error(run, 2);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY2(run.err.contains(said.toUtf8()), run.err);
        QVERIFY(!QFile::exists(path("x")));
        QCOMPARE(file_bytes(path("full/mine.txt")), QByteArray("mine"));
    }

    void a_bad_model_is_refused_before_anything_is_written() {
        const Run run = run_cli({"convert", "--model", path("absent.gguf"), "--out", path("x")});
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY(!QFile::exists(path("x")));
    }

    void a_folder_that_cannot_be_made_is_named() {
        write_file(path("plain"), "x");
        const QString out = path("plain/model");
        for (const QStringList& arguments :
             {QStringList{"convert", "--model", tiny_model(), "--out", out}, made_like_tiny("none", out)}) {
            const Run run = run_cli(arguments);
            const std::string wrong = not_one_line_error(run, 1);
            QVERIFY2(wrong.empty(), wrong.c_str());
            QVERIFY2(run.err.contains(out.toUtf8()), run.err);
        }
    }

    // A limit on the size of files ends writing as a full disk does.
    void a_full_disk_leaves_nothing() {
        for (const QString& quantization : {QString("none"), QString("gguf:Q8_0")}) {
            Run run;
            QProcess process;
            process.setChildProcessModifier([] {
                std::signal(SIGXFSZ, SIG_IGN);
                const rlimit limit{100'000, 100'000};
                setrlimit(RLIMIT_FSIZE, &limit);
            });
            process.start(cli_program(), made_like_tiny(quantization, path("too-large")));
            finish(process, run);
            const std::string wrong = not_one_line_error(run, 1);
            QVERIFY2(wrong.empty(), wrong.c_str());
            QVERIFY2(run.err.contains("too-large/model") && run.err.contains("writing failed"), run.err);
            QVERIFY(!QFile::exists(path("too-large")));
        }
    }

    void an_interruption_leaves_nothing() {
        QProcess process;
        process.start(cli_program(), {"make-model", "--like", "llama-3.2-1b", "--out", path("interrupted")});
        QVERIFY(process.waitForStarted());
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(path("interrupted/model.safetensors.partial")), 60'000);
        kill(pid_t(process.processId()), SIGINT);
        Run run;
        finish(process, run);
        const std::string wrong = not_one_line_error(run, 130);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY(!QFile::exists(path("interrupted")));
    }
};

RECTO_TEST_CLASS(TestSave);
#include "test_save.moc"
