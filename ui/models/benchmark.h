// The benchmark as the window sees it: started, watched, stopped. GUI thread; the measuring is a BenchHost's.
// While one runs, no chat computes: it does not start while a chat answers or a model loads, and every
// engine of the session is held until it ends.
#pragma once
#include <QObject>
#include <memory>

#include "ui/host/bench_host.h"
#include "ui/host/host_types.h"
#include "ui/models/bench_plan.h"
#include "ui/models/bench_reports.h"

namespace recto::ui {

class HostClient;
class Session;

enum class BenchState : std::uint8_t { idle, checking, running, stopping };

class Benchmark : public QObject {
    Q_OBJECT
  public:
    Benchmark(Session* session, const QString& reports_folder, BenchRunner runner);
    ~Benchmark() override;  // shutdown()

    BenchState state() const { return state_; }
    bool active() const { return state_ != BenchState::idle; }
    const CompareProgress& progress() const { return progress_; }  // its report is null
    BenchReports& reports() { return reports_; }
    // Of the run under way or of the last one, also when it was stopped; null: nothing measured yet.
    BenchReports::Report report() const { return report_; }

    QString start_blocked_reason() const;  // one sentence; empty: can start
    // Looks at the memory first (`checking`), then runs. False: start_blocked_reason(). A model that is bad
    // or does not fit ends it with failed(), or memory_short().
    bool start(const BenchPlan& plan, int threads);
    void eject_and_start();  // after memory_short(): the plan again, without the chats' model
    void stop();
    void shutdown();  // stops, joins, finishes writing. Idempotent

  Q_SIGNALS:
    void state_changed();
    void progress_changed();
    void report_changed();  // report(): more rows, or another run's
    void memory_short(std::uint64_t needed_bytes, std::uint64_t free_bytes, std::uint64_t returned_bytes);
    void finished();  // report() is whole and on its way into reports()
    void stopped();
    void failed(const QString& sentence);

  protected:
    bool event(QEvent* e) override;  // the host's wake event

  private:
    ModelRequest model_request(const QString& path) const;
    void set_state(BenchState state);
    void on_estimate(const EstimateReport& report);
    void check_memory();
    void launch();
    void take();
    Session* session_;
    BenchReports reports_;
    BenchHost host_;
    BenchState state_ = BenchState::idle;
    BenchPlan plan_;
    int threads_ = 0;
    std::vector<Ticket> asked_;              // estimates on their way
    std::vector<EstimateReport> estimates_;  // that came
    bool eject_first_ = false;
    bool shut_down_ = false;
    CompareProgress progress_;
    BenchReports::Report report_;
};

}  // namespace recto::ui
