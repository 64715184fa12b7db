// Arguments of recto-cli: help, version, every common option, and refusals that name range and value.
// The expected names, values and exit codes are the command line's own contract.
#include <QTemporaryDir>
#include <QTest>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

class TestArguments : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    QStringList one_token() {  // a whole run that costs next to nothing
        const QString prompts = folder_.filePath("one.jsonl");
        if (!QFile::exists(prompts)) write_file(prompts, "{\"prompt_token_ids\": [5, 6, 7]}\n");
        return {"generate", "--model", tiny_model(), "--prompts", prompts, "--max-tokens", "1"};
    }

  private slots:
    void help_goes_to_stdout() {
        const Run run = run_cli({"--help"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        for (const char* command : {"generate", "chat", "tokenize", "detokenize", "template", "logits",
                                    "inspect", "bench", "version"}) {
            QVERIFY2(run.out.contains(command), command);
            const Run one = run_cli({command, "--help"});
            QVERIFY2(one.code == 0 && one.err.isEmpty() && one.out.contains("--help"), one.all().c_str());
        }
    }

    void a_wrong_argument_names_the_help_that_has_the_right_ones() {
        const Run inspect = run_cli({"inspect", "x.gguf"});
        QVERIFY2(inspect.code == 2 && inspect.err.contains("(recto-cli inspect --help)"),
                 inspect.all().c_str());
        const Run unnamed = run_cli({"bench", "--model", "x.gguf", "--json", ""});
        QVERIFY2(unnamed.code == 2 && unnamed.err.contains("got an empty name"), unnamed.all().c_str());
        const Run pause = run_cli({"bench", "--model", "x.gguf", "--pause", "nan"});
        QVERIFY2(pause.code == 2 && pause.err.contains("must be a number in [0, 600]"), pause.all().c_str());
        const Run none = run_cli({"--nope"});
        QVERIFY2(none.code == 2 && none.err.contains("(recto-cli --help)"), none.all().c_str());
    }

    void version_says_what_was_built() {
        const Run text = run_cli({"version"});
        QVERIFY2(text.code == 0 && text.err.isEmpty() && text.out.startsWith("recto "), text.all().c_str());
        const Run json = run_cli({"version", "--json"});
        QVERIFY2(json.code == 0 && json.err.isEmpty(), json.all().c_str());
        const Json v = Json::parse(json.out.toStdString());
        for (const char* key : {"version", "commit", "build", "cpu", "cuda"})
            QVERIFY2(v.contains(key), key);
        QVERIFY(v["cpu"]["threads"].get<int>() >= 1);
        QVERIFY(!v["cpu"]["kernels"].get<std::string>().empty());
    }

    void common_option_is_accepted_data() {
        QTest::addColumn<QStringList>("option");
        const QList<QStringList> options = {
            {"--device", "auto"},
            {"--device", "cpu"},
            {"--threads", "2"},
            {"--max-model-len", "64"},
            {"--kv-cache-gib", "0.01"},
            {"--kv-blocks", "8"},
            {"--block-size", "8"},
            {"--block-size", "32"},
            {"--max-num-seqs", "2"},
            {"--max-num-batched-tokens", "32"},
            {"--no-prefix-caching"},
            {"--no-overlap"},
            {"--gpu-memory-utilization", "0.5"},
            {"--cpu-offload-gib", "0"},
            {"--swap-space-gib", "0"},
            {"--swap-space-gib", "0.01"},
            {"--max-waiting", "1"},
            {"--beam-width", "2"},
            {"--use-beam-search", "--best-of", "3", "--n", "2", "--early-stopping", "never",
             "--length-penalty", "0.5"},
            {"--quantization", "auto"},
            {"--quantization", "none"},
            {"--dtype", "auto"},
            {"--dtype", "float16"},
            {"--dtype", "bfloat16"},
            {"--dtype", "float32"},
            {"--activations", "auto"},
            {"--activations", "16"},
            {"--activations", "8"},
            {"--kv-cache-dtype", "auto"},
            {"--kv-cache-dtype", "float32"},
            {"--kv-cache-dtype", "float16"},
            {"--kv-cache-dtype", "bfloat16"},
            {"--batch-invariant"},
            {"--json"},
        };
        for (const QStringList& option : options)
            QTest::newRow(qPrintable(option.join('='))) << option;
    }
    void common_option_is_accepted() {
        QFETCH(QStringList, option);
        const Run run = run_cli(one_token() + option);
        QVERIFY2(run.code == 0 && run.err.isEmpty() && !run.out.isEmpty(), run.all().c_str());
    }

    // Every option must be known to the other commands that load a model, too: one run each takes them all.
    void common_options_are_known_to_each_command_data() {
        QTest::addColumn<QStringList>("command");
        const QString out = folder_.filePath("all.npy");
        QTest::newRow("logits") << QStringList{"logits", "--ids", "1,2", "--out", out};
        QTest::newRow("inspect") << QStringList{"inspect"};
        QTest::newRow("bench") << QStringList{
            "bench", "--prompt-tokens", "4", "--output-tokens", "2", "--sequences", "1", "--repeats", "1"};
    }
    void common_options_are_known_to_each_command() {
        QFETCH(QStringList, command);
        const Run run = run_cli(command + QStringList{"--model",
                                                      tiny_model(),
                                                      "--device",
                                                      "cpu",
                                                      "--threads",
                                                      "1",
                                                      "--max-model-len",
                                                      "64",
                                                      "--kv-blocks",
                                                      "32",
                                                      "--block-size",
                                                      "16",
                                                      "--max-num-seqs",
                                                      "2",
                                                      "--max-num-batched-tokens",
                                                      "32",
                                                      "--no-prefix-caching",
                                                      "--no-overlap",
                                                      "--gpu-memory-utilization",
                                                      "0.9",
                                                      "--cpu-offload-gib",
                                                      "0",
                                                      "--swap-space-gib",
                                                      "0",
                                                      "--quantization",
                                                      "auto",
                                                      "--dtype",
                                                      "auto",
                                                      "--activations",
                                                      "auto",
                                                      "--kv-cache-dtype",
                                                      "auto",
                                                      "--batch-invariant",
                                                      "--json"});
        QVERIFY2(run.code == 0 && run.err.isEmpty(), run.all().c_str());
        QVERIFY2(Json::accept(run.out.toStdString()), run.all().c_str());
    }

    // /dev/full takes no byte, as a full disk does; a closed stream takes none either.
    void results_that_cannot_be_written_are_a_failure_data() {
        QTest::addColumn<QString>("where");
        QTest::addColumn<QStringList>("arguments");
        for (const char* where : {">/dev/full", ">&-"}) {
            const QString to = QString::fromUtf8(where);
            QTest::newRow(qPrintable("generate " + to)) << to << one_token();
            QTest::newRow(qPrintable("generate --json " + to)) << to << one_token() + QStringList{"--json"};
            QTest::newRow(qPrintable("version " + to)) << to << QStringList{"version"};
            QTest::newRow(qPrintable("help " + to)) << to << QStringList{"--help"};
        }
    }
    void results_that_cannot_be_written_are_a_failure() {
        QFETCH(QString, where);
        QFETCH(QStringList, arguments);
        QProcess shell;
        shell.start("/bin/sh", QStringList{"-c", "\"$0\" \"$@\" " + where, cli_program()} + arguments);
        Run run;
        finish(shell, run);
        const std::string wrong = not_one_line_error(run, 1);
        QVERIFY2(wrong.empty() && run.err.contains("standard output"), run.all().c_str());
    }

    // Otherwise the file of --out gets the number of standard output, and the results beside the array.
    void closed_output_does_not_lead_into_a_file() {
        const QString out = folder_.filePath("closed.npy");
        const QString whole = folder_.filePath("whole.npy");
        const QStringList arguments = {"logits", "--model", tiny_model(), "--ids", "1,2", "--json", "--out"};
        const Run reference = run_cli(arguments + QStringList{whole});
        QVERIFY2(reference.code == 0, reference.all().c_str());
        QProcess shell;
        shell.start("/bin/sh",
                    QStringList{"-c", "\"$0\" \"$@\" >&-", cli_program()} + arguments + QStringList{out});
        Run run;
        finish(shell, run);
        QVERIFY2(run.code == 1, run.all().c_str());
        QVERIFY(file_bytes(out) == file_bytes(whole));
    }

    void bad_value_is_refused_with_range_and_value_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QStringList>("said");
        const auto row = [&](const QStringList& option, const QStringList& said) {
            QTest::newRow(qPrintable(option.join('='))) << one_token() + option << said;
        };
        // Ranges of sampling parameters are vLLM's (sampling_params.py).
        row({"--temperature", "3"}, {"temperature", "[0, 2]", "3"});
        row({"--temperature", "-0.5"}, {"temperature", "[0, 2]", "-0.5"});
        row({"--temperature", "warm"}, {"temperature", "number", "warm"});
        row({"--top-p", "0"}, {"top_p", "(0, 1]", "0"});
        row({"--top-p", "1.5"}, {"top_p", "(0, 1]", "1.5"});
        row({"--top-k", "-2"}, {"top_k", "-1", "-2"});
        row({"--top-k", "1.5"}, {"top_k", "whole", "1.5"});
        row({"--min-p", "2"}, {"min_p", "[0, 1]", "2"});
        row({"--repetition-penalty", "0"}, {"repetition_penalty", "0"});
        row({"--frequency-penalty", "2.5"}, {"frequency_penalty", "[-2, 2]", "2.5"});
        row({"--presence-penalty", "-3"}, {"presence_penalty", "[-2, 2]", "-3"});
        row({"--n", "0"}, {"n must", "1", "0"});
        row({"--n", "two"}, {"n must", "number", "two"});
        row({"--max-tokens", "0"}, {"max_tokens", "1", "0"});
        row({"--min-tokens", "-1"}, {"min_tokens", "0", "-1"});
        row({"--min-tokens", "5"}, {"min_tokens", "max_tokens", "5"});
        row({"--logprobs", "21"}, {"logprobs", "20", "21"});
        row({"--prompt-logprobs", "-2"}, {"prompt_logprobs", "-2"});
        row({"--logit-bias", "7"}, {"logit_bias", "ID=BIAS", "7"});
        row({"--stop-token-ids", "x"}, {"stop_token_ids", "x"});
        row({"--threads", "-1"}, {"--threads", "0", "-1"});
        row({"--threads", "many"}, {"--threads", "many"});
        row({"--block-size", "0"}, {"--block-size", "8", "0"});
        row({"--block-size", "12"}, {"--block-size", "8", "12"});
        row({"--kv-blocks", "0"}, {"--kv-blocks", "1", "0"});
        row({"--kv-cache-gib", "0"}, {"--kv-cache-gib", "0"});
        row({"--kv-cache-gib", "-1"}, {"--kv-cache-gib", "-1"});
        row({"--kv-cache-gib", "nan"}, {"--kv-cache-gib", "greater than 0", "nan"});
        row({"--kv-cache-gib", "inf"}, {"--kv-cache-gib", "1048576", "inf"});
        row({"--kv-cache-gib", "1e300"}, {"--kv-cache-gib", "1048576", "1e300"});
        row({"--kv-cache-gib", "1", "--kv-blocks", "4"}, {"--kv-cache-gib", "--kv-blocks"});
        row({"--max-model-len", "-1"}, {"--max-model-len", "0", "-1"});
        row({"--max-model-len", "513"}, {"max_model_len", "512", "513"});  // config.json of the model: 512
        row({"--max-num-seqs", "-1"}, {"--max-num-seqs", "-1"});
        row({"--max-num-batched-tokens", "-1"}, {"--max-num-batched-tokens", "-1"});
        row({"--gpu-memory-utilization", "1.5"}, {"--gpu-memory-utilization", "1", "1.5"});
        row({"--gpu-memory-utilization", "nan"}, {"--gpu-memory-utilization", "[0.05, 1]", "nan"});
        row({"--swap-space-gib", "nan"}, {"--swap-space-gib", "[0, 1048576]", "nan"});
        row({"--cpu-offload-gib", "nan"}, {"--cpu-offload-gib", "[0, 1048576]", "nan"});
        row({"--cpu-offload-gib", "-1"}, {"--cpu-offload-gib", "-1"});
        row({"--cpu-offload-gib", "1", "--device", "cpu"}, {"--cpu-offload-gib", "CPU"});
        row({"--max-waiting", "-1"}, {"--max-waiting", "-1"});
        row({"--use-beam-search"}, {"best_of", "[2, 16384]", "1"});
        row({"--beam-width", "3", "--temperature", "0.5"}, {"temperature", "0", "0.5"});
        row({"--beam-width", "3", "--early-stopping", "soon"}, {"early_stopping", "soon"});
        row({"--length-penalty", "2"}, {"length_penalty", "use_beam_search", "2"});
        row({"--quantization", "exl2"}, {"--quantization", "awq", "gptq", "exl2"});
        row({"--dtype", "int3"}, {"--dtype", "float16", "bfloat16", "float32", "int3"});
        row({"--dtype", "float32", "--activations", "8"}, {"--dtype float32", "--activations 8"});
        row({"--activations", "4"}, {"--activations", "16", "8", "4"});
        row({"--kv-cache-dtype", "int2"}, {"--kv-cache-dtype", "float16", "fp8", "int2"});
        row({"--kv-cache-dtype", "fp8", "--device", "cpu"}, {"--kv-cache-dtype", "fp8", "CPU"});
        row({"--device", "tpu"}, {"--device", "auto", "cpu", "cuda:N", "tpu"});
        row({"--device", "cuda:x"}, {"--device", "cuda:N", "cuda:x"});
        row({"--device", "cuda0"}, {"--device", "cuda:N", "cuda0"});
        row({"--no-such-option"}, {"--no-such-option"});
        row({"stray"}, {"stray"});
        row({"--prompt", "both"}, {"--prompt", "--prompts"});
        const auto plain = [](const QStringList& arguments, const QStringList& said) {
            QTest::newRow(qPrintable("recto-cli " + arguments.join(' '))) << arguments << said;
        };
        plain({}, {"command"});
        plain({"nosuch"}, {"nosuch", "generate", "tokenize"});
        plain({"generate"}, {"--prompt", "--prompts"});
        plain({"generate", "--prompts", "prompts.csv", "--model", tiny_model()},
              {"prompts.csv", ".jsonl", ".txt"});
        plain({"tokenize"}, {"--text", "--file"});
        plain({"detokenize"}, {"--ids", "--file"});
        plain({"template"}, {"--messages"});
        plain({"logits", "--out", "x.npy", "--model", tiny_model()}, {"--ids", "--ids-file"});
        plain({"logits", "--ids", "1", "--model", tiny_model()}, {"--out"});
        plain({"logits", "--ids", "1,two", "--out", "x.npy", "--model", tiny_model()},
              {"--ids", "token ids"});
        const QStringList bench = {"bench", "--model", tiny_model()};
        plain(bench + QStringList{"--sequences", "0"}, {"sequences", "1", "0"});
        plain(bench + QStringList{"--prompt-tokens", "0"}, {"prompt", "1", "0"});
        plain(bench + QStringList{"--output-tokens", "0"}, {"output", "0"});
        plain(bench + QStringList{"--repeats", "0"}, {"repeats", "1", "0"});
        plain(bench + QStringList{"--depth", "-1"}, {"depth", "0", "-1"});
        // Model B's options by B's names.
        const QStringList against = bench + QStringList{"--against", tiny_model()};
        plain(against + QStringList{"--activations", "8", "--against-dtype", "float32"},
              {"--against-dtype float32", "--activations 8", "--against-activations 16"});
        plain(against + QStringList{"--dtype", "float32", "--against-activations", "8"},
              {"--dtype float32", "--against-activations 8"});
        plain(against + QStringList{"--against-dtype", "float32", "--against-activations", "8"},
              {"--against-dtype float32", "--against-activations 8"});
        // And only beside a B; an empty name is none.
        for (const auto& [option, value] : {std::pair{"--against-dtype", "float32"},
                                            {"--against-activations", "16"},
                                            {"--against-kv-cache-dtype", "float32"}})
            plain(bench + QStringList{option, value}, {QString("%1 %2").arg(option, value), "--against"});
        plain(
            QStringList{"perplexity", "--model", tiny_model(), "--file", "x.txt", "--against-dtype", "auto"},
            {"--against-dtype auto", "--against"});
        plain(bench + QStringList{"--against", ""}, {"--against", "empty"});
        plain({"bench", "--model", ""}, {"--model", "empty"});
        plain({"inspect", "--model", ""}, {"--model", "empty"});
        // No file or folder "-" is made where a result cannot go to standard output.
        for (const char* name : {"-", ""}) {
            const QString said = *name == '-' ? "got -" : "empty";
            plain({"logits", "--ids", "1", "--model", tiny_model(), "--out", name}, {"--out", said});
            plain({"convert", "--model", tiny_model(), "--out", name}, {"--out", said});
            plain({"make-model", "--like", "tiny", "--out", name}, {"--out", said});
            plain(bench + QStringList{"--csv", name}, {"--csv", said});
        }
    }
    void bad_value_is_refused_with_range_and_value() {
        QFETCH(QStringList, arguments);
        QFETCH(QStringList, said);
        const Run run = run_cli(arguments);
        const std::string wrong = not_one_line_error(run, 2);
        QVERIFY2(wrong.empty(), wrong.c_str());
        for (const QString& words : said)
            QVERIFY2(run.err.contains(words.toUtf8()), qPrintable(words + " is missing: " + run.err));
        QVERIFY(!QFile::exists("-"));
    }

    // A device that was asked for is used, or the run fails: the CPU never stands in for it.
    void a_card_is_never_replaced_by_the_cpu() {
        const Json v = Json::parse(run_cli({"version", "--json"}).out.toStdString());
        const Run run = run_cli(one_token() + QStringList{"--device", "cuda", "--json"});
        if (v["cuda"].is_null()) {
            const std::string wrong = not_one_line_error(run, 1);
            QVERIFY2(wrong.empty(), wrong.c_str());
            QVERIFY2(run.err.contains("--device cuda") && run.err.contains("CUDA"), run.err.constData());
        } else {
            QVERIFY2(run.code == 0, run.all().c_str());
            const auto name = json_lines(run.out).back()["summary"]["device"].get<std::string>();
            QCOMPARE(name, v["cuda"]["name"].get<std::string>());
        }
        const Run absent = run_cli(one_token() + QStringList{"--device", "cuda:99"});
        const std::string wrong = not_one_line_error(absent, 1);
        QVERIFY2(wrong.empty(), wrong.c_str());
    }
};

RECTO_TEST_CLASS(TestArguments);
#include "test_arguments.moc"
