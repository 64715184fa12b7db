// generate and chat with the starter model: texts, stop strings, messages, prompt files, first token, memory.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <set>

#include "cli/cli.h"
#include "support/registry.h"

extern char** environ;

using namespace recto::test;

class TestStarter : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    static std::string text(const Json& answer, int output = 0) {
        return answer["outputs"][output]["text"].get<std::string>();
    }
    static Json first(const Json& list, int count) {
        return Json(Json::array_t(list.begin(), list.begin() + count));
    }

  private slots:
    void initTestCase() {
        QVERIFY2(!qEnvironmentVariable("RECTO_STARTER_MODEL").isEmpty(), "run by tests/run");
    }

    // starter_greedy.json: greedy tokens by transformers in float32 from the same GGUF
    // (tests/data/model/make_starter_expected.py). The texts are those tokens by llama.cpp's detokenizer, the
    // rendered messages are by jinja2 with the template in the file.
    void exact_answers_are_those_of_transformers() {
        const Json stored = file_json(RECTO_TEST_DATA "/model/starter_greedy.json");
        const Json paris = {{"prompt", "The capital of France is"}};
        const auto with = [](Json request, const Json& more) {
            request.update(more);
            return request;
        };
        const Json requests[] = {
            paris,
            {{"prompt", stored[3]["prompt"]}},
            {{"prompt_token_ids", stored[1]["ids"]}},
            with(paris, {{"stop", {"."}}}),
            with(paris, {{"stop", "."}, {"include_stop_str_in_output", true}}),
            with(paris, {{"stop", {"never", "answer is"}}}),
            with(paris, {{"logprobs", 2}, {"prompt_logprobs", 0}}),
            {{"messages", {{{"role", "user"}, {"content", "Hello"}}}}},
            with(paris, {{"n", 3}, {"temperature", 1}, {"seed", 3}}),
            {{"prompt", "<|im_end|>"}},
        };
        QByteArray lines;
        for (const Json& r : requests)
            lines += QByteArray::fromStdString(r.dump()) + "\n";
        write_file(folder_.filePath("exact.jsonl"), lines);
        const Run run =
            run_cli({"generate", "--prompts", folder_.filePath("exact.jsonl"), "--json", "--dtype", "float32",
                     "--temperature", "0", "--max-tokens", "8", "--kv-blocks", "64"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        const auto a = json_lines(run.out);
        QCOMPARE(a.size(), 11U);
        const int stored_at[] = {0, 3, 1};
        for (std::size_t i = 0; i < 3; ++i) {
            const Json& s = stored[std::size_t(stored_at[i])];
            QVERIFY2(a[i]["prompt_token_ids"] == s["ids"], a[i].dump().c_str());
            QVERIFY2(a[i]["outputs"][0]["token_ids"] == first(s["greedy"], 8), a[i].dump().c_str());
        }
        QCOMPARE(a[0]["prompt"].get<std::string>(), "The capital of France is");
        QCOMPARE(text(a[0]), " Paris.\n\nThe answer is:");
        QCOMPARE(text(a[1]), " around 1,000°");
        QCOMPARE(text(a[2]), " small town nestled between two mountains. The");

        QCOMPARE(text(a[3]), " Paris");
        QCOMPARE(a[3]["outputs"][0]["finish_reason"].get<std::string>(), "stop");
        QCOMPARE(a[3]["outputs"][0]["stop_reason"].get<std::string>(), ".");
        QCOMPARE(text(a[4]), " Paris.");
        QCOMPARE(text(a[5]), " Paris.\n\nThe ");  // the stop string spans two tokens
        QCOMPARE(a[5]["outputs"][0]["stop_reason"].get<std::string>(), "answer is");

        const Json& best = a[6]["outputs"][0]["logprobs"][0][0];
        QCOMPARE(best["token"].get<std::string>(), " Paris");
        QCOMPARE(best["rank"].get<int>(), 1);
        QCOMPARE(a[6]["prompt_logprobs"].size(), 5U);
        QVERIFY(a[6]["prompt_logprobs"][0].is_null());
        QVERIFY(a[6]["outputs"][0]["token_ids"] == a[0]["outputs"][0]["token_ids"]);

        QCOMPARE(a[7]["prompt"].get<std::string>(),
                 "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
                 "Face<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
        // Control tokens 1 and 2 (tokenizer.ggml.bos_token_id, eos_token_id of the file) come from the
        // template …
        const Json& chat_ids = a[7]["prompt_token_ids"];
        QCOMPARE(std::count(chat_ids.begin(), chat_ids.end(), Json(1)), 3);
        QCOMPARE(std::count(chat_ids.begin(), chat_ids.end(), Json(2)), 2);
        // … and never from the person's text.
        const Json& plain_ids = a[9]["prompt_token_ids"];
        QCOMPARE(std::count(plain_ids.begin(), plain_ids.end(), Json(2)), 0);
        QVERIFY(plain_ids.size() > 2);

        std::set<std::string> different;
        for (int i = 0; i < 3; ++i)
            different.insert(text(a[8], i));
        QCOMPARE(different.size(), 3U);
        QVERIFY(a[10]["summary"]["kv_blocks_total"] == 64);
    }

    // The command of the README, shorter: continuations in the order of the prompts, then the two times.
    void repeated_prompts_are_answered_in_order() {
        const Run run =
            run_cli({"generate", "--prompt", "Hello, my name is", "--prompt", "-5 + 3 =", "--prompt",
                     "The capital of France is", "--prompt", "", "--temperature", "0.8", "--top-p", "0.95",
                     "--max-tokens", "2", "--kv-blocks", "64"});
        // The empty prompt has no token at all: it fails by name and harms nobody.
        QCOMPARE(run.code, 1);
        QVERIFY2(run.err == "recto-cli: request 3: the prompt must have at least one token\n",
                 run.all().c_str());
        const auto one = run.out.indexOf("Prompt: Hello, my name is\nGenerated text: ");
        const auto two = run.out.indexOf("Prompt: -5 + 3 =\nGenerated text: ");
        const auto three = run.out.indexOf("Prompt: The capital of France is\nGenerated text: ");
        const auto times = run.out.indexOf("load time: ");
        QVERIFY2(one == 0 && one < two && two < three && three < times, run.all().c_str());
        QVERIFY(run.out.indexOf("generation time: ") > times);
    }

    void a_text_file_has_one_prompt_a_line_data() {
        QTest::addColumn<bool>("from_stdin");
        QTest::newRow("file") << false;
        QTest::newRow("standard input") << true;
    }
    void a_text_file_has_one_prompt_a_line() {
        QFETCH(bool, from_stdin);
        const QByteArray prompts = "One two\r\n\r\n  three {\"prompt\": 1}\nviér 五";
        const QString file = folder_.filePath("prompts.txt");
        write_file(file, prompts);
        const Run run = run_cli({"generate", "--prompts", from_stdin ? QStringLiteral("-") : file, "--json",
                                 "--max-tokens", "1", "--kv-blocks", "64"},
                                from_stdin ? prompts : QByteArray());
        QVERIFY2(run.code == 0, run.all().c_str());
        const auto lines = json_lines(run.out);
        QCOMPARE(lines.size(), 4U);
        QCOMPARE(lines[0]["prompt"].get<std::string>(), "One two");
        QCOMPARE(lines[1]["prompt"].get<std::string>(), "  three {\"prompt\": 1}");
        QCOMPARE(lines[2]["prompt"].get<std::string>(), "viér 五");
    }

    void the_number_of_threads_does_not_change_the_text() {
        QByteArray found;
        for (const char* threads : {"1", "2"}) {
            const Run run =
                run_cli({"generate", "--prompt", "Once upon a time", "--seed", "9", "--max-tokens", "6",
                         "--json", "--threads", threads, "--kv-blocks", "64"});
            QVERIFY2(run.code == 0, run.all().c_str());
            const QByteArray ids = QByteArray::fromStdString(json_lines(run.out)[0]["outputs"].dump());
            if (found.isEmpty()) found = ids;
            QCOMPARE(ids, found);
        }
    }

    // Six turns in a context of 96 tokens. With drop-oldest every one is answered and what was left out is
    // said; with stop the conversation says that it is full.
    void a_full_context_is_said() {
        QByteArray talk;
        for (const char* what : {"red", "green", "blue", "black", "white", "grey"})
            talk += QByteArray("Please name something that is ") + what + " in one word.\n";
        const QStringList flags = {"chat", "--temperature",   "0", "--max-tokens",
                                   "6",    "--max-model-len", "96"};
        Run run = run_cli(flags + QStringList{"--context-end", "drop-oldest"}, talk);
        QVERIFY2(run.code == 0, run.all().c_str());
        QCOMPARE(run.out.count('\n'), 6);
        QVERIFY2(run.err.startsWith("[the context of 96 tokens is full: left out the "), run.all().c_str());
        QVERIFY2(run.err.contains(" oldest messages, ") && !run.err.contains("recto-cli"), run.all().c_str());

        run = run_cli(flags, talk);
        QVERIFY2(run.code == 0, run.all().c_str());
        QVERIFY2(run.err.startsWith("recto-cli: the conversation has ") &&
                     run.err.contains("but the context holds 96, of which 6 are kept for the answer"),
                 run.all().c_str());
        QVERIFY2(run.out.count('\n') < 6, run.all().c_str());

        run = run_cli(flags + QStringList{"--context-end", "truncate"}, talk);
        QVERIFY2(run.code == 0 && run.err.contains("left out the beginning of the prompt, "),
                 run.all().c_str());
        run = run_cli(flags + QStringList{"--context-end", "forget"}, talk);
        QCOMPARE(run.code, 2);
    }

    // Two turns through a pipe. A second program, given the same messages, must answer the same: the chat
    // reuses cached blocks, the other computes everything.
    void chat_through_a_pipe() {
        const QStringList flags = {"--temperature", "0", "--max-tokens", "6", "--kv-blocks", "64"};
        const Run chat = run_cli(QStringList{"chat"} + flags,
                                 "/help\nName a \\\ncolour.\n/nonsense\nAnother.\n"
                                 "/stats\n/exit\nnever read\n");
        QVERIFY2(chat.code == 0 && chat.err.isEmpty(), chat.all().c_str());
        QVERIFY2(chat.out.startsWith("/help"), chat.out.constData());
        const QByteArray unknown = "unknown command /nonsense; /help lists them\n";
        const auto middle = chat.out.indexOf(unknown);
        const auto stats = chat.out.indexOf("KV blocks: ");
        QVERIFY2(middle > 0 && stats > middle, chat.out.constData());

        const Json turn_1 = {{"role", "user"}, {"content", "Name a \ncolour."}};
        const Json turn_3 = {{"role", "user"}, {"content", "Another."}};
        const auto answer_to = [&](const Json& messages) {
            const Json request = {{"messages", messages}};
            write_file(folder_.filePath("turn.jsonl"), QByteArray::fromStdString(request.dump()) + "\n");
            return run_cli(QStringList{"generate", "--prompts", folder_.filePath("turn.jsonl"), "--json"} +
                           flags);
        };
        const Run one = answer_to(Json::array({turn_1}));
        QVERIFY2(one.code == 0, one.all().c_str());
        const std::string said = text(json_lines(one.out)[0]);
        QVERIFY2(chat.out.left(middle).endsWith(QByteArray::fromStdString("\n" + said + "\n")),
                 chat.out.constData());
        const Json turn_2 = {{"role", "assistant"}, {"content", said}};
        const Run two = answer_to(Json::array({turn_1, turn_2, turn_3}));
        QVERIFY2(two.code == 0, two.all().c_str());
        const QByteArray second = chat.out.mid(middle + unknown.size(), stats - middle - unknown.size());
        QCOMPARE(second, QByteArray::fromStdString(text(json_lines(two.out)[0]) + "\n"));
        QVERIFY2(!chat.out.contains("prefix hits 0 of"), "the second turn reuses the first one's blocks");
    }

    // Printed for looking at; a shared machine's times prove nothing. Memory is held to its bound: the file,
    // the KV blocks that were used, and 150 MiB.
    void first_token_and_memory() {
        const QString out = folder_.filePath("cost.json");
        const QByteArray program = cli_program().toUtf8();
        const char* arguments[] = {program.constData(),
                                   "generate",
                                   "--prompt",
                                   "The capital of France is",
                                   "--max-tokens",
                                   "1",
                                   "--json",
                                   "--kv-blocks",
                                   "512",
                                   nullptr};
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, out.toUtf8().constData(), O_WRONLY | O_CREAT | O_TRUNC,
                                         0600);
        QElapsedTimer timer;
        timer.start();
        pid_t child = 0;
        QCOMPARE(posix_spawn(&child, program.constData(), &actions, nullptr, const_cast<char**>(arguments),
                             environ),
                 0);
        int status = 0;
        rusage usage{};
        QCOMPARE(wait4(child, &status, 0, &usage), child);
        const double seconds = double(timer.nsecsElapsed()) * 1e-9;
        posix_spawn_file_actions_destroy(&actions);
        QVERIFY(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        const auto lines = json_lines(file_bytes(out));
        const Json& summary = lines.back()["summary"];
        const double mib = 1 << 20;
        const double peak = double(usage.ru_maxrss) * 1024;
        const double file = double(QFileInfo(starter_model()).size());
        // 30 layers × K and V × 3 KV heads × 64 × FP16 × 16 slots (the file's own metadata).
        const double block = 30.0 * 2 * 3 * 64 * 2 * 16;
        const double used = summary["kv_blocks_peak"].get<double>() * block;
        qInfo(
            "start to first token and exit: %.3f s (load %.3f s, first token %.3f s after its request); peak "
            "memory %.1f MiB = file %.1f + KV in use %.1f + %.1f MiB",
            seconds, summary["load_s"].get<double>(), lines[0]["metrics"]["ttft_s"].get<double>(), peak / mib,
            file / mib, used / mib, (peak - file - used) / mib);
        QCOMPARE(summary["kv_blocks_total"].get<int>(), 512);
        QVERIFY2(peak <= file + used + 150 * mib, "see the line above");
    }
};

RECTO_TEST_CLASS(TestStarter);
#include "test_starter.moc"
