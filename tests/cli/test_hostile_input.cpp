// Prompt files, message files and arguments made to break the reader. What must happen is the command line's
// contract: exit 3 for a bad file, 2 for a bad argument, one line on stderr, never a crash.
#include <QTemporaryDir>
#include <QTest>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

namespace {

// Deep enough that any step that calls itself once a level runs out of an 8 MiB stack.
QByteArray nested_lists(int depth) {
    return QByteArray(depth, '[') + QByteArray(depth, ']');
}

}  // namespace

class TestHostileInput : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    QString file(const QString& name, const QByteArray& bytes) {
        const QString path = folder_.filePath(name);
        write_file(path, bytes);
        return path;
    }

  private slots:
    void deep_json_file_is_refused_data() {
        QTest::addColumn<QStringList>("command");
        QTest::addColumn<QByteArray>("document");
        const QByteArray deep = nested_lists(200'000);
        const QStringList generate{"generate", "--model", tiny_model(), "--prompts"};
        for (const char* key : {"prompt_token_ids", "messages", "stop", "seed", "logit_bias", "ignore_eos"})
            QTest::newRow(key) << generate << "{\"" + QByteArray(key) + "\": " + deep + "}\n";
        QTest::newRow("logits")
            << QStringList{"logits",    "--model", tiny_model(), "--out", folder_.filePath("deep.npy"),
                           "--ids-file"}
            << deep;
        const QString plain = file("plain.jinja", "{{ messages | length }}");
        const QStringList render{"template", "--template",  plain, "--bos-token",
                                 "",         "--eos-token", "",    "--messages"};
        QTest::newRow("template") << render << deep;
        QTest::newRow("template, a message's content")
            << render << R"([{"role": "user", "content": )" + deep + "}]";
    }
    void deep_json_file_is_refused() {
        QFETCH(QStringList, command);
        QFETCH(QByteArray, document);
        const Run run = run_cli(command + QStringList{file("deep.jsonl", document)});
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty() && run.err.contains("deep.jsonl"), run.all().c_str());
    }

    // An argument is at most 128 KiB on Linux: enough for 60,000 levels.
    void deep_json_argument_is_refused_data() {
        QTest::addColumn<QStringList>("arguments");
        const QString deep = QString::fromUtf8(nested_lists(60'000));
        const QString prompts = file("one.jsonl", "{\"prompt_token_ids\": [5]}\n");
        const QStringList generate{"generate", "--model", tiny_model(), "--prompts", prompts};
        QTest::newRow("seed") << generate + QStringList{"--seed", deep};
        QTest::newRow("logit bias") << generate + QStringList{"--logit-bias", "5=" + deep};
        QTest::newRow("ids") << QStringList{
            "logits", "--model", tiny_model(), "--out", folder_.filePath("deep.npy"), "--ids", deep};
    }
    void deep_json_argument_is_refused() {
        QFETCH(QStringList, arguments);
        const Run run = run_cli(arguments);
        const std::string wrong = not_one_line_error(run, 2);
        QVERIFY2(wrong.empty(), run.all().c_str());
    }

    void what_is_no_file_is_refused_data() {
        QTest::addColumn<QStringList>("command");
        for (const QString& path : {folder_.path(), QStringLiteral("/dev/zero")}) {
            const QByteArray where = path.toUtf8();
            QTest::newRow(("perplexity " + where).constData()) << QStringList{"perplexity", "--file", path};
            QTest::newRow(("tokenize " + where).constData()) << QStringList{"tokenize", "--file", path};
            QTest::newRow(("detokenize " + where).constData()) << QStringList{"detokenize", "--file", path};
            QTest::newRow(("template " + where).constData()) << QStringList{"template", "--messages", path};
        }
    }
    void what_is_no_file_is_refused() {
        QFETCH(QStringList, command);
        const Run run = run_cli(command);
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty() && run.err.contains(command.last().toUtf8() + ": expected"),
                 run.all().c_str());
    }

    void a_priority_is_a_whole_number() {
        for (const char* bad : {"1.5", "\"high\"", "4294967297", "null"}) {
            const QString prompts =
                file("priority.jsonl", "{\"prompt_token_ids\": [5], \"priority\": " + QByteArray(bad) + "}");
            const Run run = run_cli({"generate", "--model", tiny_model(), "--prompts", prompts});
            QVERIFY2(not_one_line_error(run, 3).empty() && run.err.contains("priority"), run.all().c_str());
        }
        const QString prompts = file("priority.jsonl", R"({"prompt_token_ids": [5], "priority": -3})");
        QCOMPARE(run_cli({"generate", "--model", tiny_model(), "--prompts", prompts}).code, 0);
    }

    // Which of the two was meant cannot be known.
    void key_that_occurs_twice_is_refused() {
        const QString twice = file("twice.jsonl", R"({"prompt_token_ids": [5], "seed": 1, "seed": 2})");
        const Run run = run_cli({"generate", "--model", tiny_model(), "--prompts", twice});
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty() && run.err.contains("line 1") && run.err.contains("seed"), run.all().c_str());
    }
};

RECTO_TEST_CLASS(TestHostileInput);
#include "test_hostile_input.moc"
