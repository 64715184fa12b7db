// A device that computes while the host goes on: steps enqueued before the tokens of the one before are known
// change no answer, give blocks back at once, and fail as a whole. What the answers must be comes from the
// engine that does one step after the other.
#include "engine/fake_model.h"
// Qt comes after it.
#include <QTest>
#include <chrono>
#include <cstdio>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr int vocab = 50;

Request random_draws(std::uint64_t seed, int prompt, int max_tokens) {
    Request r;
    r.prompt = fake_prompt(seed, prompt, vocab);
    r.sampling.temperature = 0.9;
    r.sampling.top_p = 0.8;
    r.sampling.top_k = 20;
    r.sampling.seed = std::int64_t(seed);
    r.sampling.max_tokens = max_tokens;
    return r;
}

struct Pair {  // the same requests to both engines
    explicit Pair(const EngineOptions& o, std::vector<std::int32_t> eos = {})
        : plain(vocab, o, nullptr, eos), overlapped(vocab, o, nullptr, eos, true) {}
    RequestId submit(const Request& r) {
        plain.engine->submit(r);
        return overlapped.engine->submit(r);
    }
    void run() {
        plain.run();
        overlapped.run();
    }
    bool agree() const {
        for (const auto& [id, answer] : plain.answers)
            if (!(answer.outputs == overlapped.answers.at(id).outputs)) return false;
        return plain.answers.size() == overlapped.answers.size();
    }
    Harness plain, overlapped;
};

}  // namespace

class TestEngineOverlap : public QObject {
    Q_OBJECT
  private slots:
    void answersAreTheSame() {
        Pair p(small_options(64));
        for (std::uint64_t i = 0; i < 6; ++i)
            p.submit(i % 2 == 0 ? greedy_request(fake_prompt(i, int(3 + 5 * i), vocab), int(12 + i))
                                : random_draws(i, int(3 + 5 * i), int(20 + i)));
        p.run();
        QVERIFY(p.agree());
        // All steps but the first are enqueued behind another.
        QVERIFY(p.overlapped.model->overlapped >= p.overlapped.model->steps - 2);
        // Whoever ends by length is known to, and is not computed once too often.
        QCOMPARE(p.overlapped.model->rows_computed, p.plain.model->rows_computed);
        QCOMPARE(p.overlapped.engine->snapshot().counts.used, 0);
        QCOMPARE(p.overlapped.engine->snapshot().tokens_decoded, p.plain.engine->snapshot().tokens_decoded);
    }

    void overlapCanBeSwitchedOff() {
        EngineOptions o = small_options(64);
        o.overlap = false;
        Harness h(vocab, o, nullptr, {}, true);
        const Request r = random_draws(3, 9, 20);
        const RequestId id = h.engine->submit(r);
        h.run();
        QCOMPARE(h.model->overlapped, 0);
        Harness plain(vocab, o);
        plain.engine->submit(r);
        plain.run();
        QVERIFY(h.only(id).ids == plain.only(id).ids);
    }

    // The step behind the last token computes a row that nobody asked for; its token is dropped.
    void stopTokenEndsWithTheBlocksBack() {
        const auto prompt = fake_prompt(5, 9, vocab);
        const auto text = expected_greedy(prompt, 20, vocab);
        std::size_t at = 5;  // of a token that did not occur before
        while (std::find(text.begin(), text.begin() + std::ptrdiff_t(at), text[at]) !=
               text.begin() + std::ptrdiff_t(at))
            ++at;
        Harness h(vocab, small_options(64), nullptr, {text[at]}, true);
        const RequestId id = h.engine->submit(greedy_request(prompt, 20));
        while (!h.answers[id].finished)
            h.step();
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        QVERIFY(!h.engine->has_work());
        QCOMPARE(h.only(id).finish, FinishReason::stop);
        QVERIFY(h.only(id).ids ==
                std::vector<std::int32_t>(text.begin(), text.begin() + std::ptrdiff_t(at) + 1));
        const RequestId next = h.engine->submit(greedy_request(prompt, 3));
        h.run();
        QVERIFY(h.only(next).ids == std::vector<std::int32_t>(text.begin(), text.begin() + 3));
    }

    // The blocks of a cancelled sequence may be another's in the next step, although a step that writes them
    // is still on its way.
    void cancelGivesBlocksBackAtOnce() {
        Harness h(vocab, small_options(12, 4, 40), nullptr, {}, true);
        const auto first = fake_prompt(1, 20, vocab), second = fake_prompt(2, 20, vocab);
        const RequestId a = h.engine->submit(greedy_request(first, 20));
        for (int i = 0; i < 6; ++i)
            h.step();
        const int steps = h.model->steps;
        QVERIFY(h.engine->cancel(a));
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        QCOMPARE(h.model->steps, steps);
        const RequestId b = h.engine->submit(greedy_request(second, 18));
        h.run();
        QVERIFY(h.only(b).ids == expected_greedy(second, 18, vocab));
        const auto whole = expected_greedy(first, 20, vocab);
        const auto& part = h.only(a).ids;
        QVERIFY(!part.empty() && std::equal(part.begin(), part.end(), whole.begin()));
        QCOMPARE(h.only(a).finish, FinishReason::abort);
    }

    void failedStepFailsTheOneBehindIt_data() {
        QTest::addColumn<bool>("enqueue");
        QTest::newRow("while it computes") << false;
        QTest::newRow("when it is enqueued") << true;
    }
    void failedStepFailsTheOneBehindIt() {
        QFETCH(bool, enqueue);
        Harness h(vocab, small_options(64), nullptr, {}, true);
        (enqueue ? h.model->fail_at_enqueue : h.model->fail_at_step) = 6;
        const auto prompt = fake_prompt(8, 10, vocab);
        const RequestId a = h.engine->submit(greedy_request(prompt, 20));
        const RequestId b = h.engine->submit(greedy_request(fake_prompt(9, 10, vocab), 20));
        h.run();
        for (RequestId id : {a, b}) {
            QCOMPARE(h.only(id).finish, FinishReason::error);
            QVERIFY(!h.only(id).error.empty());
        }
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        const RequestId again = h.engine->submit(greedy_request(prompt, 20));
        h.run();
        QVERIFY(h.only(again).ids == expected_greedy(prompt, 20, vocab));
    }

    void brokenRowEndsAlone() {
        const auto prompt = fake_prompt(21, 7, vocab), other = fake_prompt(22, 7, vocab);
        const auto text = expected_greedy(prompt, 10, vocab);
        Harness h(vocab, small_options(64), nullptr, {}, true);
        h.model->poison_token = text[4];
        const RequestId a = h.engine->submit(greedy_request(prompt, 10));
        const RequestId b = h.engine->submit(random_draws(22, 7, 10));
        h.run();
        QCOMPARE(h.only(a).finish, FinishReason::error);
        Harness alone(vocab, small_options(64));
        alone.model->poison_token = text[4];
        const RequestId c = alone.engine->submit(random_draws(22, 7, 10));
        alone.run();
        QVERIFY(h.only(b) == alone.only(c));
    }

    // Where a token is needed first, steps follow one another as elsewhere.
    void hostDrawsAreNotOvertaken() {
        Pair p(small_options(64));
        Request penalized = random_draws(31, 9, 15);
        penalized.sampling.repetition_penalty = 1.3;
        Request several = random_draws(32, 9, 15);
        several.sampling.n = 3;
        Request logprobs = greedy_request(fake_prompt(33, 9, vocab), 15);
        logprobs.sampling.logprobs = 2;
        for (const Request& r : {penalized, several, logprobs, random_draws(34, 6, 40)})
            p.submit(r);
        p.run();
        QVERIFY(p.agree());
        QVERIFY(p.overlapped.model->overlapped > 0);
    }

    // Not a check: what the host does for a step of 256 sequences (an unoptimized build takes longer).
    void hostWorkOfAStep() {
        EngineOptions o = small_options(256 * 20, 16, 320);
        o.max_num_seqs = 256;
        o.max_num_batched_tokens = 8192;
        class Idle final : public StepModel {  // computes nothing
          public:
            int vocab() const override { return 1000; }
            bool asynchronous() const override { return true; }
            void forward(const StepBatch&) override {}
            std::span<const std::int32_t> drawn(int) override { return ids_; }
            std::span<float> logits(int) override { return {}; }
            std::int32_t argmax(int, int) override { return 7; }
            std::size_t block_bytes() const override { return 64; }
            void copy_block(std::int32_t, std::int32_t) override {}
            void swap_out(std::int32_t, void*) override {}
            void swap_in(std::int32_t, const void*) override {}

          private:
            std::vector<std::int32_t> ids_ = std::vector<std::int32_t>(256, 7);
        };
        Engine engine(std::make_unique<Idle>(), nullptr, {}, o);
        for (std::uint64_t i = 0; i < 256; ++i) {
            Request r = random_draws(i, 200, 100);
            engine.submit(r);
        }
        std::vector<double> seconds;
        while (engine.has_work()) {
            const auto begin = std::chrono::steady_clock::now();
            const auto events = engine.step();
            if (events.size() == 256)
                seconds.push_back(
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        }
        QVERIFY(seconds.size() > 50);
        std::ranges::sort(seconds);
        std::printf("host work of a step of 256 sequences: %.1f us (median)\n",
                    seconds[seconds.size() / 2] * 1e6);
    }
};

RECTO_TEST_CLASS(TestEngineOverlap);
#include "test_engine_overlap.moc"
