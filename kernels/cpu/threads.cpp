#include "kernels/cpu/threads.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace recto::cpu {

namespace {
using Clock = std::chrono::steady_clock;
constexpr auto idle_spin = std::chrono::microseconds(100);
constexpr auto polite_spin = std::chrono::microseconds(50);

void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Spins until `done`. After 50 µs it yields between looks, so that threads that outnumber the cores get on.
template <class Done>
void spin_until(Done done) {
    for (int i = 0; i < 256; ++i) {
        if (done()) return;
        pause_briefly();
    }
    const auto start = Clock::now();
    while (!done()) {
        pause_briefly();
        if (Clock::now() - start > polite_spin) std::this_thread::yield();
    }
}
}  // namespace

int usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
    const unsigned n = std::thread::hardware_concurrency();
    return n > 0 ? int(n) : 1;
}

ThreadPool::ThreadPool(int threads, bool share) : threads_(threads > 0 ? threads : 1), share_(share) {
    for (int i = 1; i < threads_; ++i)
        workers_.emplace_back([this, i] { worker(i); });
}

ThreadPool::~ThreadPool() {
    stop_.store(true);
    epoch_.fetch_add(1);
    wake_sleepers();
    for (std::thread& t : workers_)
        t.join();
}

void ThreadPool::wake_sleepers() {
    if (sleepers_.load() > 0) {
        gate_.fetch_add(1);
        gate_.notify_all();
    }
}

void ThreadPool::begin_step() {
    in_step_.store(true);
    wake_sleepers();
}

void ThreadPool::end_step() {
    in_step_.store(false);
}

void ThreadPool::run_job(Job job, void* context) {
    if (threads_ == 1) {
        job(context, 0);
        return;
    }
    job_ = job;
    context_ = context;
    running_.store(threads_ - 1, std::memory_order_relaxed);
    epoch_.fetch_add(1);  // publishes the job
    wake_sleepers();
    attempt(job, context, 0);
    spin_until([this] { return running_.load(std::memory_order_acquire) == 0; });
    if (failed_.load(std::memory_order_relaxed)) {
        failed_.store(false, std::memory_order_relaxed);
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
}

void ThreadPool::attempt(Job job, void* context, int worker) {
    try {
        job(context, worker);
    } catch (...) {
        const std::lock_guard lock(failure_guard_);
        if (!failure_) failure_ = std::current_exception();
        failed_.store(true, std::memory_order_relaxed);
    }
}

void ThreadPool::worker(int index) {
    if (share_) setpriority(PRIO_PROCESS, id_t(syscall(SYS_gettid)), 5);
    std::uint32_t seen = 0;
    while (true) {
        int looks = 0;
        Clock::time_point idle_since{};
        while (epoch_.load(std::memory_order_acquire) == seen) {
            pause_briefly();
            if (++looks < 64) continue;
            const auto now = Clock::now();
            if (idle_since == Clock::time_point{}) idle_since = now;
            if (now - idle_since > polite_spin && (share_ || in_step_.load(std::memory_order_relaxed))) {
                std::this_thread::yield();
            }
            if (now - idle_since <= idle_spin || in_step_.load()) continue;
            // The gate is read first: whoever publishes after our last look finds us among the sleepers and
            // moves it.
            const std::uint32_t gate = gate_.load();
            sleepers_.fetch_add(1);
            if (epoch_.load() == seen && !in_step_.load()) gate_.wait(gate);
            sleepers_.fetch_sub(1);
            idle_since = {};
            looks = 0;
        }
        ++seen;
        if (stop_.load()) return;
        attempt(job_, context_, index);
        running_.fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace recto::cpu
