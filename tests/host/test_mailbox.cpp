// The mailbox is plain C++, so ThreadSanitizer sees all of it (preset tsan).
#include <QTest>
#include <atomic>
#include <map>
#include <random>
#include <semaphore>
#include <thread>

#include "support/registry.h"
#include "ui/host/mailbox.h"

using namespace recto;
using namespace recto::ui;

namespace {

AnswerUpdate update(Ticket ticket, std::string text, std::int32_t token) {
    AnswerUpdate u;
    u.ticket = ticket;
    u.text = std::move(text);
    u.token_ids = {token};
    u.metrics.output_tokens = token;
    return u;
}

}  // namespace

class TestMailbox : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void mergesUpdatesOfOneAnswer() {
        Mailbox box([] {});
        AnswerStarted started;
        started.ticket = 1;
        box.post(started);
        box.post(update(1, "a", 1));
        box.post(update(2, "x", 1));
        box.post(update(1, "b", 2));
        const Mailbox::Batch batch = box.take();
        QCOMPARE(batch.events.size(), std::size_t(3));
        QVERIFY(std::holds_alternative<AnswerStarted>(batch.events[0]));
        const auto& first = std::get<AnswerUpdate>(batch.events[1]);
        QCOMPARE(first.text, std::string("ab"));
        QCOMPARE(first.token_ids, (std::vector<std::int32_t>{1, 2}));
        QCOMPARE(first.metrics.output_tokens, 2);  // the latest
        QCOMPARE(std::get<AnswerUpdate>(batch.events[2]).text, std::string("x"));
        QVERIFY(box.take().empty());
    }

    void loadProgressKeepsTheLatestOnly() {
        Mailbox box([] {});
        for (int i = 1; i <= 50; ++i)
            box.post(LoadProgress{"read", i / 50.0});
        const Mailbox::Batch batch = box.take();
        QCOMPARE(batch.events.size(), std::size_t(1));
        QCOMPARE(std::get<LoadProgress>(batch.events[0]).fraction, 1.0);
    }

    void snapshotIsTheLatest() {
        Mailbox box([] {});
        for (std::uint64_t step : {1, 2, 3}) {
            auto snapshot = std::make_shared<PoolSnapshot>();
            snapshot->engine.step = step;
            box.post_snapshot(snapshot);
        }
        QCOMPARE(box.take().snapshot->engine.step, std::uint64_t(3));
        QVERIFY(!box.take().snapshot);
    }

    void poolEventsAreBoundedAndCounted() {
        Mailbox box([] {}, 10);
        for (std::uint64_t i = 0; i < 25; ++i)
            box.post_pool_events({PoolEvent{.step = i}});
        const auto batch = box.take().pool_events;
        QCOMPARE(batch->events.size(), std::size_t(10));
        QCOMPARE(batch->events.front().step, std::uint64_t(15));
        QCOMPARE(batch->dropped, std::uint64_t(15));
    }

    void wakesOnceUntilArmedAgain() {
        int wakes = 0;
        Mailbox box([&] { ++wakes; });
        box.post(update(1, "a", 1));
        box.post(update(1, "b", 2));
        QCOMPARE(wakes, 1);
        QVERIFY(!box.arm());  // something is there
        box.take();
        box.post(update(1, "c", 3));
        QCOMPARE(wakes, 1);  // the reader is awake
        box.take();
        QVERIFY(box.arm());
        box.post(update(1, "d", 4));
        QCOMPARE(wakes, 2);
    }

    // Four writers, one reader that sleeps until it is woken: nothing is lost, doubled or out of order.
    void losesNothingBetweenThreads() {
        constexpr int writers = 4, updates = 20'000;
        std::counting_semaphore<> wake(0);
        Mailbox box([&] { wake.release(); });
        std::vector<std::thread> threads;
        for (int w = 1; w <= writers; ++w) {
            threads.emplace_back([&box, w] {
                std::minstd_rand random{unsigned(w)};
                for (int i = 0; i < updates; ++i) {
                    AnswerUpdate u = update(Ticket(w), std::string(1, char('a' + i % 26)), i);
                    u.finished = i + 1 == updates;
                    box.post(std::move(u));
                    if (random() % 64 == 0) box.post_snapshot(std::make_shared<PoolSnapshot>());
                    if (random() % 256 == 0) std::this_thread::yield();
                }
            });
        }
        std::map<Ticket, std::vector<std::int32_t>> tokens;
        std::map<Ticket, std::string> texts;
        int finished = 0;
        while (finished < writers) {
            wake.acquire();
            do {
                for (const HostEvent& event : box.take().events) {
                    const auto& u = std::get<AnswerUpdate>(event);
                    auto& all = tokens[u.ticket];
                    all.insert(all.end(), u.token_ids.begin(), u.token_ids.end());
                    texts[u.ticket] += u.text;
                    finished += u.finished ? 1 : 0;
                }
            } while (!box.arm());
        }
        for (std::thread& thread : threads)
            thread.join();
        for (int w = 1; w <= writers; ++w) {
            QCOMPARE(texts[Ticket(w)].size(), std::size_t(updates));
            for (int i = 0; i < updates; ++i) {
                QCOMPARE(tokens[Ticket(w)][std::size_t(i)], i);
                QCOMPARE(texts[Ticket(w)][std::size_t(i)], char('a' + i % 26));
            }
        }
    }
};

RECTO_TEST_CLASS(TestMailbox);
#include "test_mailbox.moc"
