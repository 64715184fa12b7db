// The Benchmark tab: choose A, B and the workload, run, read, save. A view of the session's Benchmark:
// closing the tab stops nothing.
#pragma once
#include <QPointer>
#include <QWidget>
#include <memory>

#include "ui/host/host_types.h"
#include "ui/models/benchmark.h"

class QComboBox;
class QFrame;
class QLabel;
class QProgressBar;
class QPushButton;

namespace recto::ui {

class BenchTable;
class MessageBar;
class Session;
class SidePicker;
class Theme;
class WorkloadForm;

class BenchView : public QWidget {
    Q_OBJECT
  public:
    // `device` and `threads`: as the window's own models are loaded; a device chosen before wins.
    BenchView(const Theme* theme, Session* session, const QString& device, int threads,
              QWidget* parent = nullptr);

    void focus_first();
    QString state_text() const;  // for the tab: "idle", "running, 64 %"
    BenchPlan plan() const;
    void set_plan(const BenchPlan& plan);

  Q_SIGNALS:
    void state_changed();
    void announce(const QString& sentence);  // for screen readers: started, finished, stopped, failed

  protected:
    void showEvent(QShowEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void build_setup();
    void build_run_row();
    void build_results();
    void connect_benchmark();
    void run();
    void plan_changed();
    void ask_details();
    void show_state();
    void show_progress();
    QString run_text() const;
    void show_report(const BenchReports::Report& report);
    void list_reports(const QString& chosen);  // path; empty: the run that is not kept
    void report_chosen();
    void show_details();
    void say_memory(std::uint64_t needed, std::uint64_t free, std::uint64_t returned);
    void say_failure(const QString& sentence);
    void save(BenchReports::Format format);
    void copy_markdown();
    QString header_line(const CompareReport& report) const;
    void retranslate();
    void restyle();

    const Theme* theme_;
    Session* session_;
    Benchmark* benchmark_;
    const int threads_;
    QWidget* page_ = nullptr;  // what scrolls
    SidePicker *a_ = nullptr, *b_ = nullptr;
    WorkloadForm* workload_ = nullptr;
    QPushButton *run_ = nullptr, *stop_ = nullptr, *copy_ = nullptr, *save_ = nullptr;
    QLabel *now_ = nullptr, *left_ = nullptr, *reports_label_ = nullptr, *empty_ = nullptr, *foot_ = nullptr,
           *details_ = nullptr;
    QProgressBar* progress_ = nullptr;
    MessageBar* message_ = nullptr;
    QComboBox* reports_ = nullptr;
    QFrame* results_ = nullptr;
    BenchTable* table_ = nullptr;
    BenchReports::Report shown_;
    Ticket asked_a_ = 0, asked_b_ = 0;
    bool filling_ = false;
};

}  // namespace recto::ui
