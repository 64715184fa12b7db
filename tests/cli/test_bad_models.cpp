// Models that are missing, broken, dangerous or unknown: exit 3 and one sentence that names the file.
#include <QDir>
#include <QTemporaryDir>
#include <QTest>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

class TestBadModels : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    QString tiny_copy(const QString& name) {
        const QString target = folder_.filePath(name);
        QDir().mkpath(target);
        for (const char* file : {"config.json", "model.safetensors"})
            QFile::copy(tiny_model() + "/" + file, target + "/" + file);
        return target;
    }
    static void change(const QString& file, const QByteArray& before, const QByteArray& after) {
        QByteArray text = file_bytes(file);
        text.replace(before, after);
        write_file(file, text);
    }

  private slots:
    void a_bad_model_is_refused_by_name_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QStringList>("said");
        QTest::newRow("missing") << folder_.filePath("absent.gguf") << QStringList{"absent.gguf"};
        QTest::newRow("unknown name") << "nobody/nothing" << QStringList{"nobody/nothing"};
        QDir().mkpath(folder_.filePath("hollow"));
        QTest::newRow("empty folder") << folder_.filePath("hollow") << QStringList{"hollow", "config.json"};
        write_file(folder_.filePath("zero.gguf"), "");
        QTest::newRow("empty file") << folder_.filePath("zero.gguf") << QStringList{"zero.gguf"};
        write_file(folder_.filePath("text.gguf"), "This is no model at all.\n");
        QTest::newRow("not a GGUF") << folder_.filePath("text.gguf") << QStringList{"text.gguf", "GGUF"};
        // Version 3, then 2^63 tensors and as many entries.
        write_file(folder_.filePath("lying.gguf"),
                   QByteArray("GGUF\x03\0\0\0", 8) + QByteArray("\0\0\0\0\0\0\0\x7f\0\0\0\0\0\0\0\x7f", 16) +
                       QByteArray(200, 'x'));
        QTest::newRow("lying GGUF") << folder_.filePath("lying.gguf") << QStringList{"lying.gguf"};
        const QByteArray small = file_bytes(RECTO_TEST_DATA "/load/tiny_llama.gguf");
        write_file(folder_.filePath("cut.gguf"), small.left(small.size() - 100));
        QTest::newRow("cut GGUF") << folder_.filePath("cut.gguf") << QStringList{"cut.gguf"};
        const QByteArray pickle = QByteArray("\x80\x02}q\0.", 6);
        write_file(folder_.filePath("model.pt"), pickle);
        QTest::newRow("pickle file") << folder_.filePath("model.pt") << QStringList{"model.pt", "pickle"};
        QFile::remove(tiny_copy("pickled") + "/model.safetensors");
        write_file(folder_.filePath("pickled/pytorch_model.bin"), pickle);
        QTest::newRow("pickle in a folder")
            << folder_.filePath("pickled") << QStringList{"pytorch_model.bin", "pickle", "safetensors"};
        change(tiny_copy("stranger") + "/config.json", "LlamaForCausalLM", "RwkvForCausalLM");
        change(folder_.filePath("stranger/config.json"), "\"model_type\": \"llama\"",
               "\"model_type\": \"rwkv\"");
        QTest::newRow("unknown architecture")
            << folder_.filePath("stranger") << QStringList{"stranger", "Rwkv", "Llama"};
        write_file(tiny_copy("garbled") + "/config.json", "{\"hidden_size\": ");
        QTest::newRow("config.json is no JSON")
            << folder_.filePath("garbled") << QStringList{"config.json", "JSON"};
        const QString torn = tiny_copy("torn") + "/model.safetensors";
        write_file(torn, file_bytes(torn).chopped(64));
        QTest::newRow("cut safetensors") << folder_.filePath("torn") << QStringList{"model.safetensors"};
        change(tiny_copy("misfit") + "/config.json", "\"hidden_size\": 64", "\"hidden_size\": 128");
        QTest::newRow("wrong shape") << folder_.filePath("misfit") << QStringList{"misfit"};
    }
    void a_bad_model_is_refused_by_name() {
        QFETCH(QString, path);
        QFETCH(QStringList, said);
        const QList<QStringList> commands = {{"inspect"},
                                             {"logits", "--ids", "1", "--out", folder_.filePath("x.npy")}};
        for (const QStringList& command : commands) {
            const Run run = run_cli(command + QStringList{"--model", path});
            const std::string wrong = not_one_line_error(run, 3);
            QVERIFY2(wrong.empty(), wrong.c_str());
            for (const QString& words : said)
                QVERIFY2(run.err.contains(words.toUtf8()), qPrintable(words + " is missing: " + run.err));
        }
    }

    void quantization_that_the_model_does_not_have_is_refused() {
        const Run run = run_cli({"logits", "--model", tiny_model(), "--ids", "1", "--out",
                                 folder_.filePath("x.npy"), "--quantization", "awq"});
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty() && run.err.contains("awq"), run.err.constData());
    }

    void a_model_without_a_tokenizer_takes_ids_but_no_text() {
        for (const QStringList& command : {QStringList{"generate", "--prompt", "hi"}, QStringList{"chat"},
                                           QStringList{"tokenize", "--text", "hi"}}) {
            const Run run = run_cli(command + QStringList{"--model", tiny_model()});
            const std::string wrong = not_one_line_error(run, 3);
            QVERIFY2(wrong.empty(), wrong.c_str());
            QVERIFY2(run.err.contains("tokenizer"), run.err.constData());
        }
    }

    void bad_requests_are_refused_with_their_line_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<int>("code");
        QTest::addColumn<QStringList>("said");
        const QByteArray good = "{\"prompt_token_ids\": [1, 2]}\n";
        const auto row = [&](const char* name, const QByteArray& text, int code, const QStringList& said) {
            QTest::newRow(name) << text << code << said;
        };
        row("no JSON", good + "{\"prompt_token_ids\": [1,\n", 3, {"line 2", "JSON"});
        row("no JSON after CRLF and an empty line", "{\"prompt_token_ids\": [1]}\r\n\r\nnope\r\n", 3,
            {"line 3"});
        row("not UTF-8", good + "{\"prompt\": \"\xff\"}\n", 3, {"line 2"});
        row("a list", "[1, 2]\n", 3, {"line 1", "object"});
        row("unknown field", good + "{\"prompt_token_ids\": [1], \"temprature\": 1}\n", 3,
            {"line 2", "temprature", "prompt_token_ids"});
        row("no prompt", "{\"temperature\": 1}\n", 3, {"line 1", "prompt", "messages", "prompt_token_ids"});
        row("two prompts", "{\"prompt\": \"a\", \"prompt_token_ids\": [1]}\n", 3, {"line 1", "2"});
        row("prompt is a number", "{\"prompt\": 5}\n", 3, {"line 1"});
        row("ids are text", "{\"prompt_token_ids\": \"1\"}\n", 3, {"line 1", "token ids"});
        row("fraction of an id", "{\"prompt_token_ids\": [1.5]}\n", 3, {"line 1", "1.5"});
        row("id of 33 bits", "{\"prompt_token_ids\": [4294967297]}\n", 3, {"line 1", "4294967297"});
        row("parameter of the wrong type", "{\"prompt_token_ids\": [1], \"top_p\": \"high\"}\n", 2,
            {"line 1", "top_p", "number", "high"});
        row("truth for a number", "{\"prompt_token_ids\": [1], \"n\": true}\n", 2,
            {"line 1", "n must", "true"});
        row("n of 33 bits", "{\"prompt_token_ids\": [1], \"n\": 4294967297}\n", 2, {"n must", "4294967297"});
        row("fraction of a count", "{\"prompt_token_ids\": [1], \"max_tokens\": 1.5}\n", 2,
            {"max_tokens", "1.5"});
        row("out of range", "{\"prompt_token_ids\": [1], \"top_p\": 7}\n", 2, {"top_p", "(0, 1]", "7"});
        row("id outside the vocabulary", "{\"prompt_token_ids\": [259]}\n", 2, {"259"});
        row("no ids", "{\"prompt_token_ids\": []}\n", 2, {"at least one token"});
        row("empty file", "", 3, {"at least one prompt"});
        row("empty lines only", "\n\r\n\n", 3, {"at least one prompt"});
    }
    void bad_requests_are_refused_with_their_line() {
        QFETCH(QByteArray, text);
        QFETCH(int, code);
        QFETCH(QStringList, said);
        const QString file = folder_.filePath("bad.jsonl");
        write_file(file, text);
        const Run run = run_cli({"generate", "--model", tiny_model(), "--prompts", file});
        const std::string wrong = not_one_line_error(run, code);
        QVERIFY2(wrong.empty(), wrong.c_str());
        for (const QString& words : said)
            QVERIFY2(run.err.contains(words.toUtf8()), qPrintable(words + " is missing: " + run.err));
    }

    void a_missing_prompts_file_is_bad_input() {
        const Run run = run_cli({"generate", "--model", tiny_model(), "--prompts", "/no/such/file.jsonl"});
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty() && run.err.contains("/no/such/file.jsonl"), run.err.constData());
    }
};

RECTO_TEST_CLASS(TestBadModels);
#include "test_bad_models.moc"
