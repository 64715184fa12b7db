// The CPU backend's workers. The caller is worker 0. Between steps the others sleep; inside a step they spin,
// so that handing out an operation costs about a microsecond.
//
// An operation is a number of chunks behind one counter. It has ended when its chunks have: a worker that the
// operating system keeps from running, because other programs want the cores, holds nobody up unless it
// stopped in the middle of a chunk.
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

    // Runs body(worker, begin, end) over [0, count) in chunks of `grain` and returns when all are done. With
    // one chunk or one thread nobody is woken. Of exceptions the first is thrown again here, after all
    // chunks.
    template <class Body>
    void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
        if (count <= 0) return;
        const std::int64_t least = (count + most_chunks - 1) / most_chunks;
        if (grain < least) grain = least;
        if (threads_ == 1 || count <= grain) {
            body(0, std::int64_t(0), count);
            return;
        }
        struct Work {
            std::remove_reference_t<Body>* body;
            std::int64_t count, grain;
        } work{&body, count, grain};
        const Job job = [](void* context, int worker, std::int64_t chunk) {
            const Work& w = *static_cast<const Work*>(context);
            const std::int64_t begin = chunk * w.grain;
            (*w.body)(worker, begin, begin + w.grain < w.count ? begin + w.grain : w.count);
        };
        run_job(job, &work, (count + grain - 1) / grain);
    }

  private:
    using Job = void (*)(void* context, int worker, std::int64_t chunk);
    static constexpr std::int64_t most_chunks = (1 << 20) - 1;

    void run_job(Job job, void* context, std::int64_t chunks);
    bool work_on(int worker);  // takes chunks until none is left; whether it took any
    bool chunks_left() const;
    void wake_sleepers();
    void end_workers();
    void worker(int index);

    const int threads_;
    const bool share_;
    // Number of the operation (24 bits), its chunks (20), the next chunk (20): one word, so that a chunk is
    // claimed only of the operation that was looked at. Job and context are read after a claim, which keeps
    // them in place.
    alignas(64) std::atomic<std::uint64_t> state_{0};
    std::atomic<Job> job_{nullptr};
    std::atomic<void*> context_{nullptr};
    alignas(64) std::atomic<std::int64_t> done_{0};  // chunks of the operation
    alignas(64) std::atomic<bool> in_step_{false};
    std::atomic<bool> stop_{false};
    std::atomic<std::int32_t> sleepers_{0};
    std::atomic<std::uint32_t> gate_{0};
    std::mutex failure_guard_;
    std::exception_ptr failure_;
    std::vector<std::thread> workers_;
};

int usable_cores();  // that this process may run on

}  // namespace recto::cpu
