#include "ui/bench/bench_view.h"

#include <QAbstractSpinBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QItemSelectionModel>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "ui/bench/bench_table.h"
#include "ui/bench/even_flow.h"
#include "ui/bench/side_picker.h"
#include "ui/bench/workload_form.h"
#include "ui/format.h"
#include "ui/message_bar.h"
#include "ui/models/session.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

QString text_of(const nlohmann::ordered_json& header, const char* key) {
    const auto found = header.find(key);
    return found != header.end() && found->is_string() ? QString::fromStdString(found->get<std::string>())
                                                       : QString();
}

}  // namespace

BenchView::BenchView(const Theme* theme, Session* session, const QString& device, int threads,
                     QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      session_(session),
      benchmark_(&session->benchmark()),
      threads_(threads) {
    setObjectName(QStringLiteral("bench_view"));
    setAccessibleName(tr("Benchmark"));
    auto* scroll = new QScrollArea(this);
    scroll->setObjectName(QStringLiteral("bench_scroll"));
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    page_ = new QWidget;
    page_->setObjectName(QStringLiteral("bench_page"));
    page_->setAttribute(Qt::WA_StyledBackground);
    auto* column = new QVBoxLayout(page_);
    column->setContentsMargins(18, 16, 18, 14);
    column->setSpacing(theme->palette().metrics.pad);
    build_setup();
    build_run_row();
    build_results();
    scroll->setWidget(page_);
    for (QWidget* field : page_->findChildren<QWidget*>())
        if (qobject_cast<QComboBox*>(field) != nullptr || qobject_cast<QAbstractSpinBox*>(field) != nullptr) {
            field->setFocusPolicy(Qt::StrongFocus);
            field->installEventFilter(this);
        }
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->addWidget(scroll);
    BenchPlan plan = plan_from_json(session->settings().benchmark());
    if (session->settings().benchmark().isEmpty()) {
        plan.device = device;
        plan.a = session->settings().last_model();
    }
    set_plan(plan);
    connect_benchmark();
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
    retranslate();
    const bool under_way = benchmark_->active() || benchmark_->report() != nullptr;
    const auto kept = benchmark_->reports().list();
    list_reports(under_way || kept.empty() ? QString() : kept.front().path);
    under_way ? show_report(benchmark_->report()) : report_chosen();
    show_state();
}

void BenchView::build_setup() {
    auto* sides = new EvenFlow(theme_->palette().metrics.pad);
    a_ = new SidePicker('A', theme_, &session_->settings(), page_);
    b_ = new SidePicker('B', theme_, &session_->settings(), page_);
    sides->addWidget(a_);
    sides->addWidget(b_);
    workload_ = new WorkloadForm(theme_, page_);
    auto* column = static_cast<QVBoxLayout*>(page_->layout());
    column->addLayout(sides);
    column->addWidget(workload_);
    for (SidePicker* side : {a_, b_})
        connect(side, &SidePicker::path_changed, this, [this] {
            plan_changed();
            ask_details();
        });
    connect(workload_, &WorkloadForm::changed, this, [this] { plan_changed(); });
}

void BenchView::build_run_row() {
    run_ = new QPushButton(page_);
    run_->setObjectName(QStringLiteral("bench_run"));
    run_->setProperty("primary", true);
    stop_ = new QPushButton(page_);
    stop_->setObjectName(QStringLiteral("bench_stop"));
    now_ = new QLabel(page_);
    now_->setObjectName(QStringLiteral("bench_now"));
    now_->setWordWrap(true);
    now_->setTextFormat(Qt::PlainText);
    now_->setProperty("dim", true);
    left_ = new QLabel(page_);
    left_->setObjectName(QStringLiteral("bench_left"));
    left_->setProperty("dim", true);
    progress_ = new QProgressBar(page_);
    progress_->setObjectName(QStringLiteral("bench_progress"));
    progress_->setTextVisible(false);
    progress_->setRange(0, 1000);
    message_ = new MessageBar(theme_, page_);
    message_->setObjectName(QStringLiteral("bench_message"));
    auto* row = new QHBoxLayout;
    row->setSpacing(theme_->palette().metrics.pad);
    row->addWidget(run_);
    row->addWidget(stop_);
    auto* told = new QVBoxLayout;
    told->setSpacing(theme_->palette().metrics.small_gap);
    auto* words = new QHBoxLayout;
    words->addWidget(now_, 1);
    words->addWidget(left_);
    told->addLayout(words);
    told->addWidget(progress_);
    row->addLayout(told, 1);
    auto* column = static_cast<QVBoxLayout*>(page_->layout());
    column->addLayout(row);
    column->addWidget(message_);
    connect(run_, &QPushButton::clicked, this, [this] { run(); });
    connect(stop_, &QPushButton::clicked, this, [this] { benchmark_->stop(); });
}

void BenchView::build_results() {
    results_ = new QFrame(page_);
    results_->setObjectName(QStringLiteral("bench_results"));
    results_->setProperty("card", true);
    auto* inside = new QVBoxLayout(results_);
    inside->setContentsMargins(1, 1, 1, 1);
    inside->setSpacing(0);
    auto* choice = new QHBoxLayout;
    choice->setContentsMargins(10, 8, 10, 6);
    choice->setSpacing(theme_->palette().metrics.gap);
    reports_label_ = new QLabel(results_);
    reports_label_->setProperty("dim", true);
    reports_ = new QComboBox(results_);
    reports_->setObjectName(QStringLiteral("bench_reports"));
    reports_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    reports_->setMinimumContentsLength(18);
    reports_label_->setBuddy(reports_);
    choice->addWidget(reports_label_);
    choice->addWidget(reports_, 1);
    table_ = new BenchTable(theme_, results_);
    empty_ = new QLabel(results_);
    empty_->setObjectName(QStringLiteral("bench_empty"));
    empty_->setAlignment(Qt::AlignCenter);
    empty_->setWordWrap(true);
    empty_->setProperty("dim", true);
    inside->addLayout(choice);
    inside->addWidget(table_, 1);
    inside->addWidget(empty_, 1);
    details_ = new QLabel(results_);
    details_->setObjectName(QStringLiteral("bench_details"));
    details_->setWordWrap(true);
    details_->setTextFormat(Qt::PlainText);
    details_->setProperty("dim", true);
    details_->setContentsMargins(10, 5, 10, 6);
    details_->hide();
    inside->addWidget(details_);
    connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this] { show_details(); });
    connect(table_->table(), &QAbstractItemModel::modelReset, this, [this] { show_details(); });
    foot_ = new QLabel(page_);
    foot_->setObjectName(QStringLiteral("bench_foot"));
    foot_->setWordWrap(true);
    foot_->setTextFormat(Qt::PlainText);
    foot_->setProperty("dim", true);
    foot_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    copy_ = new QPushButton(page_);
    copy_->setObjectName(QStringLiteral("bench_copy"));
    save_ = new QPushButton(page_);
    save_->setObjectName(QStringLiteral("bench_save"));
    auto* formats = new QMenu(save_);
    formats->addAction(QStringLiteral("JSON…"), this, [this] { save(BenchReports::Format::json); });
    formats->addAction(QStringLiteral("CSV…"), this, [this] { save(BenchReports::Format::csv); });
    save_->setMenu(formats);
    auto* row = new QHBoxLayout;
    row->setSpacing(theme_->palette().metrics.gap);
    row->addWidget(foot_, 1);
    row->addWidget(copy_);
    row->addWidget(save_);
    auto* column = static_cast<QVBoxLayout*>(page_->layout());
    column->addWidget(results_, 1);
    column->addLayout(row);
    connect(reports_, &QComboBox::currentIndexChanged, this, [this] {
        if (!filling_) report_chosen();
    });
    connect(copy_, &QPushButton::clicked, this, [this] { copy_markdown(); });
}

void BenchView::connect_benchmark() {
    connect(benchmark_, &Benchmark::state_changed, this, [this] {
        if (reports_->currentData().toString().isEmpty()) list_reports({});  // "this run", or no longer
        show_state();
    });
    connect(benchmark_, &Benchmark::progress_changed, this, [this] { show_progress(); });
    connect(benchmark_, &Benchmark::report_changed, this, [this] {
        if (!reports_->currentData().toString().isEmpty()) list_reports({});
        show_report(benchmark_->report());
    });
    connect(benchmark_, &Benchmark::memory_short, this,
            [this](std::uint64_t needed, std::uint64_t free, std::uint64_t returned) {
                say_memory(needed, free, returned);
            });
    connect(benchmark_, &Benchmark::failed, this, [this](const QString& sentence) { say_failure(sentence); });
    connect(benchmark_, &Benchmark::finished, this,
            [this] { Q_EMIT announce(tr("The benchmark is finished.")); });
    connect(benchmark_, &Benchmark::stopped, this, [this] {
        const QString sentence =
            benchmark_->report() != nullptr
                ? tr("Stopped. What was measured is shown, and not kept unless you save it.")
                : tr("Stopped before anything was measured.");
        message_->show_message(sentence);
        Q_EMIT announce(tr("The benchmark was stopped."));
    });
    BenchReports* reports = &benchmark_->reports();
    connect(reports, &BenchReports::kept, this, [this](const QString& path) {
        if (reports_->currentData().toString().isEmpty() && shown_ == benchmark_->report())
            list_reports(path);
    });
    connect(reports, &BenchReports::was_read, this,
            [this](const QString& path, const std::shared_ptr<const CompareReport>& report) {
                if (reports_->currentData().toString() == path) show_report(report);
            });
    connect(reports, &BenchReports::saved, this, [this](const QString& path) {
        message_->show_message(tr("Saved as %1.").arg(QDir::toNativeSeparators(path)));
    });
    connect(reports, &BenchReports::failed, this, [this](const QString& sentence) { say_failure(sentence); });
    connect(session_->host(), &HostClient::estimate_ready, this,
            [this](const std::shared_ptr<const EstimateReport>& report) {
                if (report->ticket == asked_a_) a_->set_details(*report);
                if (report->ticket == asked_b_) b_->set_details(*report);
            });
    connect(session_->host(), &HostClient::state_changed, this, [this] { show_state(); });
    connect(session_, &Session::chat_changed, this, [this] { show_state(); });
    connect(&session_->settings(), &Settings::changed, this, [this](const QString& key) {
        if (key != QLatin1String("recent_models")) return;
        a_->refresh_models();
        b_->refresh_models();
    });
}

BenchPlan BenchView::plan() const {
    BenchPlan plan;
    plan.a = a_->path();
    plan.b = b_->path();
    workload_->fill(plan);
    return plan;
}

void BenchView::set_plan(const BenchPlan& plan) {
    filling_ = true;
    a_->set_path(plan.a);
    b_->set_path(plan.b);
    workload_->set_plan(plan);
    filling_ = false;
    if (isVisible()) ask_details();
}

void BenchView::plan_changed() {
    if (filling_) return;
    session_->settings().set_benchmark(plan_to_json(plan()));
    show_state();
}

// What the headers say, without loading: on the engine's thread, never while something is measured.
void BenchView::ask_details() {
    if (filling_ || benchmark_->active()) return;
    const BenchPlan plan = this->plan();
    const auto ask = [&](const QString& path) -> Ticket {
        if (path.isEmpty()) return 0;
        ModelRequest request;
        request.path = path.toStdString();
        request.device = plan.device.toStdString();
        request.threads = threads_;
        return session_->host()->estimate(std::move(request));
    };
    asked_a_ = ask(plan.a);
    asked_b_ = ask(plan.b);
}

void BenchView::run() {
    message_->dismiss();
    const QString reason = benchmark_->start_blocked_reason();
    if (!benchmark_->start(plan(), threads_)) {
        say_failure(reason);
        return;
    }
    stop_->setFocus(Qt::OtherFocusReason);
    Q_EMIT announce(tr("The benchmark has started."));
}

void BenchView::show_state() {
    const bool active = benchmark_->active();
    const QString problem = workload_->problem(),
                  blocked = active ? QString() : benchmark_->start_blocked_reason();
    const bool had_focus = stop_->hasFocus() && !active;
    for (QWidget* part :
         {static_cast<QWidget*>(a_), static_cast<QWidget*>(b_), static_cast<QWidget*>(workload_)})
        part->setEnabled(!active);
    // The focus goes from one button to the other, not to whatever follows a button that is hidden.
    run_->setVisible(!active);
    run_->setEnabled(!active && !a_->path().isEmpty() && problem.isEmpty() && blocked.isEmpty());
    if (had_focus) run_->setFocus(Qt::OtherFocusReason);
    for (QWidget* part :
         {static_cast<QWidget*>(stop_), static_cast<QWidget*>(progress_), static_cast<QWidget*>(left_)})
        part->setVisible(active);
    QString text;
    if (!active)
        text = a_->path().isEmpty() ? tr("Choose a model for A.")
               : !problem.isEmpty() ? tr("Something in the workload is not a number yet.")
               : !blocked.isEmpty() ? blocked
                                    : tr("Chats wait while a benchmark runs.");
    now_->setText(text);
    run_->setAccessibleDescription(text);
    show_progress();
    Q_EMIT state_changed();
}

void BenchView::show_progress() {
    if (!benchmark_->active()) return;
    const CompareProgress& p = benchmark_->progress();
    progress_->setValue(int(p.fraction * 1000));
    switch (benchmark_->state()) {
        case BenchState::checking:
            now_->setText(tr("looking at the models and the memory …"));
            break;
        case BenchState::stopping:
            now_->setText(tr("stopping …"));
            break;
        default:
            now_->setText(run_text());
    }
    now_->setToolTip(QString::fromStdString(p.what));
    QString left;
    if (p.seconds_left >= 90)
        left = tr("about %n minute(s) left", nullptr, int((p.seconds_left + 30) / 60));
    else if (p.seconds_left > 0)
        left = tr("about %1 s left").arg(int(p.seconds_left + 0.5));
    left_->setText(left);
    Q_EMIT state_changed();
}

QString BenchView::run_text() const {
    const BenchReports::Report report = benchmark_->report();
    if (!report || benchmark_->progress().fraction <= 0) return tr("loading and warming up …");
    const BenchPlan plan = this->plan();  // its fields are disabled meanwhile
    const int sides = plan.b.isEmpty() ? 1 : 2;
    const int wanted = int(plan.sequences.size() * plan.depths.size()) * plan.repeats * sides;
    int done = 0;  // void runs are repeated and count for nothing
    for (const BenchRow& row : report->rows)
        done += int(row.ttft_s.samples.size());
    const QString run = tr("timed run %1 of %2").arg(std::min(done + 1, wanted)).arg(wanted);
    return sides == 1 ? run : tr("%1 · %2").arg(run, QChar::fromLatin1(benchmark_->progress().side));
}

QString BenchView::state_text() const {
    if (!benchmark_->active()) return tr("idle");
    return tr("running, %1 %").arg(int(benchmark_->progress().fraction * 100));
}

void BenchView::show_report(const BenchReports::Report& report) {
    shown_ = report;
    table_->set_report(report);
    const bool any = report != nullptr && !report->rows.empty();
    table_->setVisible(any);
    empty_->setVisible(!any);
    copy_->setEnabled(any);
    save_->setEnabled(any);
    foot_->setText(any ? header_line(*report) : QString());
}

// No word by hovering alone: of the row that was gone to, its tool tips stand below the table.
void BenchView::show_details() {
    const QString text = table_->table()->row_details(table_->currentIndex().row());
    details_->setText(text);
    details_->setVisible(!text.isEmpty());
    // The line takes its room from the table, perhaps the chosen row's.
    QMetaObject::invokeMethod(
        table_, [this] { table_->scrollTo(table_->currentIndex()); }, Qt::QueuedConnection);
}

QString BenchView::header_line(const CompareReport& report) const {
    QStringList parts;
    const auto& h = report.header;
    if (h.is_object()) {
        for (const char* key : {"device", "kernels", "driver"})
            if (const QString text = text_of(h, key); !text.isEmpty() && !parts.contains(text)) parts << text;
        parts << tr("greedy, end of turn ignored") << tr("prefix cache off");
        if (const QString version = text_of(h, "recto"); !version.isEmpty())
            parts << QStringLiteral("Recto %1 %2").arg(version, text_of(h, "commit"));
        if (const auto found = h.find("warnings"); found != h.end() && found->is_array())
            for (const auto& warning : *found)
                if (warning.is_string()) parts << QStringLiteral("⚠ %1").arg(QString::fromStdString(warning));
    }
    return parts.join(QStringLiteral(" · "));
}

void BenchView::list_reports(const QString& chosen) {
    filling_ = true;
    reports_->clear();
    const bool unkept = chosen.isEmpty();
    if (unkept)
        reports_->addItem(benchmark_->active()   ? tr("this run")
                          : benchmark_->report() ? tr("the last run, not kept")
                                                 : tr("none yet"),
                          QString());
    for (const BenchReportEntry& entry : benchmark_->reports().list()) {
        reports_->addItem(QStringLiteral("%1 · %2").arg(
                              entry.when.toString(QStringLiteral("yyyy-MM-dd HH:mm")), entry.title),
                          entry.path);
        reports_->setItemData(reports_->count() - 1, entry.path, Qt::ToolTipRole);
    }
    reports_->setCurrentIndex(unkept ? 0 : std::max(reports_->findData(chosen), 0));
    filling_ = false;
}

void BenchView::report_chosen() {
    const QString path = reports_->currentData().toString();
    if (path.isEmpty()) {
        show_report(benchmark_->report());
    } else {
        benchmark_->reports().read(path);
    }
}

void BenchView::say_memory(std::uint64_t needed, std::uint64_t free, std::uint64_t returned) {
    const QString short_of = tr("The benchmark needs about %1 of memory, and %2 are free.")
                                 .arg(format_bytes(needed), format_bytes(free));
    if (returned > 0 && needed <= free + returned) {
        message_->show_message(
            tr("%1 Ejecting the model of the chats gives %2 back; the chats keep their text.")
                .arg(short_of, format_bytes(returned)),
            {{tr("Eject it and run"), [this] { benchmark_->eject_and_start(); }}}, true);
    } else {
        message_->show_message(
            tr("%1 Choose fewer sequences, a smaller depth or a smaller model.").arg(short_of), {}, true);
    }
}

void BenchView::say_failure(const QString& sentence) {
    message_->show_message(sentence, {}, true);
}

void BenchView::save(BenchReports::Format format) {
    if (!shown_) return;
    const bool json = format == BenchReports::Format::json;
    const QString suffix = json ? QStringLiteral("json") : QStringLiteral("csv");
    // A title may end as the model's own file does.
    const QString name =
        report_title(*shown_).replace(QLatin1Char('/'), QStringLiteral("vs")) + QLatin1Char('.') + suffix;
    auto* dialog = new QFileDialog(window(), tr("Save the report"), QDir::home().filePath(name),
                                   json ? tr("JSON (*.json)") : tr("CSV (*.csv)"));
    dialog->setObjectName(QStringLiteral("bench_save_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(suffix);
    connect(dialog, &QFileDialog::fileSelected, this, [this, format, report = shown_](const QString& file) {
        benchmark_->reports().save(report, file, format);
    });
    dialog->open();
}

void BenchView::copy_markdown() {
    if (!shown_) return;
    QGuiApplication::clipboard()->setText(QString::fromStdString(report_markdown(*shown_)));
    message_->show_message(tr("Copied as Markdown, with what a repetition needs."));
}

void BenchView::focus_first() {
    if (benchmark_->active()) {
        stop_->setFocus(Qt::ShortcutFocusReason);
    } else if (QWidget* first = a_->findChild<QComboBox*>()) {
        first->setFocus(Qt::ShortcutFocusReason);
    }
}

void BenchView::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    ask_details();
}

// The wheel over a field scrolls the page; only the field that was chosen takes it as its own.
bool BenchView::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Wheel && !static_cast<QWidget*>(watched)->hasFocus()) {
        event->ignore();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void BenchView::retranslate() {
    setAccessibleName(tr("Benchmark"));
    run_->setText(tr("Run"));
    run_->setAccessibleName(tr("Run the benchmark"));
    stop_->setText(tr("Stop"));
    stop_->setAccessibleName(tr("Stop the benchmark"));
    progress_->setAccessibleName(tr("Progress of the benchmark"));
    reports_label_->setText(tr("Report"));
    reports_->setAccessibleName(tr("Finished benchmarks"));
    empty_->setText(
        tr("Results stand here while the benchmark runs, each with its formula. Finished ones are kept."));
    copy_->setText(tr("Copy as Markdown"));
    copy_->setAccessibleName(copy_->text());
    save_->setText(tr("Save as"));
    save_->setAccessibleName(tr("Save the report as a file"));
    list_reports(reports_->currentData().toString());
    show_report(shown_);
    show_state();
}

void BenchView::restyle() {
    const Palette& p = theme_->palette();
    page_->setStyleSheet(
        QStringLiteral("QWidget#bench_page{background:%1}"
                       "QFrame#bench_a_card,QFrame#bench_b_card,QFrame#bench_workload,"
                       "QFrame#bench_results{background:%2;border:1px solid %3;border-radius:%4px}")
            .arg(p.background.name(), p.panel.name(), p.line.name())
            .arg(p.metrics.card_radius));
    for (QLabel* label : {now_, left_, reports_label_})
        label->setFont(p.fonts.note);
    foot_->setFont(p.fonts.small);
    details_->setFont(p.fonts.small);
    empty_->setFont(p.fonts.body);
    for (QWidget* widget :
         {static_cast<QWidget*>(run_), static_cast<QWidget*>(stop_), static_cast<QWidget*>(copy_),
          static_cast<QWidget*>(save_), static_cast<QWidget*>(reports_)})
        widget->setFont(p.fonts.body);
    results_->setMinimumHeight(int(260 * p.zoom));
}

void BenchView::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) retranslate();
}

}  // namespace recto::ui
