// The same text alone, in a batch, chunked, after preemption and from the prefix cache, on the real model in
// both activation modes. The reference is each prompt run alone; that text itself is held against an
// independent implementation in tests/model.
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

class TestStarterInvariance : public QObject {
    Q_OBJECT

    static constexpr int tokens = 40;

    static std::vector<std::vector<std::int32_t>> prompts(const Model& model) {
        const std::string shared =
            "A paged cache treats memory the way a library treats its shelves. Nobody reserves a whole aisle "
            "for a reader "
            "who might one day borrow two hundred books. ";
        std::vector<std::vector<std::int32_t>> made;
        for (const char* tail :
             {"The reader", "In the end,", "One evening the librarian", "def shelf(n):", "Question: why?"})
            made.push_back(model.tokenizer->encode(shared + tail));
        return made;
    }

    static EngineOptions roomy() {
        EngineOptions o;
        o.kv_blocks = 256;
        return o;
    }

    static std::vector<std::vector<std::int32_t>> alone(const std::shared_ptr<const Model>& model) {
        std::vector<std::vector<std::int32_t>> texts;
        for (const auto& prompt : prompts(*model)) {
            EngineOptions o = roomy();
            o.prefix_caching = false;
            Engine engine(model, o);
            const RequestId id = engine.submit(greedy_request(prompt, tokens));
            texts.push_back(run_to_end(engine).at(id).tokens);
        }
        return texts;
    }

    static std::vector<Answer> together(Engine& engine, const Model& model) {
        std::vector<RequestId> ids;
        for (const auto& prompt : prompts(model))
            ids.push_back(engine.submit(greedy_request(prompt, tokens)));
        const auto found = run_to_end(engine);
        std::vector<Answer> answers;
        for (const RequestId id : ids)
            answers.push_back(found.at(id));
        return answers;
    }

    static void compare(const std::vector<Answer>& found,
                        const std::vector<std::vector<std::int32_t>>& expected) {
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY2(found[i].tokens == expected[i], qPrintable(QStringLiteral("prompt %1").arg(i)));
    }

  private slots:
    void same_text_however_it_is_run_data() {
        QTest::addColumn<bool>("exact");
        QTest::newRow("int8 activations") << false;
        QTest::newRow("float32") << true;
    }
    void same_text_however_it_is_run() {
        QFETCH(bool, exact);
        LoadOptions load;
        load.dtype = exact ? ModelDType::f32 : ModelDType::automatic;
        const auto model = load_model(starter_path(), cpu_backend(), load);
        const auto expected = alone(model);
        for (const auto& text : expected)
            QCOMPARE(text.size(), std::size_t(tokens));

        {  // in a batch, and a second time from the prefix cache
            Engine engine(model, roomy());
            compare(together(engine, *model), expected);
            const auto again = together(engine, *model);
            compare(again, expected);
            for (const Answer& a : again)
                QVERIFY(a.metrics.cached_tokens > 0);
        }
        for (const int chunk : {1, 7, 64}) {
            EngineOptions o = roomy();
            o.fixed_chunk_tokens = chunk;
            Engine engine(model, o);
            compare(together(engine, *model), expected);
        }
        {  // a pool that holds about two of the five: the others are preempted and come back
            EngineOptions o;
            o.kv_blocks = 12;
            o.max_model_len = 128;
            o.prefix_caching = false;
            Engine engine(model, o);
            const auto answers = together(engine, *model);
            compare(answers, expected);
            int waits = 0;
            for (const Answer& a : answers)
                waits += a.metrics.preemptions;
            QVERIFY2(waits > 0 || engine.snapshot().preemptions > 0, "the pool was meant to be too small");
        }
        {  // the same with host memory for them: nothing is computed twice
            EngineOptions o;
            o.kv_blocks = 12;
            o.max_model_len = 128;
            o.prefix_caching = false;
            o.swap_space_bytes = 64 << 20;
            Engine engine(model, o);
            compare(together(engine, *model), expected);
            QVERIFY(engine.snapshot().swaps > 0);
            QCOMPARE(engine.snapshot().swaps, engine.snapshot().preemptions);
            QVERIFY(engine.snapshot().blocks_in > 0);
            QCOMPARE(engine.snapshot().resumed_queries, std::uint64_t(0));
        }
    }

    // Beams on tiny models as transformers finds them (tests/data/model/make_beams.py); the second time in a
    // pool that holds one of them.
    void beams_match_transformers_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("llama") << QStringLiteral("llama-gqa-tied");
        QTest::newRow("qwen2") << QStringLiteral("qwen2-biases");
    }
    void beams_match_transformers() {
        QFETCH(QString, name);
        const QString folder = QStringLiteral(RECTO_TEST_DATA "/model/tiny/") + name;
        LoadOptions exact;
        exact.dtype = ModelDType::f32;
        const auto model = load_model(folder.toStdString(), cpu_backend(), exact);
        for (const int blocks : {200, 8}) {
            EngineOptions o;
            o.block_size = 8;
            o.kv_blocks = blocks;
            o.max_model_len = 64;
            o.prefix_caching = false;
            Engine engine(model, o);
            for (const auto& search : read_json(folder + "/beams.json")) {
                Request r = greedy_request(search["prompt"].get<std::vector<std::int32_t>>(),
                                           int(search["outputs"][0].size()));
                r.sampling.use_beam_search = true;
                r.sampling.n = r.sampling.best_of.emplace(search["width"].get<int>());
                engine.submit(r);
                int outputs = 0;
                while (engine.has_work())
                    for (const RequestEvent& e : engine.step()) {
                        const auto at = std::size_t(e.output);
                        QVERIFY(e.token_ids == search["outputs"][at].get<std::vector<std::int32_t>>());
                        QVERIFY(std::abs(e.cumulative_logprob - search["cumulative"][at].get<double>()) <
                                1e-3);
                        ++outputs;
                    }
                QCOMPARE(outputs, r.sampling.n);
            }
            QCOMPARE(engine.snapshot().preemptions > 0, blocks == 8);
            QCOMPARE(engine.snapshot().counts.used, 0);
        }
    }

    void one_thread_gives_the_same_text() {
        const auto one = load_model(starter_path(), cpu_backend(1));
        const auto three = load_model(starter_path(), cpu_backend(3));
        QCOMPARE(alone(one), alone(three));
    }
};

RECTO_TEST_CLASS(TestStarterInvariance);
#include "test_starter_invariance.moc"
