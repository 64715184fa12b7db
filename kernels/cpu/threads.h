// The CPU backend's workers. The caller is worker 0. Between steps the others sleep; inside a step they spin,
// so that the barrier between two operations costs about a microsecond.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace recto::cpu {

class ThreadPool {
  public:
    // share: workers run at nice 5, so that a window on the same cores stays fluent.
    ThreadPool(int threads, bool share);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const { return threads_; }

    // Wakes the workers and keeps them spinning until end_step.
    void begin_step();
    void end_step();

    // Runs body(worker) on every worker and returns when all are done. Of exceptions the first is thrown
    // again here.
    template <class Body>
    void parallel(Body&& body) {
        using B = std::remove_reference_t<Body>;
        run_job([](void* context, int worker) { (*static_cast<B*>(context))(worker); }, &body);
    }

    // Runs body(worker, begin, end) over [0, count) in chunks of `grain` handed out by a counter. With one
    // chunk or one thread nobody is woken.
    template <class Body>
    void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
        if (count <= 0) return;
        if (grain < 1) grain = 1;
        if (threads_ == 1 || count <= grain) {
            body(0, std::int64_t(0), count);
            return;
        }
        next_.store(0, std::memory_order_relaxed);
        parallel([&](int worker) {
            while (true) {
                const std::int64_t begin = next_.fetch_add(grain, std::memory_order_relaxed);
                if (begin >= count) break;
                body(worker, begin, begin + grain < count ? begin + grain : count);
            }
        });
    }

  private:
    using Job = void (*)(void* context, int worker);
    void run_job(Job job, void* context);
    void attempt(Job job, void* context, int worker);
    void wake_sleepers();
    void worker(int index);

    const int threads_;
    const bool share_;
    Job job_ = nullptr;
    void* context_ = nullptr;
    alignas(64) std::atomic<std::uint32_t> epoch_{0};   // a new job
    alignas(64) std::atomic<std::int32_t> running_{0};  // workers that have not finished it
    alignas(64) std::atomic<std::int64_t> next_{0};
    alignas(64) std::atomic<bool> in_step_{false};
    std::atomic<bool> stop_{false};
    std::atomic<std::int32_t> sleepers_{0};
    std::atomic<std::uint32_t> gate_{0};
    std::mutex failure_guard_;
    std::exception_ptr failure_;
    std::atomic<bool> failed_{false};
    std::vector<std::thread> workers_;
};

int usable_cores();  // that this process may run on

}  // namespace recto::cpu
