// generate on a tiny random model that has no tokenizer: the shape of --json, sampling flags, determinism,
// batches, refusals with numbers, interruption. Cheap, so that each case is a whole run of the program.
#include <fcntl.h>
#include <pty.h>
#include <sys/types.h>
#include <unistd.h>

#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <set>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;
using Names = std::vector<std::string>;

// NAME becomes the parsed lines of a run that must succeed. (An exception would end the whole test program.)
#define ANSWERS(NAME, ...)                                     \
    const Run NAME##_run = generate(__VA_ARGS__);              \
    QVERIFY2(NAME##_run.code == 0, NAME##_run.all().c_str());  \
    const std::vector<Json> NAME = json_lines(NAME##_run.out); \
    QVERIFY2(NAME.size() >= 2 && !NAME[0]["outputs"].empty(), NAME##_run.all().c_str())

class TestGenerate : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    int files_ = 0;

    // Writes the requests to a file and runs them. The last line is the summary.
    Run generate(const QByteArray& requests, const QStringList& more = {}) {
        const QString prompts = folder_.filePath(QString::number(files_++) + ".jsonl");
        write_file(prompts, requests);
        return run_cli(QStringList{"generate", "--model", tiny_model(), "--prompts", prompts, "--json"} +
                       more);
    }
    static Json tokens(const Json& answer, int output = 0) { return answer["outputs"][output]["token_ids"]; }

    // 64 greedy tokens after the first 16 ids, by transformers in float64
    // (tests/data/model/make_tiny_models.py).
    static Json stored_greedy() { return file_json(tiny_model() + "/greedy.json"); }
    static Json stored_prompt() {
        Json ids = file_json(tiny_model() + "/ids.json");
        ids.erase(ids.begin() + 16, ids.end());
        return ids;
    }
    static QByteArray request(const Json& fields = Json::object(), int prompt_tokens = 16) {
        Json r = {{"prompt_token_ids", Json::array()}};
        const Json ids = file_json(tiny_model() + "/ids.json");
        for (int i = 0; i < prompt_tokens; ++i)
            r["prompt_token_ids"].push_back(ids[std::size_t(i) % ids.size()]);
        if (fields.is_object()) r.update(fields);
        return QByteArray::fromStdString(r.dump()) + "\n";
    }
    static Json first(const Json& list, int count) {
        return Json(Json::array_t(list.begin(), list.begin() + count));
    }

    // User time of a process, from proc(5): the 14th field, counted in clock ticks.
    static double cpu_seconds(qint64 pid) {
        const QByteArray stat = file_bytes(QStringLiteral("/proc/%1/stat").arg(pid));
        const QList<QByteArray> fields = stat.mid(stat.lastIndexOf(')') + 2).split(' ');
        return fields.size() > 11 ? fields[11].toDouble() / double(sysconf(_SC_CLK_TCK)) : 0;
    }

    // Ctrl+C after a second of work with these prompts ends the program, with one line.
    void ends_when_interrupted(const QString& model, const QString& prompts) {
        QProcess process;
        process.start(cli_program(), {"generate", "--model", model, "--prompts", prompts});
        QVERIFY(process.waitForStarted());
        QVERIFY(QTest::qWaitFor([&] { return cpu_seconds(process.processId()) > 1; }, run_limit_ms));
        QCOMPARE(process.state(), QProcess::Running);
        QElapsedTimer timer;
        timer.start();
        kill(pid_t(process.processId()), SIGINT);
        Run run;
        finish(process, run);
        QVERIFY2(timer.elapsed() < 10'000, qPrintable(QString::number(timer.elapsed())));
        const std::string wrong = not_one_line_error(run, 130);
        QVERIFY2(wrong.empty() && run.err.contains("interrupted"), run.all().c_str());
    }

  private slots:
    // The width may be named either way; JSON has the same names. Best first, by their scores.
    void beams_by_flags_and_by_json() {
        const QStringList base = {"generate", "--model", tiny_model(), "--dtype", "float32", "--json"};
        QTemporaryDir dir;
        const QString file = dir.filePath("p.jsonl");
        write_file(
            file,
            R"({"prompt_token_ids": [5, 6, 7], "max_tokens": 6, "ignore_eos": true, "beam_width": 3, "n": 3})"
            "\n"
            R"({"prompt_token_ids": [5, 6, 7], "max_tokens": 6, "ignore_eos": true, "use_beam_search": true, "best_of": 3, "n": 2, "early_stopping": "never", "length_penalty": 0})"
            "\n"
            R"({"prompt_token_ids": [5, 6, 7], "max_tokens": 6, "ignore_eos": true, "temperature": 0.5, "beam_width": 3})"
            "\n");
        const Run run = run_cli(base + QStringList{"--prompts", file});
        QVERIFY2(run.code == 1, run.all().c_str());
        const auto lines = json_lines(run.out);
        QCOMPARE(lines[0]["outputs"].size(), std::size_t(3));
        QCOMPARE(lines[1]["outputs"].size(), std::size_t(2));
        for (std::size_t i = 0; i + 1 < 3; ++i) {
            QVERIFY(lines[0]["outputs"][i]["cumulative_logprob"] >=
                    lines[0]["outputs"][i + 1]["cumulative_logprob"]);
            QVERIFY(lines[0]["outputs"][i]["token_ids"] == lines[1]["outputs"][i]["token_ids"]);
        }
        QVERIFY(lines[2]["error"].get<std::string>().find(
                    "temperature must be 0 with use_beam_search, got 0.5") != std::string::npos);
    }

    // Field by field as the contract has it.
    void json_has_the_fields_of_the_contract() {
        ANSWERS(lines,
                request({{"logprobs", 2}, {"prompt_logprobs", 1}, {"n", 2}, {"seed", 1}}) +
                    request({{"temperature", 0}}),
                {"--max-tokens", "3", "--ignore-eos"});
        QCOMPARE(lines.size(), 3U);
        for (int i = 0; i < 2; ++i) {
            const Json& a = lines[std::size_t(i)];
            QCOMPARE(keys(a), (Names{"index", "prompt", "prompt_token_ids", "outputs", "prompt_logprobs",
                                     "error", "metrics"}));
            QCOMPARE(a["index"].get<int>(), i);
            QVERIFY(a["prompt_token_ids"] == stored_prompt());
            QVERIFY(a["error"].is_null());
            QCOMPARE(a["outputs"].size(), std::size_t(i == 0 ? 2 : 1));
            int index = 0;
            for (const Json& o : a["outputs"]) {
                QCOMPARE(keys(o), (Names{"index", "text", "token_ids", "finish_reason", "stop_reason",
                                         "cumulative_logprob", "logprobs"}));
                QCOMPARE(o["index"].get<int>(), index++);
                QVERIFY(o["text"].is_string());
                QCOMPARE(o["token_ids"].size(), 3U);
                QCOMPARE(o["finish_reason"].get<std::string>(), "length");
                QVERIFY(o["stop_reason"].is_null());
            }
            const Json& m = a["metrics"];
            QCOMPARE(keys(m), (Names{"queue_s", "ttft_s", "prefill_tokens", "cached_tokens", "decode_tokens",
                                     "prefill_tok_s", "decode_tok_s", "preemptions", "swaps",
                                     "prefix_queries", "prefix_hits"}));
            QVERIFY(m["queue_s"].get<double>() >= 0 &&
                    m["ttft_s"].get<double>() > m["queue_s"].get<double>());
            QCOMPARE(m["prefill_tokens"].get<int>() + m["cached_tokens"].get<int>(), 16);
            QCOMPARE(m["decode_tokens"].get<int>(), i == 0 ? 6 : 3);
            QVERIFY(m["prefill_tok_s"].get<double>() > 0 && m["decode_tok_s"].get<double>() > 0);
            QCOMPARE(m["preemptions"].get<int>(), 0);
        }
        const Json& s = lines.back();
        QCOMPARE(keys(s), Names{"summary"});
        QCOMPARE(keys(s["summary"]),
                 (Names{"load_s", "load_stages", "wall_s", "prompt_tokens", "output_tokens", "total_tok_s",
                        "kv_blocks_total", "kv_blocks_peak", "kv_waste_mean", "device", "kernels"}));
        const Json& v = s["summary"];
        QCOMPARE(v["prompt_tokens"].get<int>(), 32);
        QCOMPARE(v["output_tokens"].get<int>(), 9);
        double stages = 0;
        for (const Json& seconds : v["load_stages"])
            stages += seconds.get<double>();
        QVERIFY(!v["load_stages"].empty());
        QVERIFY(std::abs(stages - v["load_s"].get<double>()) < 0.02 + 0.1 * stages);  // the stages sum to it
        const double rate = 9 / v["wall_s"].get<double>();
        QVERIFY(std::abs(v["total_tok_s"].get<double>() - rate) < 1e-6 * rate);
        QVERIFY(v["kv_blocks_peak"].get<int>() >= 2);
        QVERIFY(v["kv_blocks_peak"].get<int>() <= v["kv_blocks_total"].get<int>());
        QVERIFY(v["kv_waste_mean"].get<double>() > 0 && v["kv_waste_mean"].get<double>() < 1);
        QVERIFY(!v["device"].get<std::string>().empty() && !v["kernels"].get<std::string>().empty());
    }

    // The sampled token first, then the best k; log probabilities sum to the cumulative one.
    void logprobs_are_there_only_when_asked_for() {
        ANSWERS(lines, request({{"logprobs", 2}, {"prompt_logprobs", 1}, {"seed", 1}}) + request(),
                {"--max-tokens", "4", "--ignore-eos"});
        const Json& with = lines[0]["outputs"][0];
        QCOMPARE(with["logprobs"].size(), 4U);
        double sum = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            const Json& row = with["logprobs"][i];
            QVERIFY(row.size() == 2 || row.size() == 3);  // the sampled one may be among the best
            QVERIFY(row[0]["token_id"] == with["token_ids"][i]);
            sum += row[0]["logprob"].get<double>();
            for (const Json& entry : row)
                QVERIFY(entry["logprob"].get<double>() <= 0 && entry["rank"].get<int>() >= 1);
        }
        QVERIFY(std::abs(sum - with["cumulative_logprob"].get<double>()) < 1e-5);
        QCOMPARE(lines[0]["prompt_logprobs"].size(), 16U);
        QVERIFY(lines[0]["prompt_logprobs"][0].is_null());  // nothing comes before the first token
        QVERIFY(!lines[0]["prompt_logprobs"][1].empty());
        const Json& without = lines[1]["outputs"][0];
        QVERIFY(without["logprobs"].is_null() && without["cumulative_logprob"].is_null());
        QVERIFY(lines[1]["prompt_logprobs"].is_null());
    }

    void greedy_tokens_are_those_of_transformers() {
        const Json expected = first(stored_greedy(), 48);
        for (const char* threads : {"1", "2"}) {
            ANSWERS(lines, request(),
                    {"--temperature", "0", "--max-tokens", "48", "--ignore-eos", "--dtype", "float32",
                     "--threads", threads});
            QVERIFY2(tokens(lines[0]) == expected, tokens(lines[0]).dump().c_str());
        }
    }

    void the_same_seed_gives_the_same_text() {
        const QStringList flags = {"--max-tokens", "24", "--ignore-eos", "--seed"};
        ANSWERS(once, request(), flags + QStringList{"7"});
        ANSWERS(again, request(), flags + QStringList{"7"});
        ANSWERS(one_thread, request(), flags + QStringList{"7", "--threads", "1"});
        ANSWERS(other_seed, request(), flags + QStringList{"8"});
        QVERIFY(tokens(once[0]) == tokens(again[0]));
        QVERIFY(tokens(once[0]) == tokens(one_thread[0]));
        QVERIFY(tokens(once[0]) != tokens(other_seed[0]));
    }

    // Nobody's text depends on who else is answered, nor on cached, chunked or preempted prompts.
    void text_does_not_depend_on_neighbours() {
        const QByteArray requests[] = {
            request({{"seed", 1}, {"n", 3}}), request({{"temperature", 0}}, 40),
            request({{"seed", 2}, {"temperature", 0.7}, {"top_p", 0.9}, {"top_k", 30}}, 23),
            request({{"seed", 3}, {"repetition_penalty", 1.3}, {"presence_penalty", 0.5}}, 90)};
        const QStringList flags = {"--max-tokens", "20", "--ignore-eos"};
        QByteArray all;
        for (const QByteArray& r : requests)
            all += r;
        ANSWERS(together, all, flags);
        ANSWERS(tight, all, flags + QStringList{"--kv-blocks", "8", "--max-num-batched-tokens", "16"});
        ANSWERS(no_cache, all, flags + QStringList{"--no-prefix-caching", "--block-size", "32"});
        int preemptions = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            ANSWERS(single, requests[i], flags);
            const Json& alone = single[0]["outputs"];
            QVERIFY2(together[i]["outputs"] == alone, together[i].dump().c_str());
            QVERIFY2(tight[i]["outputs"] == alone, tight[i].dump().c_str());
            QVERIFY2(no_cache[i]["outputs"] == alone, no_cache[i].dump().c_str());
            preemptions += tight[i]["metrics"]["preemptions"].get<int>();
        }
        QVERIFY2(preemptions > 0, "the pool of 8 blocks was meant to be too small");
    }

    void n_outputs_are_returned_in_order_and_differ() {
        ANSWERS(lines, request(), {"--n", "3", "--seed", "5", "--max-tokens", "16", "--ignore-eos"});
        std::set<std::string> different;
        for (int i = 0; i < 3; ++i) {
            QCOMPARE(lines[0]["outputs"][i]["index"].get<int>(), i);
            different.insert(tokens(lines[0], i).dump());
        }
        QCOMPARE(different.size(), 3U);
    }

    void stop_token_ends_an_answer_but_not_before_min_tokens() {
        const Json greedy = stored_greedy();
        const int stop = greedy[3].get<int>();  // 228, which comes again at place 6
        const QStringList flags = {"--temperature",
                                   "0",
                                   "--dtype",
                                   "float32",
                                   "--ignore-eos",
                                   "--max-tokens",
                                   "10",
                                   "--stop-token-ids",
                                   QString::number(stop)};
        ANSWERS(early, request(), flags);
        const Json& o = early[0]["outputs"][0];
        QCOMPARE(o["finish_reason"].get<std::string>(), "stop");
        QCOMPARE(o["stop_reason"].get<int>(), stop);
        QVERIFY(o["token_ids"] == first(greedy, 4));
        // Below min_tokens the stop token cannot be chosen at all.
        ANSWERS(held, request(), flags + QStringList{"--min-tokens", "6"});
        const Json& late = held[0]["outputs"][0];
        QVERIFY(late["token_ids"].size() >= 6);
        for (std::size_t i = 0; i < 6; ++i)
            QVERIFY(late["token_ids"][i] != stop);
    }

    void sampling_fields_beside_a_prompt_win_over_flags() {
        ANSWERS(lines,
                request({{"max_tokens", 2}}) + request() + request({{"logit_bias", {{"77", 100}}}}) +
                    request({{"allowed_token_ids", {9, 10}}}),
                {"--max-tokens", "5", "--temperature", "0", "--ignore-eos"});
        QCOMPARE(tokens(lines[0]).size(), 2U);
        QCOMPARE(tokens(lines[1]).size(), 5U);
        QVERIFY(tokens(lines[2]) == Json({77, 77, 77, 77, 77}));
        for (const Json& id : tokens(lines[3]))
            QVERIFY(id == 9 || id == 10);
    }

    void an_impossible_request_is_refused_with_the_numbers() {
        // 40 prompt tokens need 3 blocks of 16; the pool has one.
        const Run alone = generate(request({}, 40), {"--kv-blocks", "1"});
        QVERIFY2(alone.code == 2 || alone.code == 4, alone.all().c_str());
        const std::string wrong = not_one_line_error(alone, alone.code);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY2(alone.err.contains("40") && alone.err.contains("16"), alone.err.constData());
        // Beside another it fails alone, in its place, with the same sentence.
        const Run both =
            generate(request({}, 40) + request({}, 8), {"--kv-blocks", "1", "--max-tokens", "2"});
        QCOMPARE(both.code, 1);
        const auto lines = json_lines(both.out);
        QCOMPARE(lines.size(), 3U);
        QVERIFY(QByteArray::fromStdString(lines[0]["error"].get<std::string>()).contains("40"));
        QVERIFY(lines[0]["outputs"].empty());
        QVERIFY(lines[1]["error"].is_null());
        QCOMPARE(tokens(lines[1]).size(), 2U);
    }

    void too_long_a_context_for_the_pool_is_a_lack_of_memory() {
        const Run run = generate(request(), {"--kv-blocks", "4", "--max-model-len", "512"});
        const std::string wrong = not_one_line_error(run, 4);
        QVERIFY2(wrong.empty(), wrong.c_str());
        // 512 tokens are 32 blocks of 16.
        QVERIFY2(run.err.contains("512") && run.err.contains("32") && run.err.contains("4"),
                 run.err.constData());
        const Run huge = generate(request(), {"--kv-cache-gib", "1000000"});
        const std::string bad = not_one_line_error(huge, 4);
        QVERIFY2(bad.empty(), bad.c_str());
        QVERIFY2(huge.err.contains("free"), huge.err.constData());
    }

    void text_goes_to_stdout_and_nothing_to_a_stderr_that_is_no_terminal() {
        const QString prompts = folder_.filePath("plain.jsonl");
        write_file(prompts, request());
        const Run run = run_cli({"generate", "--model", tiny_model(), "--prompts", prompts});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        QVERIFY2(run.out.contains("Generated text: "), run.out.constData());
        QVERIFY2(QString::fromUtf8(run.out).contains(
                     QRegularExpression("\nload time: \\d+\\.\\d+ s\ngeneration time: \\d+\\.\\d+ s ")),
                 run.out.constData());
    }

    void progress_is_shown_on_a_terminal_only() {
        int master = -1;
        int slave = -1;
        QVERIFY(openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
        const QString prompts = folder_.filePath("terminal.jsonl");
        write_file(prompts, request());
        QProcess process;
        process.setChildProcessModifier([slave] { dup2(slave, STDERR_FILENO); });
        process.start(cli_program(), {"generate", "--model", tiny_model(), "--prompts", prompts, "--json"});
        QVERIFY(process.waitForStarted());
        close(slave);
        Run run;
        finish(process, run);
        QByteArray shown;
        char part[4096];
        // A terminal hands out what was written piece by piece, and EIO once nobody has it open any more.
        for (ssize_t count = 0; (count = read(master, part, sizeof part)) > 0;)
            shown.append(part, int(count));
        close(master);
        QCOMPARE(run.code, 0);
        QVERIFY2(shown.contains("loading"), shown.constData());
        QVERIFY2(shown.endsWith("\r\033[K"), "the progress line is wiped at the end");
        QCOMPARE(json_lines(run.out).size(), 2U);
    }

    // Ctrl+C ends every answer with the text so far. Many requests keep the program busy for long enough.
    void interrupt_keeps_the_text_so_far() {
        QByteArray many;
        for (int i = 0; i < 3000; ++i)
            many += request({{"seed", i}, {"max_tokens", 400}, {"ignore_eos", true}});
        const QString prompts = folder_.filePath("many.jsonl");
        write_file(prompts, many);
        QProcess process;
        process.start(cli_program(), {"generate", "--model", tiny_model(), "--prompts", prompts, "--json"});
        QVERIFY(process.waitForStarted());
        // Loading and reading take a few hundredths of a second of processor time: after a whole one, answers
        // run.
        QVERIFY(QTest::qWaitFor([&] { return cpu_seconds(process.processId()) > 1; }, run_limit_ms));
        QCOMPARE(process.state(), QProcess::Running);
        kill(pid_t(process.processId()), SIGINT);
        Run run;
        finish(process, run);
        QVERIFY2(run.code == 130, run.all().substr(0, 2000).c_str());
        const auto lines = json_lines(run.out);
        QCOMPARE(lines.size(), 3001U);
        int aborted = 0;
        int some_text = 0;
        for (std::size_t i = 0; i < 3000; ++i) {
            for (const Json& o : lines[i]["outputs"]) {
                aborted += o["finish_reason"] == "abort";
                some_text += o["finish_reason"] == "abort" && !o["token_ids"].empty();
            }
        }
        QVERIFY2(aborted > 0, "nothing was interrupted");
        QVERIFY2(some_text > 0, "no answer was under way");
    }

    // A thousand renderings, each of much work: Ctrl+C does not wait for them.
    void interrupt_reaches_a_template() {
        const QString model = folder_.filePath("slow");
        QCOMPARE(run_cli({"make-model", "--like", "tiny", "--out", model}).code, 0);
        write_file(model + "/chat_template.jinja",
                   "{% for a in range(25) %}{% for b in range(99999) %}{% endfor %}{% endfor %}x");
        QByteArray many;
        for (int i = 0; i < 1000; ++i)
            many += "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 1}\n";
        const QString prompts = folder_.filePath("slow.jsonl");
        write_file(prompts, many);
        ends_when_interrupted(model, prompts);
    }

    // One line of 40 MB keeps the tokenizer busy for tens of seconds, and it asks nobody.
    void interrupt_reaches_a_tokenizer() {
        const QString prompts = folder_.filePath("long.txt");
        write_file(prompts, QByteArray(40'000'000, 'a'));
        ends_when_interrupted(starter_model(), prompts);
        QFile::remove(prompts);
    }
};

RECTO_TEST_CLASS(TestGenerate);
#include "test_generate.moc"
