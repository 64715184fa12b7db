// tokenize, detokenize and template. Ids are llama.cpp's (tests/data/text/starter.json says its version),
// rendered texts are jinja2's, with the settings of Hugging Face, from the template in the starter's file.
#include <QDataStream>
#include <QTemporaryDir>
#include <QTest>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

namespace {

// Where the metadata of a GGUF ends (specification: ggml-org/ggml, docs/gguf.md). 0 if it is none.
qint64 end_of_metadata(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return 0;
    QDataStream in(&file);
    in.setByteOrder(QDataStream::LittleEndian);
    quint32 magic = 0;
    quint32 version = 0;
    quint64 tensors = 0;
    quint64 entries = 0;
    in >> magic >> version >> tensors >> entries;
    static const int sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const auto skip_text = [&] {
        quint64 length = 0;
        in >> length;
        in.skipRawData(int(length));
    };
    for (quint64 i = 0; i < entries && in.status() == QDataStream::Ok; ++i) {
        skip_text();
        quint32 type = 0;
        in >> type;
        quint64 count = 1;
        if (type == 9) in >> type >> count;
        if (type > 12) return 0;
        for (quint64 k = 0; k < count; ++k)
            if (type == 8)
                skip_text();
            else
                in.skipRawData(sizes[type]);
    }
    return in.status() == QDataStream::Ok ? file.pos() : 0;
}

}  // namespace

class TestText : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    static Json ids_of(const Run& run) { return Json::parse(run.out.toStdString(), nullptr, false); }

    QString messages() {
        const QString file = folder_.filePath("messages.json");
        write_file(file, R"([{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi."},)"
                         R"({"role":"user","content":"Bye"}])");
        return file;
    }

  private slots:
    void initTestCase() {
        QVERIFY2(!qEnvironmentVariable("RECTO_STARTER_MODEL").isEmpty(), "run by tests/run");
    }

    // Every 61st of the stored cases, by turns from --text, --file and standard input, and back again.
    void ids_are_those_of_llama_cpp_and_go_back_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("ids");
        QTest::addColumn<bool>("special");
        QTest::addColumn<int>("way");
        const Json cases = file_json(RECTO_TEST_DATA "/text/starter.json")["cases"];
        int number = 0;
        for (std::size_t i = 0; i < cases.size(); i += 61) {
            const Json& c = cases[i];
            if (!c.contains("text") || c["text"].get<std::string>().find('\0') != std::string::npos) continue;
            QTest::addRow("case %d", int(i))
                << QByteArray::fromStdString(c["text"].get<std::string>())
                << QString::fromStdString(c["ids"].dump()) << c.value("special", false) << number++ % 3;
        }
        QTest::newRow("control token spelled out") << QByteArray("<|im_end|>") << "[2]" << true << 0;
    }
    void ids_are_those_of_llama_cpp_and_go_back() {
        QFETCH(QByteArray, text);
        QFETCH(QString, ids);
        QFETCH(bool, special);
        QFETCH(int, way);
        const QString file = folder_.filePath("text.txt");
        write_file(file, text);
        QStringList arguments = {"tokenize"};
        if (special) arguments << "--special";
        if (way == 0)
            arguments << "--text" << QString::fromUtf8(text);
        else
            arguments << "--file" << (way == 1 ? file : QStringLiteral("-"));
        const Run run = run_cli(arguments, way == 2 ? text : QByteArray());
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        QCOMPARE(QString::fromUtf8(run.out.trimmed()), ids);
        if (ids == "[]") return;
        write_file(folder_.filePath("ids.json"), run.out);
        const Run back =
            run_cli({"detokenize", "--special", "--json", "--file", folder_.filePath("ids.json")});
        QVERIFY2(back.code == 0, back.all().c_str());
        QCOMPARE(QByteArray::fromStdString(Json::parse(back.out.toStdString()).get<std::string>()), text);
    }

    void control_tokens_need_special() {
        const Run with = run_cli({"tokenize", "--text", "<|im_start|>hi", "--special"});
        QVERIFY2(ids_of(with)[0] == 1, with.all().c_str());
        const Run without = run_cli({"tokenize", "--text", "<|im_start|>hi"});
        QVERIFY2(ids_of(without).size() > 3 && ids_of(without)[0] != 1, without.all().c_str());
        QCOMPARE(run_cli({"detokenize", "--ids", "1,2"}).out, QByteArray("\n"));
        QCOMPARE(run_cli({"detokenize", "--ids", "[1, 2]", "--special"}).out,
                 QByteArray("<|im_start|><|im_end|>\n"));
    }

    // The starter adds no beginning-of-text token; tests/data/load/tiny_llama.gguf or another may.
    void no_bos_is_accepted() {
        const Run with = run_cli({"tokenize", "--text", "Hello world"});
        const Run without = run_cli({"tokenize", "--text", "Hello world", "--no-bos"});
        QVERIFY2(without.code == 0 && with.out == without.out, without.all().c_str());
    }

    void a_file_with_a_vocabulary_only_is_enough() {
        const qint64 end = end_of_metadata(starter_model());
        QVERIFY(end > 0);
        QByteArray bytes = file_bytes(starter_model()).left(end);
        for (int i = 8; i < 16; ++i)
            bytes[i] = 0;  // no tensors
        const QString file = folder_.filePath("vocabulary.gguf");
        write_file(file, bytes);
        const Run run = run_cli({"tokenize", "--model", file, "--text", "The capital of France is"});
        QVERIFY2(run.code == 0, run.all().c_str());
        // tests/data/model/starter_greedy.json, by transformers.
        QVERIFY(ids_of(run) == Json({504, 3575, 282, 4649, 314}));
        const Run back = run_cli({"detokenize", "--model", file, "--ids", "504,3575,282,4649,314"});
        QCOMPARE(back.out, QByteArray("The capital of France is\n"));
    }

    void bad_ids_are_refused_data() {
        QTest::addColumn<QString>("ids");
        QTest::addColumn<QString>("said");
        QTest::newRow("beyond the vocabulary") << "49152"
                                               << "49151";
        QTest::newRow("negative") << "-1"
                                  << "-1";
        QTest::newRow("33 bits") << "4294967297"
                                 << "4294967297";
        QTest::newRow("fraction") << "1.5"
                                  << "1.5";
        QTest::newRow("words") << "one,two"
                               << "token ids";
    }
    void bad_ids_are_refused() {
        QFETCH(QString, ids);
        QFETCH(QString, said);
        const Run run = run_cli({"detokenize", "--ids=" + ids});
        const std::string wrong = not_one_line_error(run, 2);
        QVERIFY2(wrong.empty() && run.err.contains(said.toUtf8()), run.all().c_str());
        write_file(folder_.filePath("bad.json"), ids.toUtf8());
        const Run from_file = run_cli({"detokenize", "--file", folder_.filePath("bad.json")});
        const std::string bad = not_one_line_error(from_file, 3);
        QVERIFY2(bad.empty() && from_file.err.contains("bad.json"), from_file.all().c_str());
    }

    void a_missing_text_file_is_bad_input() {
        const Run run = run_cli({"tokenize", "--file", "/no/such/text.txt"});
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty() && run.err.contains("/no/such/text.txt"), run.all().c_str());
    }

    void the_models_own_template() {
        const QByteArray conversation =
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n"
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi.<|im_end|>\n"
            "<|im_start|>user\nBye<|im_end|>\n";
        const Run open = run_cli({"template", "--messages", messages()});
        QVERIFY2(open.code == 0 && open.err.isEmpty(), open.all().c_str());
        QCOMPARE(open.out, conversation + "<|im_start|>assistant\n");
        const Run closed = run_cli({"template", "--messages", messages(), "--no-generation-prompt"});
        QCOMPARE(closed.out, conversation);
        const Run json = run_cli({"template", "--messages", messages(), "--json"});
        QCOMPARE(Json::parse(json.out.toStdString())["text"].get<std::string>(), open.out.toStdString());
    }

    void another_template_with_tokens_and_variables() {
        const QString file = folder_.filePath("own.jinja");
        // No newline at the end: the text is exactly what the template makes.
        write_file(file,
                   "{{ bos_token }}{% for m in messages %}{{ m.content | upper }},{% endfor %}{{ size + 1 }} "
                   "{{ names | join('-') }}{{ eos_token }}{% if add_generation_prompt %}>{% endif %}");
        const QStringList arguments = {
            "template",    "--messages", messages(), "--template", file,    "--bos-token",         "<s>",
            "--eos-token", "</s>",       "--var",    "size=41",    "--var", "names=[\"a\", \"b\"]"};
        const Run run = run_cli(arguments);
        QVERIFY2(run.code == 0, run.all().c_str());
        QCOMPARE(run.out, QByteArray("<s>HELLO,HI.,BYE,42 a-b</s>>"));
        const Run piped =
            run_cli({"template", "--messages", "-", "--template", file, "--bos-token", "", "--eos-token", "",
                     "--var", "size=1", "--var", "names=[]", "--no-generation-prompt"},
                    R"([{"role": "user", "content": "x"}])");
        QCOMPARE(piped.out, QByteArray("X,2 "));
    }

    void bad_templates_and_messages_are_refused_data() {
        QTest::addColumn<QByteArray>("messages");
        QTest::addColumn<QByteArray>("jinja");
        QTest::addColumn<QStringList>("more");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("said");
        const QByteArray good = R"([{"role": "user", "content": "x"}])";
        const QStringList none;
        QTest::newRow("no JSON") << QByteArray("[{") << QByteArray("x") << none << 3 << "m.json";
        QTest::newRow("no list") << QByteArray("{}") << QByteArray("x") << none << 3 << "m.json";
        QTest::newRow("no role") << QByteArray("[{\"content\": \"x\"}]") << QByteArray("x") << none << 3
                                 << "role";
        QTest::newRow("open block") << good << QByteArray("{% if x %}") << none << 3 << "line 1";
        QTest::newRow("raised") << good << QByteArray("{{ raise_exception('no such role') }}") << none << 3
                                << "no such role";
        QTest::newRow("variable") << good << QByteArray("x") << QStringList{"--var", "size"} << 2
                                  << "NAME=JSON";
        QTest::newRow("its value") << good << QByteArray("x") << QStringList{"--var", "size=x"} << 2
                                   << "size=x";
    }
    void bad_templates_and_messages_are_refused() {
        QFETCH(QByteArray, messages);
        QFETCH(QByteArray, jinja);
        QFETCH(QStringList, more);
        QFETCH(int, code);
        QFETCH(QString, said);
        write_file(folder_.filePath("m.json"), messages);
        write_file(folder_.filePath("t.jinja"), jinja);
        const Run run = run_cli(QStringList{"template", "--messages", folder_.filePath("m.json"),
                                            "--template", folder_.filePath("t.jinja")} +
                                more);
        const std::string wrong = not_one_line_error(run, code);
        QVERIFY2(wrong.empty() && run.err.contains(said.toUtf8()), run.all().c_str());
    }
};

RECTO_TEST_CLASS(TestText);
#include "test_text.moc"
