#include "ui/models/bench_reports.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSaveFile>

#include "engine/error.h"
#include "engine/json_text.h"

namespace recto::ui {
namespace {

const QString file_time = QStringLiteral("yyyy-MM-dd HH.mm.ss");

// A name that every file system takes, and that can be read back as the report's title.
QString file_title(const CompareReport& report) {
    QString title = report_title(report);
    title.replace(QStringLiteral(" / "), QStringLiteral(" vs "));
    for (QChar& c : title)
        if (QStringLiteral("/\\:*?\"<>|").contains(c) || c.unicode() < 32) c = QLatin1Char('_');
    return title.left(120);
}

void write_whole(const QString& path, const QByteArray& bytes) {
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit())
        throw Error(ErrorKind::runtime, BenchReports::tr("%1: the report could not be written: %2")
                                            .arg(path, file.errorString())
                                            .toStdString());
}

QByteArray json_bytes(const CompareReport& report, int indent) {
    return QByteArray::fromStdString(json_text(report_json(report), indent)) + '\n';
}

CompareReport read_file(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        throw Error(ErrorKind::input,
                    BenchReports::tr("%1 cannot be read: %2").arg(path, file.errorString()).toStdString());
    const QByteArray bytes = file.readAll();
    const auto json = nlohmann::ordered_json::parse(bytes.begin(), bytes.end(), nullptr, false);
    if (json.is_discarded())
        throw Error(ErrorKind::input,
                    BenchReports::tr("%1: expected a benchmark report as JSON, found other text")
                        .arg(path)
                        .toStdString());
    return read_report(json, path.toStdString());
}

}  // namespace

QString report_title(const CompareReport& report) {
    QString a, b;
    for (const BenchRow& row : report.rows)
        (row.side == 'B' ? b : a) = QString::fromStdString(row.model);
    return b.isEmpty() ? a : QStringLiteral("%1 / %2").arg(a, b);
}

BenchReports::BenchReports(const QString& folder, QObject* parent)
    : QObject(parent), folder_(folder), worker_(new QObject) {
    thread_.setObjectName(QStringLiteral("bench reports"));
    worker_->moveToThread(&thread_);
    connect(&thread_, &QThread::finished, worker_, &QObject::deleteLater);
    thread_.start();
}

BenchReports::~BenchReports() {
    shutdown();
}

std::vector<BenchReportEntry> BenchReports::list() const {
    std::vector<BenchReportEntry> entries;
    const qsizetype stamp = file_time.size();
    // Names begin with the time: by name reversed is newest first.
    for (const QFileInfo& file :
         QDir(folder_).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name | QDir::Reversed)) {
        const QString name = file.completeBaseName();
        BenchReportEntry entry{file.absoluteFilePath(), name,
                               QDateTime::fromString(name.left(stamp), file_time)};
        if (entry.when.isValid()) {
            entry.title = name.mid(stamp + 1);
            entry.title.replace(QStringLiteral(" vs "), QStringLiteral(" / "));
        } else {
            entry.when = file.lastModified();  // put there by hand
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

// Runs on the thread; what it throws is said.
void BenchReports::in_background(std::function<void()> work) {
    if (shut_down_) return;
    QMetaObject::invokeMethod(worker_, [this, work = std::move(work)] {
        try {
            work();
        } catch (const std::exception& e) {
            tell([this, sentence = QString::fromUtf8(e.what())] { Q_EMIT failed(sentence); });
        }
    });
}

void BenchReports::tell(std::function<void()> signal) {
    QMetaObject::invokeMethod(this, std::move(signal), Qt::QueuedConnection);
}

void BenchReports::keep(const Report& report) {
    const QString name =
        QStringLiteral("%1 %2").arg(QDateTime::currentDateTime().toString(file_time), file_title(*report));
    in_background([this, report, name] {
        const QDir folder(folder_);
        if (!folder.mkpath(QStringLiteral(".")))
            throw Error(ErrorKind::runtime, tr("%1: expected a folder that can be made, found none; "
                                               "the report was not kept")
                                                .arg(folder_)
                                                .toStdString());
        QString path = folder.filePath(name + QStringLiteral(".json"));
        for (int n = 2; QFileInfo::exists(path); ++n)
            path = folder.filePath(QStringLiteral("%1 (%2).json").arg(name).arg(n));
        write_whole(path, json_bytes(*report, -1));
        tell([this, path] { Q_EMIT kept(path); });
    });
}

void BenchReports::read(const QString& path) {
    in_background([this, path] {
        const auto report = std::make_shared<const CompareReport>(read_file(path));
        tell([this, path, report] { Q_EMIT was_read(path, report); });
    });
}

void BenchReports::save(const Report& report, const QString& path, Format format) {
    in_background([this, report, path, format] {
        write_whole(path, format == Format::json ? json_bytes(*report, 2)
                                                 : QByteArray::fromStdString(report_csv(*report)));
        tell([this, path] { Q_EMIT saved(path); });
    });
}

void BenchReports::shutdown() {
    if (shut_down_) return;
    shut_down_ = true;
    // quit() would leave behind what still waits in the thread's queue.
    QMetaObject::invokeMethod(
        worker_, [] {}, Qt::BlockingQueuedConnection);
    thread_.quit();
    thread_.wait();
}

}  // namespace recto::ui
