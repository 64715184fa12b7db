// logits: the .npy file, its numbers, and refusals.
#include <QDir>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

class TestLogits : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    // The header of a .npy file, format 1.0 (numpy/lib/format.py): magic, version, length, a Python literal
    // padded to a multiple of 64 bytes; `data` is what follows.
    static QByteArray npy_header(const QByteArray& file, QByteArray& data) {
        if (!file.startsWith(QByteArray("\x93NUMPY\x01\x00", 8))) return "no .npy";
        const int length = uchar(file[8]) + 256 * uchar(file[9]);
        if ((10 + length) % 64 != 0 || file[9 + length] != '\n') return "badly padded";
        data = file.mid(10 + length);
        return file.mid(10, length).trimmed();
    }

  private slots:
    // logits.f32 beside each model is by transformers in float64 (tests/data/model/make_tiny_models.py).
    void rows_are_those_of_transformers_at_every_block_size() {
        const QByteArray expected = file_bytes(tiny_model() + "/logits.f32");
        QByteArray first;
        for (const char* block_size : {"8", "16", "32"}) {
            const QString out = folder_.filePath("exact.npy");
            const Run run =
                run_cli({"logits", "--model", tiny_model(), "--ids-file", tiny_model() + "/ids.json", "--out",
                         out, "--dtype", "float32", "--block-size", block_size});
            QVERIFY2(run.code == 0 && run.out.isEmpty() && run.err.isEmpty(), run.all().c_str());
            QByteArray data;
            const QByteArray header = npy_header(file_bytes(out), data);
            QCOMPARE(header, QByteArray("{'descr': '<f4', 'fortran_order': False, 'shape': (160, 259), }"));
            QCOMPARE(data.size(), expected.size());
            if (first.isEmpty()) first = data;
            QVERIFY2(data == first, "the bits depend on the block size");
        }
        std::vector<float> a(std::size_t(expected.size()) / 4);
        std::vector<float> b(a.size());
        std::memcpy(a.data(), expected.constData(), std::size_t(expected.size()));
        std::memcpy(b.data(), first.constData(), std::size_t(first.size()));
        double worst = 0;
        double squares = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            worst = std::max(worst, double(std::abs(a[i] - b[i])));
            squares += double(a[i]) * a[i];
        }
        // FP32 against float64: a thousandth of the logits' own size.
        QVERIFY2(worst < 1e-3 * std::sqrt(squares / double(a.size())), qPrintable(QString::number(worst)));
    }

    // One weight of the embedding, which is the head too, becomes a NaN: row 200 of 259, so that every
    // position has one, and all behind a token 200 is one.
    void logits_that_are_no_numbers_are_told() {
        const QString model = folder_.filePath("damaged"), out = folder_.filePath("damaged.npy");
        QVERIFY(QDir().mkpath(model) && QFile::copy(tiny_model() + "/config.json", model + "/config.json"));
        QByteArray file = file_bytes(tiny_model() + "/model.safetensors");
        std::uint64_t header = 0;
        std::memcpy(&header, file.constData(), sizeof header);
        const Json tensor =
            Json::parse(file.mid(8, qsizetype(header)).toStdString())["model.embed_tokens.weight"];
        QCOMPARE(tensor["dtype"].get<std::string>(), "F32");
        const auto row = tensor["shape"][1].get<std::size_t>() * sizeof(float);
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(file.data() + 8 + header + tensor["data_offsets"][0].get<std::size_t>() + 200 * row, &nan,
                    sizeof nan);
        write_file(model + "/model.safetensors", file);
        const Run run =
            run_cli({"logits", "--model", model, "--ids", "1,2,200", "--dtype", "float32", "--out", out});
        const std::string wrong = not_one_line_error(run, 1);
        QVERIFY2(wrong.empty() && run.err.contains("damaged.npy: ") &&
                     run.err.contains("3 of 3 rows with a NaN or an infinity, the first at position 0"),
                 run.all().c_str());
        QByteArray data;
        npy_header(file_bytes(out), data);
        QCOMPARE(data.size(), 3 * 259 * 4);
        std::vector<float> logits(3 * 259);
        std::memcpy(logits.data(), data.constData(), std::size_t(data.size()));
        QVERIFY(std::isnan(logits[200]) && !std::isnan(logits[199]) && std::isnan(logits[2 * 259]));
    }

    // The model itself, by a link too; what else lies in its folder may be replaced.
    void the_model_is_not_overwritten() {
        const QString model = folder_.filePath("model"), gguf = folder_.filePath("model.gguf");
        QCOMPARE(run_cli({"make-model", "--like", "tiny", "--out", model}).code, 0);
        QCOMPARE(run_cli({"make-model", "--like", "tiny", "--quantization", "gguf:Q8_0", "--out", gguf}).code,
                 0);
        const QString link = folder_.filePath("link.npy");
        QVERIFY(QFile::link(gguf, link));
        const QByteArray before = file_bytes(gguf), weights = file_bytes(model + "/model.safetensors");
        for (const auto& [from, out] : {std::pair{gguf, gguf},
                                        {gguf, link},
                                        {model, model + "/model.safetensors"},
                                        {model, model + "/config.json"}}) {
            const Run run = run_cli({"logits", "--model", from, "--ids", "1,2", "--out", out});
            const std::string wrong = not_one_line_error(run, 2);
            QVERIFY2(wrong.empty() && run.err.contains("a file of the model"), run.all().c_str());
        }
        QVERIFY(file_bytes(gguf) == before && file_bytes(model + "/model.safetensors") == weights);
        for (int i = 0; i < 2; ++i)
            QCOMPARE(run_cli({"logits", "--model", model, "--ids", "1,2", "--out", model + "/l.npy"}).code,
                     0);
    }

    void json_tells_the_shape() {
        const QString out = folder_.filePath("two.npy");
        const Run run = run_cli({"logits", "--model", tiny_model(), "--ids", "4, 5", "--out", out, "--json"});
        QVERIFY2(run.code == 0, run.all().c_str());
        const Json j = Json::parse(run.out.toStdString());
        QCOMPARE(j["tokens"].get<int>(), 2);
        QCOMPARE(j["vocab"].get<int>(), 259);
    }

    void bad_ids_are_refused_and_leave_no_file_data() {
        QTest::addColumn<QString>("ids");
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("said");
        QTest::newRow("out of range") << "1,259"
                                      << "" << 2 << "259";
        QTest::newRow("negative") << "1,-1"
                                  << "" << 2 << "-1";
        QTest::newRow("more than 32 bits") << "4294967297"
                                           << "" << 2 << "4294967297";
        QTest::newRow("fraction") << "1.5"
                                  << "" << 2 << "1.5";
        QTest::newRow("words") << "one"
                               << "" << 2 << "token ids";
        QTest::newRow("file without a list") << ""
                                             << "{\"ids\": 1}" << 3 << "token ids";
        QTest::newRow("file with nothing") << ""
                                           << "[]" << 3 << "token id";
        QTest::newRow("file that is no JSON") << ""
                                              << "1,2" << 3 << "token ids";
    }
    void bad_ids_are_refused_and_leave_no_file() {
        QFETCH(QString, ids);
        QFETCH(QString, file);
        QFETCH(int, code);
        QFETCH(QString, said);
        const QString out = folder_.filePath("refused.npy");
        const QString list = folder_.filePath("ids.json");
        write_file(list, file.toUtf8());
        const QStringList source =
            ids.isEmpty() ? QStringList{"--ids-file", list} : QStringList{"--ids", ids};
        const Run run = run_cli(QStringList{"logits", "--model", tiny_model(), "--out", out} + source);
        const std::string wrong = not_one_line_error(run, code);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY2(run.err.contains(said.toUtf8()), run.err.constData());
        QVERIFY(!QFile::exists(out));
    }

    void more_ids_than_the_context_are_refused_with_the_numbers() {
        QStringList ids;
        for (int i = 0; i < 513; ++i)
            ids << "7";
        const Run run = run_cli(
            {"logits", "--model", tiny_model(), "--ids", ids.join(','), "--out", folder_.filePath("x.npy")});
        const std::string wrong = not_one_line_error(run, 2);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY2(run.err.contains("512") && run.err.contains("513"), run.err.constData());
    }

    void more_ids_than_an_option_allows_are_refused() {
        for (const auto& [option, value] : {std::pair{"--max-model-len", "15"}, {"--kv-blocks", "1"}}) {
            QStringList ids;
            for (int i = 0; i < 17; ++i)
                ids << "7";
            const Run run = run_cli({"logits", "--model", tiny_model(), "--ids", ids.join(','), "--out",
                                     folder_.filePath("x.npy"), option, value});
            const std::string wrong = not_one_line_error(run, 2);
            QVERIFY2(wrong.empty() && run.err.contains(option) && run.err.contains("17"), run.all().c_str());
        }
    }

    // /dev/full fails every write as a full disk does (full(4)).
    void a_full_disk_is_named() {
        const Run run = run_cli({"logits", "--model", tiny_model(), "--ids", "1", "--out", "/dev/full"});
        const std::string wrong = not_one_line_error(run, 1);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY2(run.err.contains("/dev/full") && run.err.contains("No space left on device"),
                 run.err.constData());
    }

    void a_file_that_cannot_be_written_fails() {
        const Run run = run_cli({"logits", "--model", tiny_model(), "--ids", "1", "--out",
                                 folder_.filePath("no/such/folder.npy")});
        const std::string wrong = not_one_line_error(run, 1);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY2(run.err.contains("folder.npy"), run.err.constData());
    }
};

RECTO_TEST_CLASS(TestLogits);
#include "test_logits.moc"
