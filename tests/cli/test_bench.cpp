// bench on a tiny model: its JSON field by field, CSV and Markdown. Times are not judged, only their form.
#include <QDir>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <csignal>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;
using Names = std::vector<std::string>;

class TestBench : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    const QStringList small_ = {"bench", "--model", tiny_model(), "--prompt-tokens", "8", "--output-tokens",
                                "4",     "--depth", "0,32",       "--repeats",       "3", "--sequences",
                                "1,2"};

    static void check_report(const Json& report) {
        QCOMPARE(keys(report), (Names{"header", "rows", "verdicts"}));
        const Json& header = report["header"];
        // What a repetition needs: version, machine, model, settings, prompts, command.
        for (const char* key : {"recto", "commit", "build", "device", "kernels", "threads", "os", "model",
                                "quantization", "kv_cache_dtype", "block_size", "seed", "repeats",
                                "prompt_ids_fnv1a", "load_stages", "command"})
            QVERIFY2(header.contains(key), key);
        QVERIFY(report["verdicts"].is_array() &&
                report["verdicts"].empty());  // there is nothing to compare with
        QCOMPARE(report["rows"].size(), 4U);
        const Names wanted = {"side",
                              "model",
                              "sequences",
                              "prompt_tokens",
                              "output_tokens",
                              "depth",
                              "load_s",
                              "weight_bytes",
                              "kv_tokens",
                              "peak_bytes",
                              "ttft_s",
                              "prefill_tok_s",
                              "decode_tok_s",
                              "tpot_s",
                              "itl_s",
                              "total_tok_s",
                              "total_decode_tok_s"};
        std::vector<std::pair<int, int>> shapes;
        for (const Json& row : report["rows"]) {
            for (const std::string& key : wanted)
                QVERIFY2(row.contains(key), key.c_str());
            QCOMPARE(row["side"].get<std::string>(), "A");
            QCOMPARE(row["prompt_tokens"].get<int>(), 8);
            QCOMPARE(row["output_tokens"].get<int>(), 4);
            for (const char* count : {"weight_bytes", "kv_tokens", "peak_bytes"})
                QVERIFY2(row[count].is_number_integer() && row[count].get<long long>() > 0, count);
            for (const char* name : {"load_s", "ttft_s", "prefill_tok_s", "decode_tok_s", "tpot_s", "itl_s",
                                     "total_tok_s", "total_decode_tok_s"}) {
                const Json& f = row[name];
                for (const char* part : {"median", "iqr", "min", "max", "samples"})
                    QVERIFY2(f.contains(part), name);
                QVERIFY2(!f["samples"].empty(), name);
                std::vector<double> samples = f["samples"].get<std::vector<double>>();
                std::sort(samples.begin(), samples.end());
                QCOMPARE(f["min"].get<double>(), samples.front());
                QCOMPARE(f["max"].get<double>(), samples.back());
                if (samples.size() % 2) QCOMPARE(f["median"].get<double>(), samples[samples.size() / 2]);
                QVERIFY2(
                    f["iqr"].get<double>() >= 0 && f["iqr"].get<double>() <= samples.back() - samples.front(),
                    name);
            }
            QCOMPARE(row["ttft_s"]["samples"].size(), 3U);
            // DESIGN §9: one sequence's decode rate and its time per output token are each other's inverse.
            if (row["sequences"] == 1) {
                const double product = row["tpot_s"]["samples"][0].get<double>() *
                                       row["decode_tok_s"]["samples"][0].get<double>();
                QVERIFY2(std::abs(product - 1) < 1e-6, qPrintable(QString::number(product)));
            }
            shapes.emplace_back(row["sequences"].get<int>(), row["depth"].get<int>());
        }
        std::sort(shapes.begin(), shapes.end());
        QVERIFY((shapes == std::vector<std::pair<int, int>>{{1, 0}, {1, 32}, {2, 0}, {2, 32}}));
    }

  private slots:
    void json_to_stdout() {
        const Run run = run_cli(small_ + QStringList{"--json"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        check_report(Json::parse(run.out.toStdString()));
    }

    void files_are_written() {
        const QString json = folder_.filePath("r.json");
        const QString csv = folder_.filePath("r.csv");
        const Run run = run_cli(small_ + QStringList{"--json", json, "--csv", csv, "--markdown"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        check_report(file_json(json));
        const QList<QByteArray> lines = file_bytes(csv).trimmed().split('\n');
        QCOMPARE(lines.size(), 5);
        for (const QByteArray& line : lines)
            QCOMPARE(line.count(','), lines[0].count(','));
        QVERIFY(lines[0].startsWith("side,model,sequences,prompt_tokens,output_tokens,depth,"));
        QVERIFY2(run.out.contains("| sequences |") && run.out.count("\n| 2 |") == 2, run.out.constData());
    }

    void without_a_format_the_table_is_printed() {
        const Run run = run_cli({"bench", "--model", tiny_model(), "--prompt-tokens", "4", "--output-tokens",
                                 "2", "--sequences", "1", "--repeats", "1"});
        QVERIFY2(run.code == 0 && run.out.contains("| decode_tok_s |"), run.all().c_str());
    }

    void a_file_that_cannot_be_written_fails() {
        const Run run =
            run_cli({"bench", "--model", tiny_model(), "--prompt-tokens", "4", "--output-tokens", "2",
                     "--sequences", "1", "--repeats", "1", "--csv", "/no/such/folder/r.csv"});
        const std::string wrong = not_one_line_error(run, 1);
        QVERIFY2(wrong.empty() && run.err.contains("/no/such/folder/r.csv"), run.err.constData());
    }

    // Also where a link leads to the other; before anything is measured.
    void one_file_cannot_be_both_reports() {
        const QString file = folder_.filePath("both"), link = folder_.filePath("link_to_both");
        QVERIFY(QFile::link(file, link));
        for (const QString& csv : {file, link}) {
            const Run run = run_cli(small_ + QStringList{"--json", file, "--csv", csv});
            const std::string wrong = not_one_line_error(run, 2);
            QVERIFY2(wrong.empty() && run.err.contains("--json and --csv"), run.all().c_str());
            QVERIFY(!QFile::exists(file));
        }
    }

    // A file or a link beside the place belongs to somebody else.
    void what_stands_beside_a_report_stays() {
        const QString victim = folder_.filePath("victim"), json = folder_.filePath("beside.json");
        QFile precious(victim);
        QVERIFY(precious.open(QIODevice::WriteOnly) && precious.write("precious") == 8);
        precious.close();
        QVERIFY(QFile::link(victim, json + ".part"));
        const Run run = run_cli(small_ + QStringList{"--json", json});
        QVERIFY2(run.code == 0, run.all().c_str());
        check_report(file_json(json));
        QCOMPARE(file_bytes(victim), QByteArray("precious"));
        QCOMPARE(QFile::symLinkTarget(json + ".part"), victim);
    }

    // /dev/full takes no byte and says so at once, as a full disk does (full(4)): "No space left on device".
    void a_report_that_a_full_disk_refuses_goes_to_standard_output_data() {
        QTest::addColumn<QString>("option");
        for (const char* option : {"--json", "--csv"})
            QTest::newRow(option) << option;
    }
    void a_report_that_a_full_disk_refuses_goes_to_standard_output() {
        QFETCH(QString, option);
        const Run run = run_cli({"bench", "--model", tiny_model(), "--prompt-tokens", "4", "--output-tokens",
                                 "2", "--sequences", "1", "--repeats", "1", option, "/dev/full"});
        QVERIFY2(run.code == 1 && run.err.startsWith("recto-cli: /dev/full: ") && run.err.count('\n') == 1,
                 run.err.constData());
        QVERIFY2(run.err.contains("No space left on device"), run.err.constData());
        QCOMPARE(Json::parse(run.out.toStdString())["rows"].size(), 1U);
    }

    // A run that is refused leaves an older report as it was, and nothing beside it.
    void an_older_report_stays_until_the_new_one_is_whole() {
        QTemporaryDir folder;
        const QString json = folder.filePath("r.json");
        write_file(json, "older");
        const Run run = run_cli({"bench", "--model", tiny_model(), "--prompt-tokens", "600", "--json", json});
        QCOMPARE(run.code, 2);
        QCOMPARE(file_bytes(json), QByteArray("older"));
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files), QStringList{"r.json"});
    }

    // An interruption during a long run: what was measured, marked, and the exit code of CLI.md. How soon the
    // first run is done depends on the machine, so the signal comes later until there was one.
    void an_interrupted_benchmark_prints_what_it_measured() {
        for (const int wait_ms : {2000, 10000, 60000}) {
            Run run;
            QProcess process;
            process.start(cli_program(),
                          {"bench", "--model", tiny_model(), "--prompt-tokens", "4", "--output-tokens", "2",
                           "--sequences", "1", "--repeats", "1000000", "--pause", "0", "--json"});
            QVERIFY(process.waitForStarted());
            QVERIFY(!process.waitForFinished(wait_ms));
            for (int i = 0; i < 2; ++i)  // as timeout(1) sends it: to the program, and to its group
                kill(pid_t(process.processId()), SIGINT);
            finish(process, run);
            QVERIFY2(run.code == 130 && run.err.count('\n') == 1 && run.err.startsWith("recto-cli: "),
                     run.all().c_str());
            if (run.out.isEmpty()) continue;
            const Json report = Json::parse(run.out.toStdString());
            const auto done = report["rows"][0]["ttft_s"]["samples"].size();
            QVERIFY(done > 0);
            QCOMPARE(report["header"]["interrupted"].get<std::string>(),
                     std::to_string(done) + " of 1000000 timed runs were done");
            return;
        }
        QFAIL("no run was done within a minute");
    }

    // A row that does not fit the context is refused with the numbers (config.json of the model: 512).
    void a_shape_beyond_the_context_is_refused() {
        const Run run = run_cli({"bench", "--model", tiny_model(), "--prompt-tokens", "600",
                                 "--output-tokens", "2", "--sequences", "1", "--repeats", "1"});
        const std::string wrong = not_one_line_error(run, 2);
        QVERIFY2(wrong.empty() && run.err.contains("512"), run.all().c_str());
    }
};

RECTO_TEST_CLASS(TestBench);
#include "test_bench.moc"
