// The CPU's worker pool: every index once, whatever the sleep; exceptions cross back. Meant to run under TSan
// too.
#include <atomic>
#include <chrono>
#include <ctime>
#include <stdexcept>

#include "kernels/cpu/shares.h"
#include "kernels/cpu/threads.h"

#include <QTest>

#include "support/registry.h"

using recto::cpu::ThreadPool;

class TestThreads : public QObject {
    Q_OBJECT

  private slots:
    void every_index_once() {
        for (const int threads : {1, 2, 5}) {
            ThreadPool pool(threads, threads == 5);
            for (const std::int64_t grain : {1, 7, 1000}) {
                for (int round = 0; round < 200; ++round) {
                    if (round % 50 == 0) pool.begin_step();
                    if (round % 50 == 40) {
                        pool.end_step();
                        std::this_thread::sleep_for(
                            std::chrono::microseconds(round * 3));  // workers fall asleep
                    }
                    std::vector<int> seen(103);
                    pool.parallel_for(103, grain, [&](int worker, std::int64_t begin, std::int64_t end) {
                        if (worker < 0 || worker >= threads) return;
                        for (std::int64_t i = begin; i < end; ++i)
                            ++seen[std::size_t(i)];
                    });
                    QVERIFY(seen == std::vector<int>(103, 1));
                }
            }
        }
    }

    void shares_hand_out_every_chunk_once() {
        for (const int threads : {1, 2, 5}) {
            ThreadPool pool(threads, false);
            recto::cpu::Shares shares(threads);
            for (const std::int64_t chunks : {1, 2, 3, 64, 103}) {
                for (int round = 0; round < 50; ++round) {
                    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(chunks));
                    shares.divide(chunks);
                    pool.parallel_for(chunks, 1, [&](int worker, std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i)
                            ++seen[std::size_t(shares.take(worker).index)];
                    });
                    for (const auto& n : seen)
                        QCOMPARE(n.load(), 1);
                }
            }
        }
    }

    void a_share_is_one_run_and_is_robbed_from_its_end() {
        recto::cpu::Shares shares(2);
        shares.divide(7);  // 0 … 2 and 3 … 6
        std::vector<std::int64_t> order;
        for (int i = 0; i < 5; ++i)
            order.push_back(shares.take(0).index);
        order.push_back(shares.take(1).index);
        order.push_back(shares.take(1).index);
        QCOMPARE(order, (std::vector<std::int64_t>{0, 1, 2, 6, 5, 3, 4}));
    }

    void a_missing_worker_holds_nobody_up() {
        // Worker 1 stays in its first chunk until all others are done: somebody has to do them.
        ThreadPool pool(2, false);
        for (int round = 0; round < 20; ++round) {
            std::atomic<int> others{0};
            std::atomic<bool> held{false};
            pool.parallel_for(50, 1, [&](int worker, std::int64_t, std::int64_t) {
                if (worker == 1 && !held.exchange(true)) {
                    while (others.load() < 49)
                        std::this_thread::yield();
                    return;
                }
                ++others;
                // Worker 0 leaves room for worker 1 to come, but not for ever: the cores may be busy.
                for (int i = 0; i < 1000 && worker == 0 && !held.load() && others.load() == 1; ++i)
                    std::this_thread::yield();
            });
            QVERIFY(others.load() == (held.load() ? 49 : 50));
        }
    }

    void exceptions_cross_back_and_the_pool_lives_on() {
        ThreadPool pool(3, false);
        for (int i = 0; i < 20; ++i) {
            QVERIFY_EXCEPTION_THROWN(pool.parallel_for(100, 1,
                                                       [](int, std::int64_t begin, std::int64_t) {
                                                           if (begin % 10 == 3)
                                                               throw std::runtime_error("broken");
                                                       }),
                                     std::runtime_error);
            std::atomic<int> n{0};
            pool.parallel_for(10, 1, [&](int, std::int64_t, std::int64_t) { ++n; });
            QCOMPARE(n.load(), 10);
        }
    }

    void idle_workers_sleep() {
        // 100 µs after the last job no processor time is used: 20 ms of rest cost far less than 20 ms × 3
        // workers.
        ThreadPool pool(4, false);
        pool.begin_step();
        pool.parallel_for(3, 1, [](int, std::int64_t, std::int64_t) {});
        pool.end_step();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        const std::clock_t before = std::clock();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        QVERIFY(double(std::clock() - before) / CLOCKS_PER_SEC < 0.02);
    }
};

RECTO_TEST_CLASS(TestThreads);
#include "test_threads.moc"
