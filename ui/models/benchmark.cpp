#include "ui/models/benchmark.h"

#include <QCoreApplication>
#include <QEvent>
#include <algorithm>

#include "ui/models/session.h"

namespace recto::ui {
namespace {

const auto wake_event = static_cast<QEvent::Type>(QEvent::registerEventType());

std::uint64_t needed_bytes(const EstimateReport& r, std::int64_t kv_tokens) {
    return r.memory.weight_bytes + r.memory.workspace_bytes +
           r.memory.kv_bytes_per_token * std::uint64_t(std::max<std::int64_t>(kv_tokens, 0));
}

}  // namespace

Benchmark::Benchmark(Session* session, const QString& reports_folder, BenchRunner runner)
    : QObject(session),
      session_(session),
      reports_(reports_folder),
      host_([this] { QCoreApplication::postEvent(this, new QEvent(wake_event)); }, std::move(runner)) {
    HostClient* chats = session->host();
    connect(chats, &HostClient::estimate_ready, this,
            [this](const std::shared_ptr<const EstimateReport>& report) { on_estimate(*report); });
    connect(chats, &HostClient::state_changed, this, [this](HostState state) {
        if (!eject_first_ || state != HostState::empty) return;
        eject_first_ = false;
        start(plan_, threads_);
    });
}

Benchmark::~Benchmark() {
    shutdown();
}

QString Benchmark::start_blocked_reason() const {
    if (shut_down_) return tr("Recto is closing.");
    if (active()) return tr("A benchmark is running.");
    const int busy = session_->busy_count();
    if (busy > 0)
        return tr(
            "%n chat(s) still answer: wait until they are done, or stop them. A benchmark must have the "
            "machine to itself.",
            nullptr, busy);
    for (int i = 0; i < session_->host_count(); ++i)
        if (session_->host(i)->state() == HostState::loading)
            return tr("A model is being loaded: wait until it is ready.");
    return {};
}

ModelRequest Benchmark::model_request(const QString& path) const {
    ModelRequest request;
    request.path = path.toStdString();
    request.device = plan_.device.toStdString();
    request.threads = threads_;
    return request;
}

bool Benchmark::start(const BenchPlan& plan, int threads) {
    if (!start_blocked_reason().isEmpty()) return false;
    plan_ = plan;
    threads_ = threads;
    report_.reset();
    progress_ = {};
    estimates_.clear();
    asked_.clear();
    set_state(BenchState::checking);
    for (const QString& path : {plan.a, plan.b})
        if (!path.isEmpty()) asked_.push_back(session_->host()->estimate(model_request(path)));
    Q_EMIT report_changed();
    return true;
}

void Benchmark::on_estimate(const EstimateReport& report) {
    const auto ours = std::find(asked_.begin(), asked_.end(), report.ticket);
    if (ours == asked_.end()) return;
    asked_.erase(ours);
    estimates_.push_back(report);
    if (!asked_.empty()) return;
    if (state_ == BenchState::stopping) {
        set_state(BenchState::idle);
        Q_EMIT stopped();
    } else {
        check_memory();
    }
}

// Two models that do not fit together are loaded in turn: the larger one decides.
void Benchmark::check_memory() {
    std::uint64_t needed = 0, free = 0, returned = 0;
    for (const EstimateReport& r : estimates_) {
        if (!r.error.empty()) {
            set_state(BenchState::idle);
            Q_EMIT failed(QString::fromStdString(r.error));
            return;
        }
        needed = std::max(needed, needed_bytes(r, plan_.kv_tokens()));
        free = r.memory.free_bytes;
        returned = r.returned_bytes;
    }
    if (needed > free) {
        set_state(BenchState::idle);
        Q_EMIT memory_short(needed, free, returned);
        return;
    }
    launch();
}

void Benchmark::eject_and_start() {
    if (!start_blocked_reason().isEmpty()) return;
    if (session_->host()->state() == HostState::ready) {
        eject_first_ = true;
        session_->host()->eject();
    } else {
        start(plan_, threads_);
    }
}

void Benchmark::launch() {
    const auto side = [this](const QString& path) {
        BenchSide made;
        made.model = path.toStdString();
        return made;
    };
    BenchRequest request;
    request.device = plan_.device.toStdString();
    request.threads = threads_;
    request.options.a = side(plan_.a);
    if (!plan_.b.isEmpty()) request.options.b = side(plan_.b);
    BenchOptions& workload = request.options.workload;
    workload.prompt_tokens = plan_.prompt_tokens;
    workload.output_tokens = plan_.output_tokens;
    workload.sequences = plan_.sequences;
    workload.depths = plan_.depths;
    workload.repeats = plan_.repeats;
    if (!host_.start(std::move(request))) {  // only after shutdown()
        set_state(BenchState::idle);
        return;
    }
    set_state(BenchState::running);
}

void Benchmark::set_state(BenchState state) {
    if (state_ == state) return;
    state_ = state;
    const QString reason = active()
                               ? tr("A benchmark is running, and chats wait so that it measures only itself. "
                                    "It can be stopped in its tab.")
                               : QString();
    for (int i = 0; i < session_->host_count(); ++i)
        session_->host(i)->hold(reason);
    Q_EMIT state_changed();
}

void Benchmark::stop() {
    if (!active() || state_ == BenchState::stopping) return;
    host_.stop();
    set_state(BenchState::stopping);
}

bool Benchmark::event(QEvent* e) {
    if (e->type() != wake_event) return QObject::event(e);
    take();
    return true;
}

void Benchmark::take() {
    const std::optional<BenchUpdate> update = host_.take();
    if (!update) return;
    const bool more = update->report != nullptr && update->report != report_;
    if (more) report_ = update->report;
    progress_ = update->progress;
    if (update->finished) set_state(BenchState::idle);
    if (more) Q_EMIT report_changed();
    Q_EMIT progress_changed();
    if (!update->finished) return;
    if (update->stopped) {
        Q_EMIT stopped();
    } else if (!update->error.empty()) {
        Q_EMIT failed(QString::fromStdString(update->error));
    } else {
        reports_.keep(report_);
        Q_EMIT finished();
    }
}

void Benchmark::shutdown() {
    shut_down_ = true;
    eject_first_ = false;
    asked_.clear();
    host_.shutdown();
    reports_.shutdown();
}

}  // namespace recto::ui
