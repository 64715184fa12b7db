#include "kernels/cpu/threads.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "kernels/error.h"

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
    try {
        for (int i = 1; i < threads_; ++i)
            workers_.emplace_back([this, i] { worker(i); });
    } catch (const std::system_error& error) {
        const std::size_t started = workers_.size();
        end_workers();
        throw Error(ErrorKind::runtime, "expected to start " + std::to_string(threads_ - 1) +
                                            " threads beside the main one, found room for " +
                                            std::to_string(started) + " (" + error.what() +
                                            "); ask for fewer with --threads");
    }
}

ThreadPool::~ThreadPool() {
    end_workers();
}

void ThreadPool::end_workers() {
    stop_.store(true);
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

namespace {
constexpr std::uint64_t field = (1U << 20) - 1;
std::uint64_t next_chunk(std::uint64_t state) {
    return state & field;
}
std::uint64_t chunks_of(std::uint64_t state) {
    return (state >> 20) & field;
}
}  // namespace

bool ThreadPool::chunks_left() const {
    const std::uint64_t s = state_.load();
    return next_chunk(s) < chunks_of(s);
}

bool ThreadPool::work_on(int worker) {
    bool any = false;
    std::uint64_t s = state_.load(std::memory_order_acquire);
    while (next_chunk(s) < chunks_of(s)) {
        if (!state_.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel, std::memory_order_acquire))
            continue;
        any = true;
        try {
            job_.load(std::memory_order_relaxed)(context_.load(std::memory_order_relaxed), worker,
                                                 std::int64_t(next_chunk(s)));
        } catch (...) {
            const std::lock_guard lock(failure_guard_);
            if (!failure_) failure_ = std::current_exception();
        }
        done_.fetch_add(1, std::memory_order_release);
        s = state_.load(std::memory_order_acquire);
    }
    return any;
}

void ThreadPool::run_job(Job job, void* context, std::int64_t chunks) {
    job_.store(job, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    const std::uint64_t number = (state_.load(std::memory_order_relaxed) >> 40) + 1;
    state_.store((number << 40) | (std::uint64_t(chunks) << 20));  // publishes the operation
    wake_sleepers();
    work_on(0);
    spin_until([&] { return done_.load(std::memory_order_acquire) == chunks; });
    const std::lock_guard lock(failure_guard_);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::worker(int index) {
    if (share_) setpriority(PRIO_PROCESS, id_t(syscall(SYS_gettid)), 5);
    while (!stop_.load()) {
        if (work_on(index)) continue;
        int looks = 0;
        Clock::time_point idle_since{};
        while (!chunks_left() && !stop_.load()) {
            pause_briefly();
            if (++looks < 64) continue;
            const auto now = Clock::now();
            if (idle_since == Clock::time_point{}) idle_since = now;
            if (now - idle_since > polite_spin) std::this_thread::yield();
            if (now - idle_since <= idle_spin || in_step_.load()) continue;
            // The gate is read first: whoever publishes after our last look finds us among the sleepers and
            // moves it.
            const std::uint32_t gate = gate_.load();
            sleepers_.fetch_add(1);
            if (!chunks_left() && !in_step_.load() && !stop_.load()) gate_.wait(gate);
            sleepers_.fetch_sub(1);
            idle_since = {};
            looks = 0;
        }
    }
}

}  // namespace recto::cpu
