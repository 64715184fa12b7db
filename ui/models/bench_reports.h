// Finished benchmarks, one JSON file each (the command line's format), in the profile's data folder. Reading
// and writing happen on a thread of their own: a report holds every token's time and can be megabytes. A bad
// file is named when it is chosen, and hides no other.
#pragma once
#include <QDateTime>
#include <QObject>
#include <QString>
#include <QThread>
#include <memory>
#include <vector>

#include "engine/bench/compare_report.h"

namespace recto::ui {

struct BenchReportEntry {
    QString path;
    QString title;   // "SmolLM2-135M-Instruct.Q4_1 / SmolLM2-135M-Instruct.Q8_0"
    QDateTime when;  // local time
};

class BenchReports : public QObject {
    Q_OBJECT
  public:
    explicit BenchReports(const QString& folder, QObject* parent = nullptr);
    ~BenchReports() override;  // shutdown()

    const QString& folder() const { return folder_; }
    std::vector<BenchReportEntry> list() const;  // newest first, by the files' names alone

    using Report = std::shared_ptr<const CompareReport>;
    void keep(const Report& report);  // → kept, or failed
    void read(const QString& path);   // → was_read, or failed

    // For saving where the person says: written whole or not at all. → saved, or failed
    enum class Format : std::uint8_t { json, csv };
    void save(const Report& report, const QString& path, Format format);

    void shutdown();  // what was asked for is done first. Idempotent

  Q_SIGNALS:
    void kept(const QString& path);
    void was_read(const QString& path, std::shared_ptr<const recto::CompareReport> report);
    void saved(const QString& path);
    void failed(const QString& sentence);

  private:
    void in_background(std::function<void()> work);
    void tell(std::function<void()> signal);  // from the background: signals are the window's thread's
    QString folder_;
    QThread thread_;
    QObject* worker_;  // lives on thread_
    bool shut_down_ = false;
};

// "A" or "A / B", the models' names without a path.
QString report_title(const CompareReport& report);

}  // namespace recto::ui
