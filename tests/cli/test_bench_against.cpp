// bench --against on tiny models: order, keys, verdicts against their definition (users.md §5), equal
// prompts, the header, and the settings of B. Times are not judged, only what is said about them.
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <set>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;
using Names = std::vector<std::string>;

class TestBenchAgainst : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    static QString other_model() { return QStringLiteral(RECTO_TEST_DATA "/model/tiny/llama-biases-f16"); }
    static QStringList small(const QStringList& more = {}) {
        return QStringList{"bench", "--model",     tiny_model(), "--prompt-tokens", "8", "--output-tokens",
                           "5",     "--sequences", "1,2",        "--repeats",       "5", "--pause",
                           "0"} +
               more;
    }
    static const Json* row(const Json& report, const std::string& side, int sequences) {
        for (const Json& r : report["rows"])
            if (r["side"] == side && r["sequences"] == sequences) return &r;
        return nullptr;
    }
    static bool lower_is_better(const std::string& figure) {
        return figure.ends_with("_s") && !figure.ends_with("tok_s");
    }

    // The words by their definition, from the samples in the report.
    static std::string word_of(std::vector<double> a, std::vector<double> b, double ratio, double floor,
                               double p) {
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        if (a.size() < 5 || b.size() < 5) return "too few runs";
        if (std::abs(ratio - 1) <= floor) return "within noise";
        if (a.back() < b.front() || b.back() < a.front()) return "clear";
        return p < 0.05 ? "likely" : "within noise";
    }

  private slots:
    void a_against_b() {
        const Run run = run_cli(small({"--against", other_model(), "--json"}));
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const Json report = Json::parse(run.out.toStdString());
        QCOMPARE(report["rows"].size(), 4U);
        const Json& header = report["header"];
        QCOMPARE(header["order"].get<std::string>(), "ABBAABBAAB");
        QCOMPARE(header["against"].get<std::string>(), "llama-biases-f16");
        QVERIFY(header["sides"]["A"]["prompt_ids_fnv1a"] == header["sides"]["B"]["prompt_ids_fnv1a"]);
        // The order in which the runs really began.
        for (const int sequences : {1, 2}) {
            std::vector<std::pair<double, std::string>> runs;
            for (const std::string side : {"A", "B"}) {
                const Json* r = row(report, side, sequences);
                QVERIFY(r != nullptr);
                for (const Json& timed : (*r)["runs"])
                    if (timed["void"].is_null()) runs.emplace_back(timed["started_s"].get<double>(), side);
            }
            std::sort(runs.begin(), runs.end());
            std::string order;
            for (const auto& timed : runs)
                order += timed.second;
            QCOMPARE(order, "ABBAABBAAB");
        }
        check_verdicts(report);
        QCOMPARE(report["first_differences"].size(), 2U);
    }

    static void check_verdicts(const Json& report) {
        std::set<std::string> figures;
        for (const Json& v : report["verdicts"]) {
            const auto figure = v["figure"].get<std::string>();
            figures.insert(figure);
            const int sequences = figure == "load_s" ? 1 : v["sequences"].get<int>();
            const auto a = (*row(report, "A", sequences))[figure]["samples"].get<std::vector<double>>();
            const auto b = (*row(report, "B", sequences))[figure]["samples"].get<std::vector<double>>();
            const auto ratio = v["ratio"].get<double>();
            const auto floor = v["floor"].get<double>();
            QVERIFY(std::abs(v["b"].get<double>() / v["a"].get<double>() - ratio) < 1e-9);
            QVERIFY(floor >= 0.01);
            const std::string word = word_of(a, b, ratio, floor, v["p"].get<double>());
            QCOMPARE(v["verdict"].get<std::string>(), word);
            const Json better = word != "clear" && word != "likely"
                                    ? Json()
                                    : Json((ratio > 1) != lower_is_better(figure) ? "B" : "A");
            QVERIFY(v["better"] == better);
        }
        for (const char* figure : {"ttft_s", "prefill_tok_s", "decode_tok_s", "tpot_s", "itl_s",
                                   "total_tok_s", "total_decode_tok_s"})
            QVERIFY2(figures.count(figure) == 1, figure);
        // Memory and counts have no noise, so no verdict.
        for (const char* count : {"weight_bytes", "kv_tokens", "peak_bytes"})
            QVERIFY2(figures.count(count) == 0, count);
    }

    void in_turn_and_files() {
        const QString json = folder_.filePath("r.json");
        const QString csv = folder_.filePath("r.csv");
        const Run run = run_cli(
            small({"--against", other_model(), "--in-turn", "--json", json, "--csv", csv, "--markdown"}));
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const Json report = file_json(json);
        QCOMPARE(report["header"]["residency"].get<std::string>(), "loaded in turn");
        // A | B B | A A | B B | A A | B
        for (const Json& r : report["rows"])
            QCOMPARE(r["load_s"]["samples"].size(), 3U);
        const QList<QByteArray> lines = file_bytes(csv).trimmed().split('\n');
        QCOMPARE(lines.size(), 5);
        QVERIFY(lines[1].startsWith("A,") && lines[2].startsWith("B,"));
        QVERIFY(run.out.contains("| B ÷ A | verdict |") &&
                run.out.contains("- command: recto-cli bench --model "));
        QVERIFY(!run.out.contains(RECTO_TEST_DATA) && !file_bytes(json).contains(RECTO_TEST_DATA));
    }

    // The same weights under another setting: named as what differs.
    void settings_of_b() {
        const Run run =
            run_cli(small({"--against", tiny_model(), "--against-kv-cache-dtype", "float32", "--json"}));
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const Json report = Json::parse(run.out.toStdString());
        QVERIFY(report["rows"].size() == 4U);
        const auto names = report["header"]["differing_settings"].get<Names>();
        QVERIFY(std::find(names.begin(), names.end(), "kv_cache_dtype") != names.end());
        QVERIFY(
            report["header"]["command"].get<std::string>().ends_with(" --against-kv-cache-dtype float32"));
    }

    // Two tokenizers: the same text for both, so that characters a second stand beside tokens a second.
    void other_tokenizers_get_the_same_text() {
        const QString tiny = folder_.filePath("tiny");
        const Run made = run_cli({"make-model", "--like", "tiny", "--quantization", "none", "--out", tiny});
        QVERIFY2(made.code == 0, made.all().c_str());
        const Run run =
            run_cli({"bench", "--model", starter_model(), "--against", tiny, "--prompt-tokens", "24",
                     "--output-tokens", "4", "--sequences", "2", "--repeats", "1", "--pause", "0", "--json"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const Json report = Json::parse(run.out.toStdString());
        const auto prompts = report["header"]["prompts"].get<std::string>();
        QVERIFY2(prompts.starts_with("the same text"), prompts.c_str());
        const Json* a = row(report, "A", 2);
        const Json* b = row(report, "B", 2);
        QCOMPARE((*a)["input_tokens_mean"].get<double>(), 24.0);
        QVERIFY((*b)["input_tokens_mean"].get<double>() > 24);
        for (const Json* r : {a, b})
            QVERIFY(r->contains("prefill_char_s") && (*r)["prefill_char_s"]["median"].get<double>() > 0 &&
                    r->contains("decode_char_s"));
        QVERIFY(!report.contains("first_differences"));
    }

    // A pool that cannot hold the row to its end: the run is void, named, and no endless repetition.
    void a_pool_that_is_too_small_fails_with_the_reason() {
        const Run run =
            run_cli({"bench", "--model", tiny_model(), "--prompt-tokens", "40", "--output-tokens", "60",
                     "--sequences", "2", "--repeats", "1", "--pause", "0", "--kv-blocks", "8"});
        const std::string wrong = not_one_line_error(run, 1);
        QVERIFY2(wrong.empty() && run.err.contains("preempted"), run.all().c_str());
    }

    void a_missing_b_fails() {
        const Run run = run_cli(small({"--against", "/no/such/model"}));
        const std::string wrong = not_one_line_error(run, 3);
        QVERIFY2(wrong.empty() && run.err.contains("/no/such/model"), run.all().c_str());
    }
};

RECTO_TEST_CLASS(TestBenchAgainst);
#include "test_bench_against.moc"
