// inspect: what is in a model, from headers only.
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

class TestInspect : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

  private slots:
    void initTestCase() {
        QVERIFY2(!qEnvironmentVariable("RECTO_STARTER_MODEL").isEmpty(), "run by tests/run");
    }

    // The numbers are the metadata of the file as gguf-py reads it.
    void the_starter_as_json() {
        const Run run = run_cli({"inspect", "--json", "--tensors"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const Json j = Json::parse(run.out.toStdString());
        const Json expected = {{"architecture", "llama"}, {"family", "Llama"},       {"layers", 30},
                               {"hidden", 576},           {"intermediate", 1536},    {"heads", 9},
                               {"kv_heads", 3},           {"head_dim", 64},          {"vocab", 49152},
                               {"max_position", 8192},    {"parameters", 134515008}, {"file_bytes", 98362432},
                               {"tied_embedding", true}};
        for (const auto& [key, value] : expected.items())
            QVERIFY2(j[key] == value, (key + ": " + j[key].dump()).c_str());
        QVERIFY(j["quantization"].get<std::string>().find("Q4_1") != std::string::npos);
        QVERIFY(j["tokenizer"].get<std::string>().find("smollm") != std::string::npos);
        QVERIFY(!j["chat_template"].is_null());
        QCOMPARE(j["activations"].get<std::string>(), "int8");  // CLI.md: 8 on the CPU
        const Json& m = j["memory"];
        // 30 layers × K and V × 3 heads × 64 × FP16.
        QCOMPARE(m["kv_bytes_per_token"].get<long long>(), 23040LL);
        QCOMPARE(m["full_context_kv_bytes"].get<long long>(), 23040LL * 8192);
        for (const char* key : {"weight_bytes", "workspace_bytes", "free_bytes", "longest_context"})
            QVERIFY2(m[key].get<long long>() > 0, key);
        QVERIFY(m["weight_bytes"].get<long long>() < 2 * 98362432LL);
        // Nine a layer, the embedding and the last norm.
        QCOMPARE(j["tensors"].size(), 30U * 9 + 2);
        long long bytes = 0;
        for (const Json& t : j["tensors"]) {
            for (const char* key : {"name", "type", "shape", "bytes"})
                QVERIFY2(t.contains(key), key);
            bytes += t["bytes"].get<long long>();
        }
        QVERIFY(bytes < 98362432 && bytes > 90000000);
    }

    void the_starter_as_text() {
        const Run run = run_cli({"inspect", "--tensors"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        for (const char* words : {"Llama", "Q4_1", "30 layers", "8192", "activations   ", "memory needed", "memory free",
                                  "longest context", "token_embd.weight", "blk.29.ffn_down.weight"})
            QVERIFY2(run.out.contains(words), words);
    }

    void a_folder_as_json() {
        const Run run = run_cli({"inspect", "--model", tiny_model(), "--json"});
        QVERIFY2(run.code == 0, run.all().c_str());
        const Json j = Json::parse(run.out.toStdString());
        // config.json of the model
        QVERIFY(j["layers"] == 2 && j["hidden"] == 64 && j["vocab"] == 259 && j["max_position"] == 512);
        QVERIFY(j["tokenizer"].is_null() && j["chat_template"].is_null());
        // Its weights are float32 ("torch_dtype"): there is nothing that 8-bit activations could meet.
        QCOMPARE(j["activations"].get<std::string>(), "floating");
        QVERIFY(!j.contains("tensors"));
    }

    // A file with a whole header and nothing but a hole behind it tells the same: the weights were not read.
    void headers_are_all_that_is_read() {
        const QString hollow = folder_.filePath("hollow.gguf");
        QFile source(starter_model());
        QVERIFY(source.open(QIODevice::ReadOnly));
        const Run whole = run_cli({"inspect", "--json", "--tensors"});
        Json expected = Json::parse(whole.out.toStdString());
        long long bytes = 0;
        for (const Json& t : expected["tensors"])
            bytes += t["bytes"].get<long long>();
        const qint64 header = source.size() - bytes;  // alignment between tensors only makes it shorter
        write_file(hollow, source.read(header));
        QVERIFY(QFile::resize(hollow, source.size()));
        const Run run = run_cli({"inspect", "--json", "--tensors", "--model", hollow});
        QVERIFY2(run.code == 0, run.all().c_str());
        Json found = Json::parse(run.out.toStdString());
        for (Json* j : {&expected, &found}) {
            j->erase("path");
            for (const char* now : {"free_bytes", "budget_bytes"})
                (*j)["memory"].erase(now);
        }
        QVERIFY2(found == expected, found.dump().substr(0, 2000).c_str());
    }

    // Cut inside the data: refused by name: the tensor, where it should lie, where the file ends.
    void a_cut_file_is_refused() {
        const QString cut = folder_.filePath("cut.gguf");
        QVERIFY(QFile::copy(starter_model(), cut));
        QVERIFY(QFile::setPermissions(cut, QFile::ReadOwner | QFile::WriteOwner));
        QVERIFY(QFile::resize(cut, 50'000'000));
        for (const char* command : {"inspect", "generate"}) {
            QStringList arguments = {command, "--model", cut};
            if (arguments[0] == "generate")
                arguments << "--prompt"
                          << "x";
            const Run run = run_cli(arguments);
            const std::string wrong = not_one_line_error(run, 3);
            QVERIFY2(wrong.empty() && run.err.contains("cut.gguf"), run.all().c_str());
            QVERIFY2(run.err.contains("tensor \"blk.") && run.err.contains("data ends at"),
                     run.err.constData());
        }
    }
};

RECTO_TEST_CLASS(TestInspect);
#include "test_inspect.moc"
