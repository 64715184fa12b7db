#include "ui/host/bench_host.h"

#include <exception>
#include <new>
#include <utility>

namespace recto::ui {
namespace {

// The window shows progress by eye; each picture it draws takes processor time from what is measured.
constexpr auto least_interval = std::chrono::milliseconds(250);

std::size_t sample_count(const CompareReport& report) {
    std::size_t samples = report.rows.size() + report.verdicts.size();
    for (const BenchRow& row : report.rows)
        samples += row.decode_tok_s.samples.size() + row.runs.size();
    return samples;
}

}  // namespace

BenchHost::BenchHost(std::function<void()> wake, BenchRunner runner)
    : wake_(std::move(wake)), runner_(std::move(runner)) {}

BenchHost::~BenchHost() {
    shutdown();
}

bool BenchHost::start(BenchRequest request) {
    {
        const std::lock_guard lock(mutex_);
        if (running_ || closed_) return false;
        running_ = true;
        latest_.reset();
    }
    if (thread_.joinable()) thread_.join();  // it has posted its last word
    stop_wanted_ = false;
    so_far_.reset();
    samples_so_far_ = 0;
    last_post_ = {};
    thread_ = std::thread([this, request = std::move(request)] { run(request); });
    return true;
}

void BenchHost::stop() {
    stop_wanted_ = true;
}

void BenchHost::run(const BenchRequest& request) {
    BenchUpdate last;
    last.finished = true;
    try {
        CompareReport report = runner_(
            request, [this](const CompareProgress& progress) { on_progress(progress); },
            [this] { return stop_wanted_.load(); });
        last.report = std::make_shared<const CompareReport>(std::move(report));
        last.progress.fraction = 1;
    } catch (const CompareStopped& e) {
        last.stopped = true;
        last.error_kind = e.kind();
        last.report = e.so_far;  // says of itself that it was interrupted
    } catch (const Error& e) {
        last.stopped = e.kind() == ErrorKind::cancelled;
        if (!last.stopped) last.error = e.what();
        last.error_kind = e.kind();
    } catch (const std::bad_alloc&) {
        last.error =
            "The benchmark ran out of memory: choose fewer sequences, a smaller depth or a smaller model.";
        last.error_kind = ErrorKind::memory;
    } catch (const std::exception& e) {
        last.error = e.what();
    }
    if (!last.report) last.report = so_far_;
    post(std::move(last));
}

void BenchHost::on_progress(const CompareProgress& progress) {
    // A run's end is always told; the steps between only now and then.
    const std::size_t samples = progress.report != nullptr ? sample_count(*progress.report) : 0;
    const auto now = std::chrono::steady_clock::now();
    const bool news = samples != samples_so_far_;
    if (!news && now - last_post_ < least_interval) return;
    last_post_ = now;
    if (news && progress.report != nullptr) so_far_ = std::make_shared<const CompareReport>(*progress.report);
    samples_so_far_ = samples;
    BenchUpdate update;
    update.progress = progress;
    update.progress.report = nullptr;
    update.report = so_far_;
    post(std::move(update));
}

void BenchHost::post(BenchUpdate update) {
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        first = !latest_.has_value();
        latest_ = std::move(update);
    }
    if (first) wake_();
}

std::optional<BenchUpdate> BenchHost::take() {
    const std::lock_guard lock(mutex_);
    std::optional<BenchUpdate> update = std::exchange(latest_, std::nullopt);
    if (update && update->finished) running_ = false;
    return update;
}

void BenchHost::shutdown() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    stop();
    if (thread_.joinable()) thread_.join();
}

}  // namespace recto::ui
