// The benchmark on a thread of its own. Commands come from one thread, the window's; results are fetched from
// a latest-only place, as often as the window likes. Plain C++.
//
// While it runs nothing else of this process should compute: who starts it sees to that (HostClient::hold).
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/bench/compare.h"
#include "engine/error.h"

namespace recto::ui {

struct BenchRequest {
    CompareOptions options;       // without make_backend
    std::string device = "auto";  // "auto", "cpu", "cuda", "cuda:N"
    int threads = 0;              // CPU workers; 0: all cores
};

// Runs on the benchmark's thread. Throws recto::Error; Error(cancelled) when `cancelled` says so.
using BenchRunner = std::function<CompareReport(const BenchRequest& request,
                                                const std::function<void(const CompareProgress&)>& progress,
                                                const std::function<bool()>& cancelled)>;
BenchRunner real_bench_runner();  // resolves the models, chooses the backend, run_compare()

struct BenchUpdate {
    CompareProgress progress;  // its report is null; see `report`
    std::shared_ptr<const CompareReport>
        report;             // so far, or when finished the whole; null: nothing measured
    bool finished = false;  // nothing follows; then one of:
    bool stopped = false;   // stop() was heard
    std::string error;      // one sentence
    ErrorKind error_kind = ErrorKind::runtime;
};

class BenchHost {
  public:
    // `wake` is called from the benchmark's thread when there is something to take() and nothing was there
    // before. It must be cheap and must not call the host.
    BenchHost(std::function<void()> wake, BenchRunner runner = real_bench_runner());
    ~BenchHost();  // shutdown()
    BenchHost(const BenchHost&) = delete;
    BenchHost& operator=(const BenchHost&) = delete;

    bool start(BenchRequest request);   // false: one is running, or shut down
    void stop();                        // heard between two steps, or while a model is loaded
    std::optional<BenchUpdate> take();  // the latest; none: nothing new
    void shutdown();                    // stop, join. Idempotent

  private:
    void run(const BenchRequest& request);
    void post(BenchUpdate update);
    void on_progress(const CompareProgress& progress);
    const std::function<void()> wake_;
    const BenchRunner runner_;
    std::atomic<bool> stop_wanted_{false};
    std::mutex mutex_;
    std::optional<BenchUpdate> latest_;  // guarded by mutex_
    bool running_ = false;               // guarded by mutex_; until `finished` was taken
    bool closed_ = false;                // guarded by mutex_
    // Of the benchmark's thread:
    std::shared_ptr<const CompareReport> so_far_;
    std::size_t samples_so_far_ = 0;
    std::chrono::steady_clock::time_point last_post_;
    std::thread thread_;
};

}  // namespace recto::ui
