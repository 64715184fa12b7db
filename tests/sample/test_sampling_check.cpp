// Every parameter with its range, one value outside each (vLLM's sampling_params.py), and the sentence that
// says so.
#include <QTest>
#include <functional>
#include <limits>

#include "engine/sample/sampling_params.h"
#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;

namespace {
using Change = std::function<void(SamplingParams&)>;

QString check_message(const Change& change) {
    SamplingParams p;
    change(p);
    try {
        p.check(100);
    } catch (const Error& e) {
        return e.kind() == ErrorKind::argument ? QString::fromUtf8(e.what()) : QStringLiteral("wrong kind");
    }
    return {};
}
}  // namespace
Q_DECLARE_METATYPE(Change)

class TestSamplingCheck : public QObject {
    Q_OBJECT
  private slots:
    void refuses_data() {
        QTest::addColumn<Change>("change");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* message, Change change) {
            QTest::newRow(message) << std::move(change) << QString::fromUtf8(message);
        };
        constexpr double inf = std::numeric_limits<double>::infinity();
        row("n must be in [1, 16384], got 0", [](auto& p) { p.n = 0; });
        row("n must be in [1, 16384], got 16385", [](auto& p) { p.n = 16385; });
        row("n must be 1 with temperature 0 (greedy outputs would be equal), got 2",
            [](auto& p) { p.n = 2, p.temperature = 0; });
        row("best_of must be in [n = 3, 16384], got 2", [](auto& p) { p.n = 3, p.best_of = 2; });
        row("best_of must be 1 with temperature 0 (greedy outputs would be equal), got 2",
            [](auto& p) { p.best_of = 2, p.temperature = 0; });
        row("best_of must be in [n = 1, 16384], got 16385", [](auto& p) { p.best_of = 16385; });
        row("beam_width must be left out without use_beam_search, got 4", [](auto& p) { p.beam_width = 4; });
        row("length_penalty must be 1 without use_beam_search, got 0.5",
            [](auto& p) { p.length_penalty = 0.5; });
        row("early_stopping must be false without use_beam_search, got true",
            [](auto& p) { p.early_stopping = EarlyStopping::yes; });
        row("early_stopping must be false without use_beam_search, got never",
            [](auto& p) { p.early_stopping = EarlyStopping::never; });
        const auto beams = [&row](const char* message, Change change) {
            row(message, [change](SamplingParams& p) {
                p.use_beam_search = true;
                p.temperature = 0;
                p.best_of = 4;
                change(p);
            });
        };
        beams("best_of must be in [2, 16384] with use_beam_search, got 1", [](auto& p) { p.best_of = 1; });
        beams("best_of must be in [5, 16384] with use_beam_search, got 4", [](auto& p) { p.n = 5; });
        beams("beam_width must be in [2, 16384] with use_beam_search, got 16385",
              [](auto& p) { p.best_of.reset(), p.beam_width = 16385; });
        beams("beam_width must be equal to best_of = 4 where both are given, got 3",
              [](auto& p) { p.beam_width = 3; });
        beams("temperature must be 0 with use_beam_search, got 0.5", [](auto& p) { p.temperature = 0.5; });
        beams("top_p must be 1 with use_beam_search, got 0.9", [](auto& p) { p.top_p = 0.9; });
        beams("top_k must be -1 or 0 (off) with use_beam_search, got 3", [](auto& p) { p.top_k = 3; });
        beams("min_p must be 0 with use_beam_search, got 0.1", [](auto& p) { p.min_p = 0.1; });
        beams("length_penalty must be finite, got inf", [](auto& p) { p.length_penalty = inf; });
        row("temperature must be in [0, 2], got 3.5", [](auto& p) { p.temperature = 3.5; });
        row("temperature must be in [0, 2], got -0.1", [](auto& p) { p.temperature = -0.1; });
        row("temperature must be in [0, 2], got nan", [](auto& p) { p.temperature = std::nan(""); });
        row("top_k must be -1 or 0 (off), or at least 1, got -2", [](auto& p) { p.top_k = -2; });
        row("top_p must be in (0, 1], got 0", [](auto& p) { p.top_p = 0; });
        row("top_p must be in (0, 1], got 1.01", [](auto& p) { p.top_p = 1.01; });
        row("min_p must be in [0, 1], got -0.5", [](auto& p) { p.min_p = -0.5; });
        row("min_p must be in [0, 1], got 1.5", [](auto& p) { p.min_p = 1.5; });
        row("repetition_penalty must be greater than 0 and finite, got 0",
            [](auto& p) { p.repetition_penalty = 0; });
        row("repetition_penalty must be greater than 0 and finite, got inf",
            [](auto& p) { p.repetition_penalty = inf; });
        row("repetition_penalty must be greater than 0 and finite, got 1e+308",  // infinite as a float
            [](auto& p) { p.repetition_penalty = 1e308; });
        row("repetition_penalty must be greater than 0 and finite, got 1e-300",  // 0 as a float
            [](auto& p) { p.repetition_penalty = 1e-300; });
        row("frequency_penalty must be in [-2, 2], got 2.1", [](auto& p) { p.frequency_penalty = 2.1; });
        row("presence_penalty must be in [-2, 2], got -2.1", [](auto& p) { p.presence_penalty = -2.1; });
        row("stop must be without an empty string, got \"\"", [](auto& p) { p.stop = {"a", ""}; });
        row("stop_token_ids must be token ids in [0, 99], got 100",
            [](auto& p) { p.stop_token_ids = {100}; });
        row("max_tokens must be at least 1, got 0", [](auto& p) { p.max_tokens = 0; });
        row("min_tokens must be at least 0, got -1", [](auto& p) { p.min_tokens = -1; });
        row("min_tokens must be in [0, max_tokens = 16], got 17", [](auto& p) { p.min_tokens = 17; });
        row("logprobs must be in [0, 20], got 21", [](auto& p) { p.logprobs = 21; });
        row("logprobs must be in [0, 20], got -1", [](auto& p) { p.logprobs = -1; });
        row("prompt_logprobs must be in [0, 20], got 21", [](auto& p) { p.prompt_logprobs = 21; });
        row("logit_bias must be token ids in [0, 99], got -1", [](auto& p) { p.logit_bias = {{-1, 1.0F}}; });
        row("logit_bias must be finite, got inf", [](auto& p) { p.logit_bias = {{1, float(inf)}}; });
        row("allowed_token_ids must be token ids in [0, 99], got 100", [](auto& p) {
            p.allowed_token_ids = {3, 100};
        });
        row("bad_words must be without an empty string, got \"\"", [](auto& p) { p.bad_words = {""}; });
        row("truncate_prompt_tokens must be at least 1, got 0",
            [](auto& p) { p.truncate_prompt_tokens = 0; });
    }
    void refuses() {
        QFETCH(Change, change);
        QFETCH(QString, message);
        QCOMPARE(check_message(change), message);
    }

    void acceptsTheLimits_data() {
        QTest::addColumn<Change>("change");
        const auto row = [](const char* name, Change change) { QTest::newRow(name) << std::move(change); };
        row("defaults", [](auto&) {});
        row("n", [](auto& p) { p.n = 16384; });
        row("best_of", [](auto& p) { p.n = 2, p.best_of = 2; });
        row("beams", [](auto& p) {
            p.use_beam_search = true, p.temperature = 0, p.n = p.best_of.emplace(2);
            p.length_penalty = -3, p.early_stopping = EarlyStopping::never, p.top_k = -1;
        });
        row("the most beams",
            [](auto& p) { p.use_beam_search = true, p.temperature = 0, p.beam_width = 16384; });
        row("seed none", [](auto& p) { p.seed = -1; });
        row("bias and allowed ids", [](auto& p) {
            p.logit_bias = {{0, 1.0F}, {99, -1.0F}}, p.allowed_token_ids = {0, 99};
        });
        row("truncate_prompt_tokens", [](auto& p) { p.truncate_prompt_tokens = 1; });
        row("one token", [](auto& p) { p.max_tokens = 1, p.min_tokens = 1; });
        row("temperature 0", [](auto& p) { p.temperature = 0; });
        row("temperature 2", [](auto& p) { p.temperature = 2; });
        row("top_k off", [](auto& p) { p.top_k = -1; });
        row("top_k beyond the vocabulary", [](auto& p) { p.top_k = 1000000; });
        row("top_p", [](auto& p) { p.top_p = 1e-9; });
        row("min_p", [](auto& p) { p.min_p = 1; });
        row("repetition_penalty", [](auto& p) { p.repetition_penalty = 1e-3; });
        row("frequency_penalty", [](auto& p) { p.frequency_penalty = -2; });
        row("presence_penalty", [](auto& p) { p.presence_penalty = 2; });
        row("stop ids", [](auto& p) { p.stop_token_ids = {0, 99}; });
        row("no limit", [](auto& p) { p.max_tokens.reset(), p.min_tokens = 1000; });
        row("min_tokens", [](auto& p) { p.min_tokens = 16; });
        row("logprobs", [](auto& p) { p.logprobs = 20, p.prompt_logprobs = 0; });
    }
    void acceptsTheLimits() {
        QFETCH(Change, change);
        QCOMPARE(check_message(change), QString());
    }
};

RECTO_TEST_CLASS(TestSamplingCheck);
#include "test_sampling_check.moc"
