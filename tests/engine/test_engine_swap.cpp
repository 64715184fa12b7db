// Preemption by swap: what is kept, what is copied, and that nothing of it shows in the text.
#include "engine/fake_model.h"
// Qt comes after it.
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {
constexpr int vocab = 50;
constexpr int block_size = 4;

EngineOptions swapping(int pool_blocks, int swap_blocks, int max_model_len = 64) {
    EngineOptions o = small_options(pool_blocks, block_size, max_model_len);
    o.swap_space_bytes =
        std::uint64_t(swap_blocks) * block_size * sizeof(std::int32_t);  // FakeModel's blocks
    return o;
}
}  // namespace

class TestEngineSwap : public QObject {
    Q_OBJECT
  private slots:
    // The pool holds one and a half of them. Every token is computed once: with room for what was preempted
    // nothing is computed again.
    void preemptedSequencesComeBackWithoutBeingComputedAgain() {
        Harness h(vocab, swapping(14, 64, 40));
        std::map<RequestId, std::vector<std::int32_t>> prompts;
        for (std::uint64_t i = 0; i < 5; ++i) {
            auto p = fake_prompt(100 + i, 9, vocab);
            prompts[h.engine->submit(greedy_request(p, 30))] = p;
        }
        h.run();
        int preemptions = 0, swaps = 0;
        for (const auto& [id, p] : prompts) {
            QVERIFY(h.only(id).ids == expected_greedy(p, 30, vocab));
            preemptions += h.answers[id].metrics.preemptions;
            swaps += h.answers[id].metrics.swaps;
            QCOMPARE(h.answers[id].metrics.resumed_queries, 0);
        }
        QVERIFY(preemptions > 0);
        QCOMPARE(swaps, preemptions);
        QCOMPARE(h.model->rows_computed, std::int64_t(5 * (9 + 30 - 1)));
        const EngineSnapshot s = h.engine->snapshot();
        QCOMPARE(s.swaps, std::uint64_t(swaps));
        QCOMPARE(s.blocks_out, std::uint64_t(h.model->swapped_out));
        QCOMPARE(s.blocks_in, std::uint64_t(h.model->swapped_in));
        QVERIFY(s.blocks_out > 0 && s.blocks_in > 0);
        QCOMPARE(s.swap_total, 64);
        QCOMPARE(s.swap_used, 0);
        QCOMPARE(s.counts.used, 0);
    }

    // With a budget of three blocks some are swapped, the others computed again.
    void beyondTheBudgetTheyAreComputedAgain() {
        Harness h(vocab, swapping(14, 3, 40));
        std::map<RequestId, std::vector<std::int32_t>> prompts;
        for (std::uint64_t i = 0; i < 5; ++i) {
            auto p = fake_prompt(100 + i, 9, vocab);
            prompts[h.engine->submit(greedy_request(p, 30))] = p;
        }
        int most = 0;
        while (h.engine->has_work()) {
            h.step();
            most = std::max(most, h.engine->snapshot().swap_used);
        }
        QVERIFY(most <= 3);
        for (const auto& [id, p] : prompts)
            QVERIFY(h.only(id).ids == expected_greedy(p, 30, vocab));
        QVERIFY(h.engine->snapshot().preemptions > h.engine->snapshot().swaps);
    }

    // Two chats with one long prompt: the preempted one's share of it stays in the pool with the other, and
    // only its own blocks go to host memory. The events say so, with their owner.
    void whatOthersHoldStaysInThePool() {
        Harness h(vocab, swapping(15, 64));
        const auto prompt = fake_prompt(7, 32, vocab);  // 8 full blocks
        Request a = greedy_request(prompt, 20), b = a;
        a.owner = 1;
        b.owner = 2;
        b.prompt.push_back(3);
        a.prompt.push_back(2);
        const RequestId first = h.engine->submit(a), second = h.engine->submit(b);
        std::vector<PoolEvent> out, in;
        while (h.engine->has_work()) {
            h.step();
            for (const PoolEvent& e : h.engine->take_pool_events()) {
                if (e.kind == PoolEventKind::swap_out) out.push_back(e);
                if (e.kind == PoolEventKind::swap_in) in.push_back(e);
            }
        }
        QVERIFY(h.only(first).ids == expected_greedy(a.prompt, 20, vocab));
        QVERIFY(h.only(second).ids == expected_greedy(b.prompt, 20, vocab));
        QVERIFY(h.answers[second].metrics.swaps > 0);
        QVERIFY(!out.empty() && out.size() <= 5);  // of the 14 it had at most
        QVERIFY(in.size() <= out.size());
        for (const PoolEvent& e : out)
            QCOMPARE(e.owner, OwnerId(2));
        for (const PoolEvent& e : in)
            QCOMPARE(e.owner, OwnerId(2));
    }

    // Copying to host memory fails: the step's requests end, the preempted one is computed again.
    void aFailedCopyLosesNothingButTheStep() {
        Harness h(vocab, swapping(14, 64, 40));
        h.model->fail_at_swap = 1;
        std::vector<std::pair<RequestId, std::vector<std::int32_t>>> sent;
        for (std::uint64_t i = 0; i < 5; ++i) {
            const auto p = fake_prompt(100 + i, 9, vocab);
            sent.emplace_back(h.engine->submit(greedy_request(p, 30)), p);
        }
        h.run();
        int failed = 0, good = 0;
        for (const auto& [id, p] : sent) {
            if (h.only(id).finish == FinishReason::error) {
                ++failed;
                QCOMPARE(h.only(id).error, std::string("the bus went away"));
                continue;
            }
            ++good;
            QVERIFY(h.only(id).ids == expected_greedy(p, 30, vocab));
        }
        QVERIFY(failed > 0 && good > 0);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        QCOMPARE(h.engine->snapshot().swap_used, 0);
    }

    void cancelGivesThePlacesBack() {
        Harness h(vocab, swapping(14, 64, 40));
        std::vector<RequestId> ids;
        for (std::uint64_t i = 0; i < 3; ++i)
            ids.push_back(h.engine->submit(greedy_request(fake_prompt(100 + i, 9, vocab), 30)));
        while (h.engine->snapshot().swap_used == 0)
            h.step();
        bool seen = false;
        for (const SequenceSnapshot& s : h.engine->snapshot().sequences)
            seen = seen || s.state == SequenceState::swapped;
        QVERIFY(seen);
        for (RequestId id : ids)
            h.engine->cancel(id);
        QCOMPARE(h.engine->snapshot().swap_used, 0);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        h.run();
    }

    // Parallel outputs beyond the places wait with the prompt's blocks kept: the prompt is computed once.
    void waitingOutputsKeepThePrompt() {
        EngineOptions o = swapping(40, 64);
        o.max_num_seqs = 2;
        o.prefix_caching = false;
        Harness h(vocab, o);
        Request r = greedy_request(fake_prompt(4, 10, vocab), 8);
        r.sampling.temperature = 1.0;
        r.sampling.seed = 7;
        r.sampling.n = 6;
        const RequestId id = h.engine->submit(r);
        h.run();
        QCOMPARE(h.model->rows_computed, std::int64_t(10 + 6 * 7));
        for (int i = 0; i < 6; ++i) {
            Harness alone(vocab, small_options(64));
            Request one = r;
            one.sampling.n = 1;
            one.sampling.seed = 7 + i;
            const RequestId single = alone.engine->submit(one);
            alone.run();
            QVERIFY(h.answers[id].outputs[i] == alone.only(single));
        }
    }
};

RECTO_TEST_CLASS(TestEngineSwap);
#include "test_engine_swap.moc"
