// What one output is: parallel outputs, seeds, ends, text, log probabilities.
#include "engine/fake_model.h"
#include "engine/fake_tokenizer.h"
// Qt comes after them.
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr int vocab = FakeTokenizer::vocab;

Request sampled_request(std::uint64_t prompt_seed, int prompt_tokens, int max_tokens, std::int64_t seed) {
    Request r;
    r.prompt = fake_prompt(prompt_seed, prompt_tokens, vocab);
    r.sampling.temperature = 1.0;
    r.sampling.seed = seed;
    r.sampling.max_tokens = max_tokens;
    return r;
}

Harness::Output alone(Request r, const Tokenizer* tokenizer = nullptr, std::vector<std::int32_t> eos = {}) {
    Harness h(vocab, small_options(64), tokenizer, std::move(eos));
    const RequestId id = h.engine->submit(std::move(r));
    h.run();
    return h.only(id);
}

// log-softmax in double precision, and rank, straight from their definitions.
std::pair<double, int> logprob_and_rank(std::span<const std::int32_t> context, std::int32_t token) {
    const auto row = fake_logits(context, vocab);
    double sum = 0;
    int rank = 0;
    for (float x : row) {
        sum += std::exp(double(x));
        rank += x >= row[std::size_t(token)];
    }
    return {double(row[std::size_t(token)]) - std::log(sum), rank};
}

}  // namespace

class TestEngineOutputs : public QObject {
    Q_OBJECT
  private slots:
    // Output i of a request with seed s is the request with seed s + i alone; the prompt's blocks are shared
    // and only the partly filled one is copied, once for every output but the last to write.
    void parallelOutputsShareThePrompt_data() {
        QTest::addColumn<int>("promptTokens");
        QTest::addColumn<int>("copies");
        QTest::newRow("ends inside a block") << 10 << 3;
        QTest::newRow("ends with a block") << 12 << 0;
    }
    void parallelOutputsShareThePrompt() {
        QFETCH(int, promptTokens);
        QFETCH(int, copies);
        Harness h(vocab, small_options(64));
        Request r = sampled_request(3, promptTokens, 9, 40);
        r.sampling.n = 4;
        const RequestId id = h.engine->submit(r);
        h.step();
        const int prompt_blocks = (promptTokens + 3) / 4;
        QCOMPARE(h.engine->snapshot().counts.used, prompt_blocks);
        QCOMPARE(h.engine->snapshot().counts.shared, prompt_blocks);
        h.step();
        QCOMPARE(h.model->copies, copies);
        QCOMPARE(h.engine->snapshot().counts.used, promptTokens / 4 + 4);
        h.run();
        QCOMPARE(h.answers[id].outputs.size(), std::size_t(4));
        QCOMPARE(h.answers[id].metrics.output_tokens, 36);
        for (int i = 0; i < 4; ++i) {
            Request one = sampled_request(3, promptTokens, 9, 40 + i);
            QVERIFY(h.answers[id].outputs[i] == alone(one));
        }
        QVERIFY(!(h.answers[id].outputs[0] == h.answers[id].outputs[1]));
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void moreOutputsThanPlaces() {
        EngineOptions o = small_options(64);
        o.max_num_seqs = 3;
        Harness h(vocab, o);
        Request r = sampled_request(4, 10, 8, 7);
        r.sampling.n = 8;
        const RequestId id = h.engine->submit(r);
        h.run();
        for (int i = 0; i < 8; ++i)
            QVERIFY(h.answers[id].outputs[i] == alone(sampled_request(4, 10, 8, 7 + i)));
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    // The pool holds exactly one output: the copy has no block until the younger ones are preempted.
    void parallelOutputsInAPoolForOne() {
        Harness h(vocab, small_options(5));
        Request r = sampled_request(4, 10, 11, 7);
        r.sampling.n = 3;
        const RequestId id = h.engine->submit(r);
        h.run();
        for (int i = 0; i < 3; ++i)
            QVERIFY(h.answers[id].outputs[i] == alone(sampled_request(4, 10, 11, 7 + i)));
        QVERIFY(h.answers[id].metrics.preemptions > 0);
        QVERIFY(h.answers[id].metrics.paused_s > 0);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void seededDrawsDoNotDependOnNeighbours_data() {
        QTest::addColumn<int>("chunk");
        QTest::addColumn<int>("blocks");
        QTest::newRow("batch") << 0 << 800;
        QTest::newRow("chunked at 1") << 1 << 800;
        QTest::newRow("chunked at 7") << 7 << 800;
        QTest::newRow("chunked at 64") << 64 << 800;
        QTest::newRow("preempted") << 0 << 18;
    }
    void seededDrawsDoNotDependOnNeighbours() {
        QFETCH(int, chunk);
        QFETCH(int, blocks);
        EngineOptions o = small_options(blocks);
        o.max_num_seqs = o.max_num_batched_tokens = 64;
        o.fixed_chunk_tokens = chunk;
        Harness h(vocab, o);
        const auto request = [](int i) {
            Request r = sampled_request(std::uint64_t(i), 5 + i % 20, 20, 1000 + i);
            r.sampling.top_k = i % 3 == 0 ? 5 : 0;
            r.sampling.top_p = i % 3 == 1 ? 0.8 : 1.0;
            r.sampling.frequency_penalty = i % 5 == 0 ? 1.5 : 0.0;
            return r;
        };
        std::vector<RequestId> ids;
        for (int i = 0; i < 64; ++i)
            ids.push_back(h.engine->submit(request(i)));
        h.run();
        for (int i = 0; i < 64; ++i)
            QVERIFY(h.only(ids[std::size_t(i)]) == alone(request(i)));
        QCOMPARE(h.engine->snapshot().preemptions > 0, blocks == 18);
    }

    void bestOfKeepsTheMostProbable() {
        Harness h(vocab, small_options(64));
        Request r = sampled_request(5, 6, 7, 3);
        r.sampling.n = 2;
        r.sampling.best_of = 5;
        const RequestId id = h.engine->submit(r);
        while (h.engine->has_work() && h.answers.empty())
            h.step();
        QVERIFY(h.answers[id].finished);  // nothing before all have ended
        h.run();
        // Independently: five single requests, scored by the definition.
        std::vector<std::pair<double, std::vector<std::int32_t>>> scored;
        for (int i = 0; i < 5; ++i) {
            const auto one = alone(sampled_request(5, 6, 7, 3 + i));
            auto context = fake_prompt(5, 6, vocab);
            double sum = 0;
            for (std::int32_t t : one.ids) {
                sum += logprob_and_rank(context, t).first;
                context.push_back(t);
            }
            scored.emplace_back(sum, one.ids);
        }
        std::ranges::sort(scored, std::greater<>());
        QCOMPARE(h.answers[id].outputs.size(), std::size_t(2));
        for (int i = 0; i < 2; ++i) {
            QVERIFY(h.answers[id].outputs[i].ids == scored[std::size_t(i)].second);
            QVERIFY(std::abs(h.answers[id].outputs[i].cumulative_logprob - scored[std::size_t(i)].first) <
                    1e-4);
        }
        QCOMPARE(h.answers[id].metrics.token_times.size(), std::size_t(7));
    }

    void logprobsAreOfTheRawDistribution() {
        Harness h(vocab, small_options(64));
        Request r = sampled_request(6, 6, 8, 3);
        r.sampling.temperature = 0.7;
        r.sampling.logprobs = 3;
        r.sampling.logit_bias = {{5, 4.0F}};
        r.sampling.repetition_penalty = 1.3;
        const RequestId id = h.engine->submit(r);
        h.run();
        auto context = r.prompt;
        double sum = 0;
        const Harness::Output& o = h.only(id);
        QCOMPARE(o.logprobs.size(), std::size_t(8));
        for (std::size_t i = 0; i < o.ids.size(); ++i) {
            const auto& entries = o.logprobs[i];
            QVERIFY(entries.size() == 3 || entries.size() == 4);
            QCOMPARE(entries[0].token, o.ids[i]);
            std::set<int> ranks;
            for (const TokenLogprob& e : entries) {
                const auto [logprob, rank] = logprob_and_rank(context, e.token);
                QVERIFY(std::abs(e.logprob - logprob) < 1e-5);
                QCOMPARE(e.rank, rank);
                ranks.insert(rank);
            }
            QVERIFY(ranks.contains(1) && ranks.contains(2) && ranks.contains(3));
            sum += logprob_and_rank(context, o.ids[i]).first;
            context.push_back(o.ids[i]);
        }
        QVERIFY(std::abs(o.cumulative_logprob - sum) < 1e-4);
    }

    void promptLogprobsCoverThePromptOnce_data() {
        QTest::addColumn<int>("chunk");
        for (int chunk : {0, 1, 7})
            QTest::addRow("%d", chunk) << chunk;
    }
    void promptLogprobsCoverThePromptOnce() {
        QFETCH(int, chunk);
        EngineOptions o = small_options(64);
        o.fixed_chunk_tokens = chunk;
        Harness h(vocab, o);
        Request r = sampled_request(9, 45, 2, 1);
        h.engine->submit(r);
        h.run();  // now its blocks are cached, and must not be read
        r.sampling.prompt_logprobs = 2;
        const RequestId id = h.engine->submit(r);
        h.run();
        const auto& got = h.answers[id].prompt_logprobs;
        QCOMPARE(h.answers[id].metrics.cached_tokens, 0);
        QCOMPARE(got.size(), std::size_t(45));
        QVERIFY(got[0].empty());
        for (std::size_t i = 1; i < got.size(); ++i) {
            const auto [logprob, rank] = logprob_and_rank(std::span(r.prompt).first(i), r.prompt[i]);
            QCOMPARE(got[i][0].token, r.prompt[i]);
            QVERIFY(std::abs(got[i][0].logprob - logprob) < 1e-5);
            QCOMPARE(got[i][0].rank, rank);
        }
        QVERIFY(h.only(id) == alone(sampled_request(9, 45, 2, 1)));
    }

    // Which token comes is known by formula, so it can be made EOS, a stop id or part of a stop string.
    void endsInTheirOrder() {
        const FakeTokenizer tokenizer;
        const auto prompt = fake_prompt(11, 6, vocab);
        const auto expected = expected_greedy(prompt, 12, vocab);
        const std::int32_t fourth = expected[3];
        QVERIFY(std::ranges::count(std::span(expected).first(3), fourth) == 0);
        const auto run = [&](auto change, std::vector<std::int32_t> eos) {
            Request r = greedy_request(prompt, 12);
            change(r);
            return alone(r, &tokenizer, std::move(eos));
        };
        const auto nothing = [](Request&) {};
        Harness::Output o = run(nothing, {fourth});
        QCOMPARE(o.finish, FinishReason::stop);
        QVERIFY(!o.stop_token);
        QCOMPARE(o.ids.size(), std::size_t(4));  // EOS stays among the ids
        const std::string text = o.text;

        std::int32_t unseen = 2;
        while (unseen == fourth || std::ranges::count(expected, unseen) > 0)
            ++unseen;
        o = run(nothing, {unseen, fourth});  // a secondary EOS says its id
        QCOMPARE(o.stop_token.value_or(-1), fourth);
        QCOMPARE(o.text, text);
        o = run([&](Request& r) { r.sampling.stop_token_ids = {fourth}; }, {});
        QCOMPARE(o.stop_token.value_or(-1), fourth);
        QCOMPARE(o.text, text);
        o = run([&](Request& r) { r.sampling.max_tokens = 4; }, {fourth});  // EOS as the last allowed token
        QCOMPARE(o.finish, FinishReason::stop);
        o = run([&](Request& r) { r.sampling.max_tokens = 3; }, {fourth});
        QCOMPARE(o.finish, FinishReason::length);
        o = run([&](Request& r) { r.sampling.ignore_eos = true; }, {fourth});
        QVERIFY(o.ids == expected);
        o = run([&](Request& r) { r.keep_default_eos = false; }, {fourth});
        QVERIFY(o.ids == expected);
        // Before min_tokens it cannot be drawn at all.
        o = run([&](Request& r) { r.sampling.min_tokens = 6; }, {fourth});
        QVERIFY(o.ids.size() >= 6);
        QCOMPARE(std::ranges::count(std::span(o.ids).first(6), fourth), std::ptrdiff_t(0));
        const std::string whole(tokenizer.bytes(fourth));
        o = run(
            [&](Request& r) {
                r.sampling.include_stop_str_in_output = true;
                r.sampling.stop_token_ids = {fourth};
            },
            {});
        QVERIFY(o.text.size() >= text.size());
    }

    void stopStringsCutTheText() {
        const FakeTokenizer tokenizer;
        const auto prompt = fake_prompt(12, 6, vocab);
        Request r = greedy_request(prompt, 30);
        const Harness::Output full = alone(r, &tokenizer);
        const std::string all = decode(tokenizer, full.ids);
        QCOMPARE(full.text, all);
        // Every piece of three characters of the text as a stop string: the text ends where it first occurs.
        int tried = 0;
        for (std::size_t at = 0; at + 3 <= all.size(); ++at) {
            const std::string stop = all.substr(at, 3);
            if (std::ranges::any_of(stop, [](char c) { return (c & 0x80) != 0; })) continue;
            ++tried;
            r.sampling.stop = {"never", stop};
            r.sampling.include_stop_str_in_output = false;
            Harness::Output o = alone(r, &tokenizer);
            QCOMPARE(o.finish, FinishReason::stop);
            QCOMPARE(o.stop_string, stop);
            QCOMPARE(o.text, all.substr(0, all.find(stop)));
            r.sampling.include_stop_str_in_output = true;
            o = alone(r, &tokenizer);
            QCOMPARE(o.text, all.substr(0, all.find(stop) + 3));
        }
        QVERIFY(tried > 5);
        r.sampling.stop = {"\x01\x02"};
        QCOMPARE(alone(r, &tokenizer).text, all);
    }

    void badWordsAreNeverCompleted() {
        const FakeTokenizer tokenizer;
        const auto prompt = fake_prompt(13, 6, vocab);
        Request r = greedy_request(prompt, 40);
        const auto free_run = alone(r, &tokenizer);
        // Two neighbouring tokens of the free answer that encode back to themselves.
        std::string word;
        for (std::size_t i = 0; i + 1 < free_run.ids.size() && word.empty(); ++i) {
            const std::vector<std::int32_t> pair{free_run.ids[i], free_run.ids[i + 1]};
            const std::string text = decode(tokenizer, pair);
            if (tokenizer.encode(text, {}) == pair) word = text;
        }
        QVERIFY(!word.empty());
        r.sampling.bad_words = {word};
        const auto o = alone(r, &tokenizer);
        const auto ids = tokenizer.encode(word, {});
        QVERIFY(std::ranges::search(free_run.ids, ids).begin() != free_run.ids.end());
        QVERIFY(std::ranges::search(o.ids, ids).begin() == o.ids.end());
    }

    void nothingAllowedIsAnErrorOfThatRequest() {
        Harness h(vocab, small_options(64));
        Request r = greedy_request(fake_prompt(1, 5, vocab), 5);
        r.sampling.allowed_token_ids = {7};
        r.sampling.stop_token_ids = {7};
        r.sampling.min_tokens = 2;
        const RequestId bad = h.engine->submit(r);
        const RequestId good = h.engine->submit(greedy_request(fake_prompt(2, 5, vocab), 5));
        h.run();
        QCOMPARE(h.only(bad).finish, FinishReason::error);
        QVERIFY(h.only(bad).error.find("leave no token") != std::string::npos);
        QVERIFY(h.only(good).ids == expected_greedy(fake_prompt(2, 5, vocab), 5, vocab));
    }

    void aFailedDrawEndsAllOutputsOfItsRequest() {
        Harness h(vocab, small_options(64));
        h.model->poison_token = 7;
        Request r = sampled_request(1, 5, 5, 1);
        r.prompt.push_back(7);
        r.sampling.n = 3;
        const RequestId id = h.engine->submit(r);
        h.run();
        QCOMPARE(h.answers[id].outputs.size(), std::size_t(3));
        for (const auto& [i, o] : h.answers[id].outputs)
            QCOMPARE(o.finish, FinishReason::error);
        QVERIFY(h.answers[id].finished);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void truncationKeepsTheEndOfThePrompt() {
        Request r = greedy_request(fake_prompt(21, 30, vocab), 5);
        r.sampling.truncate_prompt_tokens = 8;
        const std::vector<std::int32_t> tail(r.prompt.end() - 8, r.prompt.end());
        QVERIFY(alone(r).ids == expected_greedy(tail, 5, vocab));
    }
};

RECTO_TEST_CLASS(TestEngineOutputs);
#include "test_engine_outputs.moc"
