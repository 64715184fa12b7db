// perplexity: its output, its refusals.
#include <QTest>
#include <cmath>

#include "cli/cli.h"
#include "support/registry.h"

using namespace recto::test;

class TestPerplexityCommand : public QObject {
    Q_OBJECT

    const QString text_ = QStringLiteral(RECTO_TEST_DATA "/model/text.txt");

  private slots:
    // The figure is that of tests/data/model/make_perplexity_expected.py to three digits, also with int8.
    void json_and_text_agree_with_an_independent_forward() {
        const Json expected = Json::parse(
            file_bytes(QStringLiteral(RECTO_TEST_DATA "/model/starter_perplexity.json")).toStdString());
        const Json& window = expected.at(1);
        const QString context = QString::number(window["context"].get<int>());
        const Run exact =
            run_cli({"perplexity", "--file", text_, "--context", context, "--dtype", "float32", "--against",
                     QString::fromUtf8(qgetenv("RECTO_STARTER_MODEL")), "--against-dtype", "auto", "--json"});
        QVERIFY2(exact.code == 0 && exact.err.isEmpty(), exact.all().c_str());
        const Json j = Json::parse(exact.out.toStdString());
        QVERIFY(j["tokens"] == window["tokens"]);
        QVERIFY(j["windows"] == window["windows"]);
        QVERIFY(std::abs(j["perplexity"].get<double>() / window["perplexity"].get<double>() - 1) < 5e-4);
        QVERIFY(std::abs(j["standard_error"].get<double>() / window["standard_error"].get<double>() - 1) <
                5e-3);
        QVERIFY(j["perplexity_ratio"]["value"].get<double>() < 1.005);
        QVERIFY(j["kl"]["median"].get<double>() <= j["kl"]["p99"].get<double>());
        QVERIFY(j["kl"]["p99"].get<double>() <= j["kl"]["max"].get<double>());
        QVERIFY(j["top_agreement"].get<double>() > 0.9);
    }

    void wrong_arguments_and_files_have_their_codes() {
        const QString missing = QStringLiteral(RECTO_TEST_DATA "/no-such-text.txt");
        const Run no_file = run_cli({"perplexity", "--file", missing});
        QVERIFY2(no_file.code == 3 && no_file.err.contains("no-such-text.txt"), no_file.all().c_str());
        const Run short_context = run_cli({"perplexity", "--file", text_, "--context", "1"});
        QVERIFY2(short_context.code == 2, short_context.all().c_str());
        const Run long_context = run_cli({"perplexity", "--file", text_, "--context", "100000"});
        QVERIFY2(long_context.code == 2 && long_context.err.contains("[2, 8192]"),
                 long_context.all().c_str());
        const Run no_b = run_cli({"perplexity", "--file", text_, "--against-dtype", "float32"});
        QVERIFY2(no_b.code == 2 && no_b.err.contains("--against"), no_b.all().c_str());
        const Run no_tokenizer = run_cli({"perplexity", "--file", text_, "--model", tiny_model()});
        QVERIFY2(no_tokenizer.code == 3 && no_tokenizer.err.contains("tokenizer"),
                 no_tokenizer.all().c_str());
    }

    // --max-model-len and the pool bound the windows as they bound an engine's sequences. The model's KV
    // takes 30 layers · 2 · 3 heads · 64 · 2 bytes = 23,040 bytes a token, so that 3 blocks are 1,105,920
    // bytes.
    void windows_keep_to_the_options_of_length() {
        const auto context = [&](const QStringList& more) {
            const Run run = run_cli(QStringList{"perplexity", "--file", text_, "--json"} + more);
            return run.code == 0 ? Json::parse(run.out.toStdString())["context"].get<int>() : -run.code;
        };
        QCOMPARE(context({"--max-model-len", "128"}), 128);
        QCOMPARE(context({"--kv-blocks", "3"}), 48);
        QCOMPARE(context({"--kv-blocks", "3", "--max-model-len", "32"}), 32);
        QCOMPARE(context({"--kv-cache-gib", "0.00103"}), 48);  // 1,105,954 bytes
        QCOMPARE(context({"--kv-blocks", "3", "--context", "20"}), 20);
        for (const auto& [option, value] :
             {std::pair{"--max-model-len", "128"}, {"--kv-blocks", "3"}, {"--kv-cache-gib", "0.00103"}}) {
            const Run run = run_cli({"perplexity", "--file", text_, "--context", "256", option, value});
            const std::string wrong = not_one_line_error(run, 2);
            QVERIFY2(wrong.empty() && run.err.contains(option) && run.err.contains("256 tokens"),
                     run.all().c_str());
        }
        const Run beyond = run_cli({"perplexity", "--file", text_, "--max-model-len", "8193"});
        QVERIFY2(not_one_line_error(beyond, 2).empty() && beyond.err.contains("[1, 8192]"),
                 beyond.all().c_str());
    }

    void a_text_of_one_token_is_refused() {
        const Run run = run_cli({"perplexity", "--file", "-"}, "a");
        QVERIFY2(run.code == 3 && run.err.contains("two tokens"), run.all().c_str());
    }
};

RECTO_TEST_CLASS(TestPerplexityCommand);
#include "test_perplexity.moc"
