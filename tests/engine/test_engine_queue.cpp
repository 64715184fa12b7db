// The queue: its bound, priorities, what the prefix cache saves over the turns of two conversations, and that
// a collision of hashes never shows.
#include "engine/fake_model.h"
// Qt comes after it.
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {
constexpr int vocab = 50;
}

class TestEngineQueue : public QObject {
    Q_OBJECT
  private slots:
    void aFullQueueRefusesAndSaysItsBound() {
        EngineOptions o = small_options(64);
        o.max_num_seqs = 1;
        o.max_waiting = 2;
        Harness h(vocab, o);
        const auto submit = [&](std::uint64_t i) {
            return h.engine->submit(greedy_request(fake_prompt(i, 5, vocab), 4));
        };
        std::vector<RequestId> ids{submit(0)};
        h.step();  // it runs, the queue is empty
        ids.push_back(submit(1));
        ids.push_back(submit(2));
        try {
            submit(3);
            QFAIL("accepted");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::runtime);
            QCOMPARE(e.what(),
                     "the queue is full: max_waiting allows 2 waiting requests; send this one again later, "
                     "or raise max_waiting");
        }
        QVERIFY(h.engine->cancel(ids[1]));
        ids.push_back(submit(3));
        h.run();
        for (std::size_t i : {0, 2, 3})
            QVERIFY(h.only(ids[i]).ids == expected_greedy(fake_prompt(i, 5, vocab), 4, vocab));
        EngineOptions negative = small_options(64);
        negative.max_waiting = -1;
        QVERIFY_THROWS_EXCEPTION(Error, Harness(vocab, negative));
    }

    // Preempted sequences are in the queue too, but were let in before: they do not count.
    void preemptedRequestsDoNotFillTheQueue() {
        EngineOptions o = small_options(14, 4, 40);
        o.max_waiting = 5;
        Harness h(vocab, o);
        for (std::uint64_t i = 0; i < 5; ++i)
            h.engine->submit(greedy_request(fake_prompt(100 + i, 9, vocab), 30));
        while (h.engine->snapshot().preemptions == 0)
            h.step();
        const int waiting = h.engine->snapshot().waiting;
        QVERIFY(waiting > 0);
        for (int i = 0; i < 6 - waiting; ++i)
            h.engine->submit(greedy_request(fake_prompt(std::uint64_t(i), 3, vocab), 3));
        h.run();
    }

    // The urgent one has its first token in the step after it came, the other goes on where it was.
    void aHigherPriorityPreempts_data() {
        QTest::addColumn<int>("swap");
        QTest::newRow("recompute") << 0;
        QTest::newRow("swap") << 1000;
    }
    void aHigherPriorityPreempts() {
        QFETCH(int, swap);
        EngineOptions o = small_options(10, 4, 40);
        o.swap_space_bytes = std::uint64_t(swap);
        Harness h(vocab, o);
        const auto long_prompt = fake_prompt(1, 25, vocab), short_prompt = fake_prompt(2, 20, vocab);
        const RequestId low = h.engine->submit(greedy_request(long_prompt, 12));
        h.step();
        h.step();
        Request urgent = greedy_request(short_prompt, 12);
        urgent.priority = 5;
        const RequestId high = h.engine->submit(urgent);
        h.step();
        QCOMPARE(h.only(high).ids.size(), std::size_t(1));
        h.run();
        QVERIFY(h.only(high).ids == expected_greedy(short_prompt, 12, vocab));
        QVERIFY(h.only(low).ids == expected_greedy(long_prompt, 12, vocab));
        QCOMPARE(h.answers[low].metrics.preemptions, 1);
        QCOMPARE(h.answers[low].metrics.swaps, swap > 0 ? 1 : 0);
        QVERIFY(h.answers[low].metrics.paused_s > 0);
        QCOMPARE(h.answers[high].metrics.preemptions, 0);
    }

    // Turns of A and B alternate; each prompt is the whole conversation so far. Only what is new is computed,
    // but for the part of the last block: (tokens − 1) / 4 · 4 of the previous turn are found.
    void alternatingConversationsComputeOnlyWhatIsNew() {
        Harness h(vocab, small_options(200, 4, 200));
        std::vector<std::int32_t> text[2] = {fake_prompt(1, 13, vocab), fake_prompt(2, 10, vocab)};
        std::size_t known[2] = {0, 0};  // tokens whose K and V were computed
        std::uint64_t queries = 0, hits = 0;
        for (int turn = 0; turn < 8; ++turn) {
            const int who = turn % 2;
            auto& t = text[who];
            const std::int64_t before = h.model->rows_computed;
            const RequestId id = h.engine->submit(greedy_request(t, 9));
            h.run();
            const std::size_t found = known[who] / 4 * 4;
            QCOMPARE(h.model->rows_computed - before, std::int64_t(t.size() - found + 9 - 1));
            const RequestMetrics& m = h.answers[id].metrics;
            QCOMPARE(m.prefix_queries, int(t.size()));
            QCOMPARE(m.prefix_hits, int(found));
            QCOMPARE(m.cached_tokens, int(found));
            QVERIFY(h.only(id).ids == expected_greedy(t, 9, vocab));
            queries += t.size();
            hits += found;
            known[who] = t.size() + 9 - 1;  // the last token was never fed back
            t.insert(t.end(), h.only(id).ids.begin(), h.only(id).ids.end());
            for (std::int32_t next : fake_prompt(std::uint64_t(100 + turn), 6, vocab))
                t.push_back(next);
        }
        QCOMPARE(h.engine->snapshot().prefix_queries, queries);
        QCOMPARE(h.engine->snapshot().prefix_hits, hits);
    }

    // One hash for every block: all names collide, and the ids alone decide.
    void collidingHashesChangeNoText() {
        EngineOptions o = small_options(40, 4, 64);
        o.prefix_hash_mask = 0;
        Harness h(vocab, o);
        std::map<RequestId, std::vector<std::int32_t>> sent;
        for (std::uint64_t i = 0; i < 40; ++i) {
            auto p = fake_prompt(i % 7, 8, vocab);  // few beginnings, many ends
            for (std::int32_t t : fake_prompt(i, int(3 + i % 9), vocab))
                p.push_back(t);
            sent[h.engine->submit(greedy_request(p, 10))] = p;
        }
        h.run();
        for (const auto& [id, p] : sent)
            QVERIFY(h.only(id).ids == expected_greedy(p, 10, vocab));
        QVERIFY(h.engine->snapshot().prefix_hits > 0);
    }

    void aSeedOfMinusOneIsNone() {
        EngineOptions a = small_options(64), b = a;
        b.seed = a.seed + 1;
        const auto draw = [](const EngineOptions& o, std::optional<std::int64_t> seed) {
            Harness h(vocab, o);
            Request r = greedy_request(fake_prompt(1, 5, vocab), 20);
            r.sampling.temperature = 1.5;
            r.sampling.seed = seed;
            const RequestId id = h.engine->submit(r);
            h.run();
            return h.only(id).ids;
        };
        QVERIFY(draw(a, -1) == draw(a, std::nullopt));
        QVERIFY(draw(a, -1) != draw(b, -1));  // the engine's own
        QVERIFY(draw(a, 3) == draw(b, 3));
    }
};

RECTO_TEST_CLASS(TestEngineQueue);
#include "test_engine_queue.moc"
