// run_compare on tiny models (tests/data): order, equal ids, both resident and in turn, header, and that a
// report reads back as it was written. Times are not judged.
#include "engine/bench/compare.h"
// Qt comes after it.
#include <QFile>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/bench/compare_report.h"
#include "engine/bench/model_files.h"
#include "engine/bench/page_cache.h"
#include "engine/bench/prompts.h"
#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;
namespace fs = std::filesystem;

class TestCompare : public QObject {
    Q_OBJECT

    static fs::path tiny(const char* name) { return fs::path(RECTO_TEST_DATA "/model/tiny") / name; }

    static CompareOptions small(const char* a, const char* b = nullptr) {
        CompareOptions o;
        o.a.model = tiny(a);
        if (b) {
            o.b.emplace();
            o.b->model = tiny(b);
        }
        o.workload.prompt_tokens = 8;
        o.workload.output_tokens = 5;
        o.workload.sequences = {1, 2};
        o.workload.repeats = 3;
        o.workload.max_warmups = 1;
        o.workload.pause_s = 0;
        o.make_backend = [] {
            CpuOptions cpu;
            cpu.threads = 1;
            return std::shared_ptr<Backend>(make_cpu_backend(cpu));
        };
        o.command_line = repeat_command(o, "cpu", 1);
        return o;
    }

    // The sides of all timed runs in the order they began.
    static std::string order_of(const CompareReport& r, int sequences) {
        std::vector<std::pair<double, char>> runs;
        for (const BenchRow& row : r.rows)
            if (row.sequences == sequences)
                for (const BenchRun& run : row.runs)
                    if (run.void_reason.empty()) runs.emplace_back(run.started_s, row.side);
        std::sort(runs.begin(), runs.end());
        std::string order;
        for (const auto& run : runs)
            order += run.second;
        return order;
    }

  private slots:
    void two_models_stay_loaded() {
        const CompareReport r = run_compare(small("llama-gqa-tied", "llama-biases-f16"), {}, {});
        QCOMPARE(r.rows.size(), 4U);
        QCOMPARE(order_of(r, 1), "ABBAAB");
        QCOMPARE(order_of(r, 2), "ABBAAB");
        QCOMPARE(r.header["order"].get<std::string>(), "ABBAAB");
        QVERIFY(r.header["residency"].get<std::string>().find("stay loaded") != std::string::npos);
        for (const BenchRow& row : r.rows) {
            QCOMPARE(row.ttft_s.samples.size(), 3U);
            QCOMPARE(row.total_decode_tok_s.samples.size(), 3U);
            QCOMPARE(row.load_s.samples.size(), 1U);
            QVERIFY(row.weight_bytes > 0 && row.kv_tokens > row.kv_pool_tokens && row.peak_bytes > 0);
        }
        // Neither has a tokenizer: an id is an id, and both got the same.
        const auto& sides = r.header["sides"];
        QCOMPARE(sides["A"]["prompt_ids_fnv1a"].get<std::string>(),
                 sides["B"]["prompt_ids_fnv1a"].get<std::string>());
        QCOMPARE(r.first_differences.size(), 2U);
        QCOMPARE(r.first_differences[1].first.size(), 2U);
        QVERIFY(!r.verdicts.empty());
        for (const Verdict& v : r.verdicts)
            QCOMPARE(v.word, "too few runs");  // three
    }

    void a_model_agrees_with_itself() {
        const CompareReport r = run_compare(small("llama-gqa-tied", "llama-gqa-tied"), {}, {});
        for (const FirstDifference& d : r.first_differences) {
            QCOMPARE(d.identical, d.sequences);
            QCOMPARE(d.median, 5.0);  // no token of five differs
        }
        QVERIFY(r.header["differing_settings"].empty());
    }

    void in_turn_has_the_same_order() {
        CompareOptions o = small("llama-gqa-tied", "llama-biases-f16");
        o.stay_loaded = false;
        const CompareReport r = run_compare(o, {}, {});
        QVERIFY(order_of(r, 1) == "ABBAAB" && order_of(r, 2) == "ABBAAB");
        QCOMPARE(r.header["residency"].get<std::string>(), "loaded in turn");
        // A | B B | A A | B: two loads a side, each found its files in memory.
        for (const BenchRow& row : r.rows)
            QCOMPARE(row.load_s.samples.size(), 2U);
        for (const char* side : {"A", "B"})
            for (const auto& load : r.header["sides"][side]["loads"])
                QCOMPARE(load["page_cache"].get<std::string>(), "warm");
    }

    void differing_settings_are_named() {
        CompareOptions o = small("../quantized/awq-gemm-llama", "../quantized/awq-gemm-llama");
        o.b->load.activations = ActivationMode::floating;
        o.b->engine.block_size = 32;
        const auto header = run_compare(o, {}, {}).header;
        const auto names = header["differing_settings"].get<std::vector<std::string>>();
        QVERIFY(std::find(names.begin(), names.end(), "activations") != names.end());
        QVERIFY(std::find(names.begin(), names.end(), "block_size") != names.end());
        QVERIFY(header["sides"]["A"]["activations"] == "int8" &&
                header["sides"]["B"]["activations"] == "floating");
    }

    // 8-bit activations are for quantized weights (CLI.md, --activations): where there are none, none are
    // used.
    void activations_are_those_in_use() {
        CompareOptions o = small("llama-gqa-tied", "llama-gqa-tied");
        o.a.load.activations = ActivationMode::eight;
        o.b->load.activations = ActivationMode::floating;
        const auto header = run_compare(o, {}, {}).header;
        QCOMPARE(header["activations"].get<std::string>(), "floating");
        QVERIFY(header["differing_settings"].empty());
    }

    void progress_fills_the_table() {
        double last = 0;
        std::size_t most = 0;
        bool rows_grow = true;
        const auto progress = [&](const CompareProgress& p) {
            QVERIFY(p.fraction >= last && p.report != nullptr);
            last = p.fraction;
            std::size_t samples = 0;
            for (const BenchRow& row : p.report->rows)
                samples += row.ttft_s.samples.size();
            rows_grow = rows_grow && samples >= most;
            most = samples;
        };
        run_compare(small("llama-gqa-tied", "llama-biases-f16"), progress, {});
        QVERIFY(rows_grow);
        QCOMPARE(most, 12U);
        QCOMPARE(last, 1.0);
    }

    void it_can_be_stopped() {
        for (const int after : {0, 3, 40}) {
            int asked = 0;
            try {
                run_compare(small("llama-gqa-tied", "llama-biases-f16"), {},
                            [&] { return asked++ >= after; });
                QFAIL("it was not stopped");
            } catch (const Error& e) {
                QCOMPARE(e.kind(), ErrorKind::cancelled);
            }
        }
    }

    // Stopped behind the first of two rows and one run of the next: 2 sides × 3 repeats × 2 rows are 12.
    void what_was_measured_before_a_stop_is_told() {
        CompareOptions o = small("llama-gqa-tied", "llama-biases-f16");
        std::size_t samples = 0;
        const auto progress = [&](const CompareProgress& p) {
            samples = 0;
            for (const BenchRow& row : p.report->rows)
                samples += row.ttft_s.samples.size();
        };
        try {
            run_compare(o, progress, [&] { return samples >= 7; });
            QFAIL("it was not stopped");
        } catch (const CompareStopped& stop) {
            QCOMPARE(stop.kind(), ErrorKind::cancelled);
            const CompareReport& r = *stop.so_far;
            QCOMPARE(r.header["interrupted"].get<std::string>(), "7 of 12 timed runs were done");
            QVERIFY(r.header.contains("ended") && r.header["order"] == "ABBAAB");
            QVERIFY(order_of(r, 1) == "ABBAAB" && order_of(r, 2) == "A");
            QCOMPARE(r.first_differences.size(), 1U);
            QVERIFY(!r.verdicts.empty());
            for (const Verdict& v : r.verdicts)
                QVERIFY2(v.sequences == 1 || v.figure == "load_s", v.figure.c_str());
            const std::string text = report_table(r);
            QVERIFY2(text.starts_with("**Interrupted: 7 of 12 "), text.c_str());
            QVERIFY2(text.find("not run") != std::string::npos, text.c_str());
            QCOMPARE(report_json(read_report(report_json(r), "r.json")).dump(), report_json(r).dump());
        }
    }

    void a_stop_before_b_was_loaded_says_so() {
        CompareOptions o = small("llama-gqa-tied", "llama-biases-f16");
        o.stay_loaded = false;
        bool measured = false;
        try {
            run_compare(
                o, [&](const CompareProgress& p) { measured = !p.report->rows[0].ttft_s.samples.empty(); },
                [&] { return measured; });
            QFAIL("it was not stopped");
        } catch (const CompareStopped& stop) {
            QCOMPARE(stop.so_far->header["residency"].get<std::string>(), "loaded in turn");
            const std::string text = report_table(*stop.so_far);
            QVERIFY2(text.find("B: llama-biases-f16, not loaded yet") != std::string::npos, text.c_str());
        }
    }

    // Every word of one letter and every time in a formula is defined, once where the formulas stand.
    void letters_of_formulas_are_defined() {
        const CompareReport r = run_compare(small("llama-gqa-tied", "llama-biases-f16"), {}, {});
        const auto& formulas = r.header["formulas"];
        const auto letters = QString::fromStdString(formulas["letters"].get<std::string>());
        const QRegularExpression symbol(QStringLiteral("\\bt_\\{?\\w+|(?<!')\\b[a-zA-Z]\\b|\u03a3"),
                                        QRegularExpression::UseUnicodePropertiesOption);
        int symbols = 0;
        for (const ReportColumn& c : report_columns()) {
            QCOMPARE(formulas[c.name].get<std::string>(), std::string(c.formula));
            for (auto found = symbol.globalMatch(QString::fromUtf8(c.formula)); found.hasNext(); ++symbols) {
                QString name = found.next().captured();
                if (name == "t_1" || name == "t_n" || name == "t_{i") name = "t_i";
                const bool defined = letters.contains(name + (name == QStringLiteral("\u03a3") ? "" : ": "));
                QVERIFY2(defined, qPrintable(name + " of " + QString::fromUtf8(c.formula)));
            }
        }
        QVERIFY(symbols > 15);
        const auto text = QString::fromStdString(report_markdown(r));
        QCOMPARE(text.count(letters), 1);
        const auto verdicts = QString::fromStdString(formulas["verdicts"].get<std::string>());
        QCOMPARE(text.count(verdicts), 1);
        QVERIFY(verdicts.contains("p: ") && verdicts.contains("floor: "));
    }

    void the_header_has_no_path() {
        const CompareReport r = run_compare(small("llama-gqa-tied"), {}, {});
        const std::string text = report_json(r).dump() + report_markdown(r) + report_csv(r);
        QVERIFY(text.find(RECTO_TEST_DATA) == std::string::npos);
        QVERIFY(text.find("model/tiny") == std::string::npos);
        const QByteArray user = qgetenv("HOME");
        if (user.size() > 1) QVERIFY(text.find(user.toStdString() + "/") == std::string::npos);
        for (const char* key : {"recto",
                                "commit",
                                "build",
                                "device",
                                "kernels",
                                "threads",
                                "machine",
                                "os",
                                "model",
                                "quantization",
                                "activations",
                                "kv_cache_dtype",
                                "block_size",
                                "kv_blocks",
                                "max_model_len",
                                "max_num_batched_tokens",
                                "prompt_ids_fnv1a",
                                "seed",
                                "sampling",
                                "prefix_caching",
                                "order",
                                "repeats",
                                "max_warmups",
                                "max_retries",
                                "pause_s",
                                "voided_runs",
                                "warnings",
                                "load_stages",
                                "started",
                                "ended",
                                "started_unix_s",
                                "ended_unix_s",
                                "command",
                                "sides",
                                "definitions",
                                "device_init_s"})
            QVERIFY2(r.header.contains(key), key);
        const auto& a = r.header["sides"]["A"];
        QVERIFY(!a["weight_forms"].empty() && !a["loads"].empty());
        QVERIFY(a["loads"][0].contains("page_cache"));
        bool found = false;
        for (const auto& file : a["files"]) {
            QVERIFY(file["sha256"].get<std::string>().size() == 64);
            found = found || file["file"] == "model.safetensors";
        }
        QVERIFY(found);
    }

    void a_load_is_the_sum_of_its_stages() {
        const CompareReport r = run_compare(small("llama-gqa-tied"), {}, {});
        double sum = 0;
        for (const auto& [name, seconds] : r.header["load_stages"].items())
            sum += seconds.get<double>();
        const double load = r.rows[0].load_s.median();
        QVERIFY2(std::abs(sum - load) <= 0.01 * load + 0.001, qPrintable(QString::number(sum / load)));
    }

    void a_report_reads_back() {
        const CompareReport r = run_compare(small("llama-gqa-tied", "llama-biases-f16"), {}, {});
        const auto json = report_json(r);
        QCOMPARE(report_json(read_report(json, "r.json")).dump(), json.dump());
        for (const auto& broken : {nlohmann::ordered_json(), nlohmann::ordered_json::array(),
                                   nlohmann::ordered_json{{"rows", 1}}}) {
            try {
                read_report(broken, "r.json");
                QFAIL("a broken report was read");
            } catch (const Error& e) {
                QCOMPARE(e.kind(), ErrorKind::input);
                QVERIFY(std::string(e.what()).rfind("r.json: ", 0) == 0);
            }
        }
        auto beyond = json;
        beyond["rows"][0]["runs"][0]["requests"][0]["steps"] = {{"list", {1000000}}};
        QVERIFY_THROWS_EXCEPTION(Error, read_report(beyond, "r.json"));
    }

    void the_command_repeats_it() {
        CompareOptions o = small("llama-gqa-tied", "llama-biases-f16");
        o.b->load.activations = ActivationMode::floating;
        o.a.engine.kv_blocks = 40;
        QCOMPARE(repeat_command(o, "cpu", 1),
                 "recto-cli bench --model llama-gqa-tied --against llama-biases-f16 --prompt-tokens 8 "
                 "--output-tokens 5 --sequences 1,2 --depth 0 --repeats 3 --seed 1 --pause 0 --device cpu "
                 "--threads 1 --kv-blocks 40 --against-activations 16");
        QCOMPARE(model_label("/x/models--org--some-name/snapshots/0123abc"), "org/some-name");
        QCOMPARE(model_label("/x/y/model.gguf"), "model.gguf");
        QCOMPARE(model_label("/x/y/folder/"), "folder");
    }

    void a_shape_beyond_the_context_is_refused() {
        CompareOptions o = small("llama-gqa-tied");
        o.workload.depths = {600};
        try {
            run_compare(o, {}, {});
            QFAIL("accepted");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::argument);
            QVERIFY(std::string(e.what()).find("512") != std::string::npos);
        }
    }

    // A file just read is in memory; its hash is that of the sha256sum program (coreutils), for a large one
    // of its ends.
    void files_are_hashed_and_measured() {
        QTemporaryDir folder;
        const fs::path file = folder.filePath("model-00001-of-00002.gguf").toStdString();
        const fs::path second = folder.filePath("model-00002-of-00002.gguf").toStdString();
        const std::string mib(1 << 20, 'x');
        {
            std::ofstream out(file, std::ios::binary);
            for (int i = 0; i < 3; ++i)
                out << mib;
            std::ofstream(second, std::ios::binary) << "abc";
        }
        const ModelFiles files = model_files(file);
        QVERIFY((files.weights == std::vector<fs::path>{file, second}));
        warm_page_cache(files.weights);
        QCOMPARE(page_cache_state(files.weights).describe(), "warm");
        QCOMPARE(hash_file(second).sha256,
                 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        const FileHash whole = hash_file(file);
        const FileHash ends = hash_file(file, 1);
        QVERIFY(whole.whole && !ends.whole && whole.bytes == 3U << 20);
        QCOMPARE(whole.sha256, "3bea8a9a07c1e8dcaa4c1b816815c35a29b4fb585ba6ecc70ea44840a794cfb3");
        QCOMPARE(ends.sha256, "6932fd31e5daf4739b9fa78ff777b2831b0995cc1d0b0093cac80601902013bc");
        QVERIFY_THROWS_EXCEPTION(Error, model_files(folder.filePath("none.gguf").toStdString()));
    }

    void page_cache_words() {
        const auto word = [](std::uint64_t resident) { return PageCacheState{1000, resident}.describe(); };
        QCOMPARE(word(1000), "warm");
        QCOMPARE(word(990), "warm");
        QCOMPARE(word(989), "mixed 99 %");
        QCOMPARE(word(370), "mixed 37 %");
        QCOMPARE(word(10), "cold");
        QCOMPARE(word(0), "cold");
    }
};

RECTO_TEST_CLASS(TestCompare);
#include "test_compare.moc"
