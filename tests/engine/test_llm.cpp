// LLM: its answers are those of an engine that is given the same ids.
// clang-format off: the engine comes before Qt, whose keyword macros would rewrite StepBatch::slots
#include "engine/llm.h"
#include "support/model_data.h"
// clang-format on
#include <QTest>
#include <functional>

#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

QString message_of(const std::function<void()>& action, ErrorKind kind) {
    try {
        action();
    } catch (const Error& e) {
        return e.kind() == kind ? QString::fromUtf8(e.what())
                                : QStringLiteral("wrong kind: %1").arg(e.what());
    }
    return QStringLiteral("no error");
}

std::string tiny() {
    return RECTO_TEST_DATA "/model/tiny/llama-gqa-tied";
}

}  // namespace

class TestLlm : public QObject {
    Q_OBJECT
  private slots:
    void textsAreTheEngines() {
        LlmOptions options;
        options.threads = 2;
        options.max_model_len = 256;
        options.engine.kv_blocks = 64;
        LLM llm(starter_path(), options);
        QVERIFY(llm.load_seconds() > 0);
        QCOMPARE(llm.engine().max_model_len(), 256);
        const auto alone = load_model(starter_path(), cpu_backend());
        const std::vector<std::string> prompts{"Hello, my name is", "The capital of France is"};
        const SamplingParams sampling{.n = 2, .temperature = 0.8, .top_p = 0.95, .seed = 5, .max_tokens = 12};
        const auto outputs = llm.generate(prompts, sampling);
        QCOMPARE(outputs.size(), std::size_t(2));
        for (std::size_t i = 0; i < 2; ++i) {
            const RequestOutput& o = outputs[i];
            QCOMPARE(o.prompt, prompts[i]);
            QVERIFY(o.prompt_token_ids == llm.model().tokenizer->encode(prompts[i]));
            QCOMPARE(o.outputs.size(), std::size_t(2));
            QCOMPARE(o.metrics.output_tokens, 24);
            for (int k = 0; k < 2; ++k) {
                EngineOptions roomy;
                roomy.kv_blocks = 64;
                Engine engine(alone, roomy);
                Request one;
                one.prompt = o.prompt_token_ids;
                one.sampling = sampling;
                one.sampling.n = 1;
                one.sampling.seed = 5 + k;
                const RequestId id = engine.submit(one);
                const Answer expected = run_to_end(engine).at(id);
                QVERIFY(o.outputs[std::size_t(k)].token_ids == expected.tokens);
                QCOMPARE(o.outputs[std::size_t(k)].text, expected.text);
                QCOMPARE(o.outputs[std::size_t(k)].finish_reason, expected.finish);
            }
        }
        const RequestOutput chat = llm.chat({{"system", "Be brief."}, {"user", "Name a colour."}},
                                            {.temperature = 0, .max_tokens = 8});
        QVERIFY(chat.prompt.find("Name a colour.<|im_end|>") != std::string::npos);
        QCOMPARE(chat.outputs.size(), std::size_t(1));
        QVERIFY(!chat.outputs[0].token_ids.empty());
    }

    void idsNeedNoTokenizer() {
        LLM llm(tiny(), {.dtype = ModelDType::f32, .threads = 1});
        const auto outputs = llm.generate(std::vector<std::vector<std::int32_t>>{{1, 2, 3}, {4, 5}},
                                          {.temperature = 0, .max_tokens = 5});
        QCOMPARE(outputs.size(), std::size_t(2));
        QVERIFY(outputs[0].prompt_token_ids == std::vector<std::int32_t>({1, 2, 3}));
        QCOMPARE(outputs[1].outputs[0].token_ids.size(), std::size_t(5));
        QVERIFY(message_of([&] { llm.generate(std::vector<std::string>{"text"}); }, ErrorKind::input)
                    .contains(QStringLiteral("expected a tokenizer for a text prompt, found none")));
        QVERIFY(message_of(
                    [&] {
                        llm.chat({{"user", "hi"}});
                    },
                    ErrorKind::input)
                    .contains(QStringLiteral("expected a chat template, found none")));
        // Refused before anything runs, and the engine is as before.
        QVERIFY(message_of(
                    [&] {
                        llm.generate(std::vector<std::vector<std::int32_t>>{{1, 2}, {}}, {.temperature = 0});
                    },
                    ErrorKind::argument)
                    .contains(QStringLiteral("the prompt must have at least one token")));
        QVERIFY(!llm.engine().has_work());
        QCOMPARE(llm.engine().snapshot().counts.used, 0);
    }

    void optionsAreChecked() {
        const auto made = [](LlmOptions o) { return [o] { LLM llm(tiny(), o); }; };
        QCOMPARE(message_of(made({.device = "tpu"}), ErrorKind::argument),
                 QStringLiteral("device must be auto, cpu, cuda or cuda:N, got tpu"));
        QCOMPARE(message_of(made({.device = "cuda:x"}), ErrorKind::argument),
                 QStringLiteral("device must be auto, cpu, cuda or cuda:N, got cuda:x"));
        QCOMPARE(message_of(made({.quantization = "exl2"}), ErrorKind::argument),
                 QStringLiteral(
                     "quantization must be auto, none, awq, gptq, compressed-tensors or gguf, got exl2"));
        QVERIFY(message_of(made({.quantization = "gptq"}), ErrorKind::input)
                    .contains(QStringLiteral("expected gptq weights, found none")));
        QCOMPARE(message_of(made({.swap_space_gib = -1}), ErrorKind::argument),
                 QStringLiteral("swap_space_gib must be in [0, 1048576], got -1.000000"));
        QVERIFY(message_of(made({.max_model_len = 100000}), ErrorKind::argument)
                    .startsWith(QStringLiteral("max_model_len must be in")));
        QVERIFY(message_of([] { LLM llm("/no/such/model"); }, ErrorKind::input)
                    .contains(QStringLiteral("/no/such/model")));
    }
};

RECTO_TEST_CLASS(TestLlm);
#include "test_llm.moc"
