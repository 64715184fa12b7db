#include "engine/fake_model.h"
// Qt comes after it.
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {
constexpr int vocab = 50;

QString message_of(const std::function<void()>& action, ErrorKind kind) {
    try {
        action();
    } catch (const Error& e) {
        return e.kind() == kind ? QString::fromUtf8(e.what())
                                : QStringLiteral("wrong kind: %1").arg(e.what());
    }
    return QStringLiteral("no error");
}
}  // namespace

class TestEngine : public QObject {
    Q_OBJECT
  private slots:
    void aloneGivesTheModelsText() {
        Harness h(vocab, small_options(64));
        const auto prompt = fake_prompt(1, 13, vocab);
        const RequestId id = h.engine->submit(greedy_request(prompt, 20));
        h.run();
        QVERIFY(h.only(id).ids == expected_greedy(prompt, 20, vocab));
        QCOMPARE(h.only(id).finish, FinishReason::length);
        QVERIFY(h.answers[id].finished);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void chunkingDoesNotChangeText_data() {
        QTest::addColumn<int>("chunk");
        for (int chunk : {1, 7, 64})
            QTest::addRow("%d", chunk) << chunk;
    }
    void chunkingDoesNotChangeText() {
        QFETCH(int, chunk);
        EngineOptions o = small_options(64);
        o.fixed_chunk_tokens = chunk;
        Harness h(vocab, o);
        std::map<RequestId, std::vector<std::int32_t>> prompts;
        for (std::uint64_t i = 0; i < 6; ++i) {
            auto p = fake_prompt(i, int(5 + 7 * i), vocab);
            prompts[h.engine->submit(greedy_request(p, 15))] = p;
        }
        h.run();
        for (const auto& [id, p] : prompts)
            QVERIFY(h.only(id).ids == expected_greedy(p, 15, vocab));
    }

    // The pool holds one and a half of them: the younger are preempted again and again, and nothing shows.
    void preemptionDoesNotChangeText() {
        EngineOptions o = small_options(14, 4, 40);
        Harness h(vocab, o);
        std::map<RequestId, std::vector<std::int32_t>> prompts;
        for (std::uint64_t i = 0; i < 5; ++i) {
            auto p = fake_prompt(100 + i, 9, vocab);
            prompts[h.engine->submit(greedy_request(p, 30))] = p;
        }
        int preemptions = 0;
        h.run();
        for (const auto& [id, p] : prompts) {
            QVERIFY(h.only(id).ids == expected_greedy(p, 30, vocab));
            preemptions += h.answers[id].metrics.preemptions;
        }
        QVERIFY(preemptions > 0);
        QCOMPARE(h.engine->snapshot().preemptions, std::uint64_t(preemptions));
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    // N = 49 fully cached: 3 blocks of 16 hit, 1 token computed. N = 48: 2 hit, 16 computed. After n outputs
    // ⌊(P + n − 1) / B⌋ blocks are cached, because the last token was never fed back.
    void prefixHitEndsBeforeTheLastToken_data() {
        QTest::addColumn<int>("tokens");
        QTest::addColumn<int>("cached");
        QTest::newRow("47") << 47 << 32;
        QTest::newRow("48") << 48 << 32;
        QTest::newRow("49") << 49 << 48;
    }
    void prefixHitEndsBeforeTheLastToken() {
        QFETCH(int, tokens);
        QFETCH(int, cached);
        Harness h(vocab, small_options(32, 16, 256));
        const auto prompt = fake_prompt(5, tokens, vocab);
        const RequestId a = h.engine->submit(greedy_request(prompt, 1));
        h.run();
        QCOMPARE(h.engine->snapshot().counts.cached, tokens / 16);
        const std::int64_t before = h.model->rows_computed;
        const RequestId b = h.engine->submit(greedy_request(prompt, 1));
        h.run();
        QCOMPARE(h.answers[a].metrics.cached_tokens, 0);
        QCOMPARE(h.answers[b].metrics.cached_tokens, cached);
        QCOMPARE(h.model->rows_computed - before, std::int64_t(tokens - cached));
        QVERIFY(h.only(a).ids == h.only(b).ids);
        QCOMPARE(h.engine->snapshot().prefix_queries, std::uint64_t(2 * tokens));
        QCOMPARE(h.engine->snapshot().prefix_hits, std::uint64_t(cached));
    }

    void generatedBlocksAreCachedForTheNextTurn() {
        Harness h(vocab, small_options(32, 4, 128));
        const auto prompt = fake_prompt(6, 10, vocab);
        const RequestId a = h.engine->submit(greedy_request(prompt, 15));
        h.run();
        QCOMPARE(h.engine->snapshot().counts.cached, (10 + 15 - 1) / 4);
        auto turn = prompt;
        turn.insert(turn.end(), h.only(a).ids.begin(), h.only(a).ids.end());
        for (std::int32_t t : fake_prompt(7, 9, vocab))
            turn.push_back(t);
        const RequestId b = h.engine->submit(greedy_request(turn, 5));
        h.run();
        QCOMPARE(h.answers[b].metrics.cached_tokens, 24);
        QVERIFY(h.only(b).ids == expected_greedy(turn, 5, vocab));
    }

    void twoEqualPromptsInOneStepShareBlocks() {
        Harness h(vocab, small_options(32, 4, 64));
        const auto prompt = fake_prompt(8, 18, vocab);
        const RequestId a = h.engine->submit(greedy_request(prompt, 6));
        const RequestId b = h.engine->submit(greedy_request(prompt, 6));
        h.step();
        QCOMPARE(h.engine->snapshot().counts.shared, 4);
        QCOMPARE(h.model->steps, 1);
        h.run();
        QCOMPARE(h.answers[b].metrics.cached_tokens, 16);
        QVERIFY(h.only(a).ids == expected_greedy(prompt, 6, vocab));
        QVERIFY(h.only(b).ids == h.only(a).ids);
    }

    void withoutPrefixCachingNothingIsShared() {
        EngineOptions o = small_options(32, 4, 64);
        o.prefix_caching = false;
        Harness h(vocab, o);
        const auto prompt = fake_prompt(8, 18, vocab);
        h.engine->submit(greedy_request(prompt, 6));
        const RequestId b = h.engine->submit(greedy_request(prompt, 6));
        h.run();
        QCOMPARE(h.answers[b].metrics.cached_tokens, 0);
        QCOMPARE(h.engine->snapshot().counts.cached, 0);
        QVERIFY(h.only(b).ids == expected_greedy(prompt, 6, vocab));
    }

    // While a long prompt is computed, each of 8 running chats gets a token in every step.
    void noDecodeWaitsForALongPrompt() {
        EngineOptions o = small_options(600, 4, 2000);
        o.max_num_seqs = 9;
        o.max_num_batched_tokens = 24;
        Harness h(vocab, o);
        std::vector<RequestId> chats;
        for (std::uint64_t i = 0; i < 8; ++i)
            chats.push_back(h.engine->submit(greedy_request(fake_prompt(i, 3, vocab), 200)));
        while (h.answers.size() < 8)
            h.step();
        const auto prompt = fake_prompt(99, 1000, vocab);
        const RequestId longest = h.engine->submit(greedy_request(prompt, 3));
        int steps = 0;
        for (; !h.answers.contains(longest); ++steps) {
            std::set<RequestId> served;
            for (const RequestEvent& e : h.step())
                served.insert(e.request);
            for (RequestId id : chats)
                QVERIFY(served.contains(id));
            QVERIFY(h.model->largest_step <= 24);
        }
        QVERIFY(steps >= 1000 / 16);
        h.run();
        QVERIFY(h.only(longest).ids == expected_greedy(prompt, 3, vocab));
    }

    // The same when the long prompt is older than the chats, and so comes before them in every step.
    void noDecodeWaitsForAnOlderLongPrompt() {
        EngineOptions o = small_options(600, 4, 2000);
        o.max_num_seqs = 9;
        o.max_num_batched_tokens = 24;
        o.fixed_chunk_tokens = 6;
        Harness h(vocab, o);
        const auto prompt = fake_prompt(99, 1000, vocab);
        const RequestId longest = h.engine->submit(greedy_request(prompt, 3));
        std::vector<RequestId> chats;
        for (std::uint64_t i = 0; i < 8; ++i)
            chats.push_back(h.engine->submit(greedy_request(fake_prompt(i, 3, vocab), 200)));
        while (h.answers.size() < 8)
            h.step();
        h.engine->set_fixed_chunk(0);  // from now on it may take all that is left
        while (!h.answers.contains(longest)) {
            std::set<RequestId> served;
            for (const RequestEvent& e : h.step())
                served.insert(e.request);
            for (RequestId id : chats)
                QVERIFY(served.contains(id));
        }
        h.run();
        QVERIFY(h.only(longest).ids == expected_greedy(prompt, 3, vocab));
    }

    void nothingIsAdmittedInAStepWithAPreemption() {
        Harness h(vocab, small_options(14, 4, 40));
        for (std::uint64_t i = 0; i < 6; ++i)
            h.engine->submit(greedy_request(fake_prompt(200 + i, 7, vocab), 30));
        std::uint64_t seen = 0;
        int checked = 0;
        while (h.engine->has_work()) {
            const EngineSnapshot before = h.engine->snapshot();
            const auto events = h.step();
            const EngineSnapshot after = h.engine->snapshot();
            if (after.preemptions > seen) {
                std::set<std::uint64_t> ran;
                for (const auto& s : before.sequences)
                    if (s.state == SequenceState::prefill || s.state == SequenceState::decode)
                        ran.insert(s.sequence);
                for (const auto& s : after.sequences)
                    if (s.state == SequenceState::prefill || s.state == SequenceState::decode)
                        QVERIFY(ran.contains(s.sequence));
                ++checked;
            }
            seen = after.preemptions;
        }
        QVERIFY(checked > 0);
    }

    void higherPriorityGoesFirst() {
        EngineOptions o = small_options(64);
        o.max_num_seqs = 1;
        Harness h(vocab, o);
        const RequestId low = h.engine->submit(greedy_request(fake_prompt(1, 5, vocab), 3));
        Request urgent = greedy_request(fake_prompt(2, 5, vocab), 3);
        urgent.priority = 1;
        const RequestId high = h.engine->submit(urgent);
        std::vector<RequestId> order;
        while (h.engine->has_work())
            for (const RequestEvent& e : h.step())
                if (e.request_finished) order.push_back(e.request);
        QVERIFY(order == std::vector<RequestId>({high, low}));
    }

    void whatCanNeverFitIsRefusedWithNumbers() {
        Harness h(vocab, small_options(8, 4, 64));
        QCOMPARE(message_of([&] { h.engine->submit(greedy_request(fake_prompt(1, 64, vocab), 1)); },
                            ErrorKind::argument),
                 QStringLiteral(
                     "the prompt has 64 tokens, but the context holds 64 and needs room for an answer: "
                     "shorten it, or give a longer context (max_model_len, and a pool of kv_blocks that "
                     "holds it)"));
        QCOMPARE(message_of([&] { h.engine->submit(greedy_request(fake_prompt(1, 30, vocab), 10)); },
                            ErrorKind::argument),
                 QStringLiteral(
                     "the request can grow to 40 tokens and then needs 10 blocks of 4, but the pool has 8: "
                     "lower max_tokens or make the pool larger"));
        QCOMPARE(message_of([&] { h.engine->submit(greedy_request({}, 10)); }, ErrorKind::argument),
                 QStringLiteral("the prompt must have at least one token"));
        QVERIFY(!h.engine->has_work());
        // 33 tokens, the last never fed back: exactly the 8 blocks.
        const RequestId id = h.engine->submit(greedy_request(fake_prompt(1, 30, vocab), 3));
        h.run();
        QCOMPARE(h.only(id).ids.size(), std::size_t(3));
    }

    void contextFullEndsWithLength() {
        Harness h(vocab, small_options(64, 4, 20));
        Request r = greedy_request(fake_prompt(3, 12, vocab), 1);
        r.sampling.max_tokens.reset();
        const RequestId id = h.engine->submit(r);
        h.run();
        QCOMPARE(h.only(id).finish, FinishReason::length);
        QCOMPARE(h.only(id).ids.size(), std::size_t(8));
    }

    void cancelGivesBlocksBackAtOnce() {
        EngineOptions o = small_options(64);
        o.fixed_chunk_tokens = 5;
        Harness h(vocab, o);
        const RequestId a = h.engine->submit(greedy_request(fake_prompt(1, 30, vocab), 20));
        h.step();  // in the middle of its prompt
        QCOMPARE(h.engine->snapshot().counts.used, 2);
        QVERIFY(h.engine->cancel(a));
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        QVERIFY(!h.engine->cancel(a));
        QVERIFY(h.engine->has_work());
        const auto events = h.step();
        QCOMPARE(events.size(), std::size_t(1));
        QCOMPARE(events[0].finish, FinishReason::abort);
        QVERIFY(events[0].request_finished);
        QVERIFY(!h.engine->has_work());
        QVERIFY(h.engine->step().empty());
        QVERIFY(!h.engine->cancel(12345));
    }

    void aFailedStepEndsOnlyItsRequests() {
        EngineOptions o = small_options(64);
        o.max_num_seqs = 2;
        Harness h(vocab, o);
        const auto prompt = fake_prompt(3, 9, vocab);
        const RequestId a = h.engine->submit(greedy_request(fake_prompt(1, 9, vocab), 9));
        const RequestId b = h.engine->submit(greedy_request(fake_prompt(2, 9, vocab), 9));
        const RequestId c = h.engine->submit(greedy_request(prompt, 9));
        h.model->fail_at_step = 1;
        h.run();
        QCOMPARE(h.only(a).finish, FinishReason::error);
        QCOMPARE(h.only(b).error, std::string("the device went away"));
        QVERIFY(h.only(c).ids == expected_greedy(prompt, 9, vocab));
        // Nothing of the failed step may be found again: its K and V were never written.
        const auto again = fake_prompt(1, 9, vocab);
        const RequestId d = h.engine->submit(greedy_request(again, 9));
        h.run();
        QCOMPARE(h.answers[d].metrics.cached_tokens, 0);
        QVERIFY(h.only(d).ids == expected_greedy(again, 9, vocab));
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void aNonFiniteRowEndsOnlyItsRequest() {
        Harness h(vocab, small_options(64));
        h.model->poison_token = 7;
        std::vector<std::int32_t> bad{1, 2, 3, 4, 5, 7}, good{1, 2, 3, 4, 5, 6};
        const RequestId a = h.engine->submit(greedy_request(bad, 3));
        const RequestId b = h.engine->submit(greedy_request(good, 1));
        h.run();
        QCOMPARE(h.only(a).finish, FinishReason::error);
        QVERIFY(!h.only(a).error.empty());
        QVERIFY(h.only(a).ids.empty());
        QVERIFY(h.only(b).ids == expected_greedy(good, 1, vocab));
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void metricsFollowTheirDefinitions() {
        Harness h(vocab, small_options(64));
        const RequestId id = h.engine->submit(greedy_request(fake_prompt(1, 9, vocab), 5));
        h.run();
        const RequestMetrics& m = h.answers[id].metrics;
        QCOMPARE(m.prompt_tokens, 9);
        QCOMPARE(m.output_tokens, 5);
        QCOMPARE(m.token_times.size(), std::size_t(5));
        QVERIFY(m.t_request <= m.t_start && m.t_start < m.t_first && m.t_first < m.t_last);
        QCOMPARE(m.t_first, m.token_times.front());
        QCOMPARE(m.t_last, m.token_times.back());
        RequestMetrics n;
        n.prompt_tokens = 100;
        n.cached_tokens = 20;
        n.t_request = 1;
        n.t_start = 2;
        n.t_first = 4;
        n.output0_tokens = 4;
        n.t_output0_last = 8;
        QCOMPARE(n.queue_s(), 1.0);
        QCOMPARE(n.ttft_s(), 3.0);
        QCOMPARE(n.prefill_tok_s(), 40.0);
        QCOMPARE(n.decode_tok_s(), 0.75);
        QCOMPARE(n.tpot_s(), 4.0 / 3.0);
    }

    // A request that ended before it started, or before its first token, has no negative times.
    void timesThatNeverCameAreZero() {
        RequestMetrics waiting;
        waiting.t_request = 3;
        QCOMPARE(waiting.queue_s(), 0.0);
        QCOMPARE(waiting.ttft_s(), 0.0);
        RequestMetrics started = waiting;
        started.t_start = 5;
        QCOMPARE(started.queue_s(), 2.0);
        QCOMPARE(started.ttft_s(), 0.0);
    }

    void snapshotCountsSlotsAndOwners() {
        Harness h(vocab, small_options(64, 4, 64));
        Request r = greedy_request(fake_prompt(1, 10, vocab), 20);
        r.owner = 77;
        const RequestId id = h.engine->submit(r);
        h.step();
        const EngineSnapshot s = h.engine->snapshot();
        QCOMPARE(s.counts.used, 3);
        QCOMPARE(s.blocks.size(), std::size_t(3));
        QCOMPARE(int(s.blocks[0].fill), 4);
        QCOMPARE(int(s.blocks[2].fill), 2);
        QCOMPARE(s.blocks[1].owner, OwnerId(77));
        QCOMPARE(s.allocated_slots, std::uint64_t(12));
        QCOMPARE(s.empty_slots, std::uint64_t(2));
        QCOMPARE(s.contiguous_slots, std::uint64_t(64));
        QCOMPARE(s.sequences.size(), std::size_t(1));
        QCOMPARE(s.sequences[0].state, SequenceState::decode);
        const BlockDetail d = h.engine->describe_block(2);
        QCOMPARE(d.places.size(), std::size_t(1));
        QCOMPARE(d.places[0].request, id);
        QCOMPARE(d.places[0].logical_index, 2);
        QVERIFY(d.tokens == std::vector<std::int32_t>(r.prompt.begin() + 8, r.prompt.end()));
        const auto events = h.engine->take_pool_events();
        QCOMPARE(events.size(), std::size_t(3));
        QCOMPARE(events[0].step, std::uint64_t(1));
        QCOMPARE(int(events[0].kind), int(PoolEventKind::alloc));
    }

    void aWaitingRequestSaysHowManyBlocksItLacks() {
        Harness h(vocab, small_options(8, 4, 32));
        h.engine->submit(greedy_request(fake_prompt(1, 20, vocab), 8));
        h.engine->submit(greedy_request(fake_prompt(2, 20, vocab), 8));
        h.step();
        const EngineSnapshot s = h.engine->snapshot();
        QCOMPARE(s.running, 1);
        QCOMPARE(s.waiting, 1);
        QCOMPARE(s.sequences[1].state, SequenceState::waiting);
        QCOMPARE(s.sequences[1].queue_position, 1);
        // 5 needed, 8 − 5 available, 1 kept back for the running one.
        QCOMPARE(s.sequences[1].blocks_missing, 3);
    }
};

RECTO_TEST_CLASS(TestEngine);
#include "test_engine.moc"
