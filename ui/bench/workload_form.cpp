#include "ui/bench/workload_form.h"

#include <QComboBox>
#include <QEvent>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QSpinBox>
#include <QVBoxLayout>
#include <array>

#include "ui/bench/even_flow.h"
#include "ui/chat/composition_guard.h"
#include "ui/format.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

struct Preset {
    int prompt, output;
};
// users.md §5, rule 10.
constexpr std::array<Preset, 3> presets{{{128, 100}, {512, 128}, {2048, 128}}};

}  // namespace

WorkloadForm::WorkloadForm(const Theme* theme, QWidget* parent) : QFrame(parent), theme_(theme) {
    setObjectName(QStringLiteral("bench_workload"));
    setProperty("card", true);
    const Metrics& m = theme->palette().metrics;
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(m.pad, 9, m.pad, 10);
    column->setSpacing(m.gap);
    flow_ = new EvenFlow(m.gap + m.small_gap);
    column->addLayout(flow_);
    preset_ = new QComboBox(this);
    for (std::size_t i = 0; i <= presets.size(); ++i)
        preset_->addItem(QString());
    add_field(preset_, "preset");
    prompt_ = add_count("prompt_tokens", 1, most_bench_tokens);
    output_ = add_count("output_tokens", least_bench_output, most_bench_tokens);
    sequences_ = add_list("sequences", 1, most_bench_sequences);
    depths_ = add_list("depths", 0, most_bench_tokens);
    repeats_ = add_count("repeats", 1, most_bench_repeats);
    device_ = new QComboBox(this);
    for (const char* name : {"auto", "cpu", "cuda"})
        device_->addItem(QString(), QString::fromLatin1(name));
    add_field(device_, "device");
    problem_ = new QLabel(this);
    problem_->setObjectName(QStringLiteral("bench_problem"));
    problem_->setWordWrap(true);
    problem_->setTextFormat(Qt::PlainText);
    column->addWidget(problem_);
    connect(preset_, &QComboBox::currentIndexChanged, this, [this] { take_preset(); });
    connect(device_, &QComboBox::currentIndexChanged, this, [this] {
        if (!filling_) Q_EMIT changed();
    });
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    set_plan({});
    restyle();
    retranslate();
}

void WorkloadForm::add_field(QWidget* field, const char* name) {
    field->setObjectName(QStringLiteral("bench_") + QLatin1String(name));
    auto* cell = new QWidget(this);
    auto* column = new QVBoxLayout(cell);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme_->palette().metrics.small_gap);
    auto* label = new QLabel(cell);
    label->setProperty("dim", true);
    label->setBuddy(field);
    column->addWidget(label);
    column->addWidget(field);
    flow_->addWidget(cell);
    fields_.push_back({label, field});
}

QSpinBox* WorkloadForm::add_count(const char* name, int least, int most) {
    auto* box = new QSpinBox(this);
    box->setRange(least, most);
    box->setGroupSeparatorShown(true);
    box->setButtonSymbols(QAbstractSpinBox::NoButtons);  // arrow keys and the wheel step
    new CompositionGuard(box->findChild<QLineEdit*>());
    add_field(box, name);
    connect(box, &QSpinBox::valueChanged, this, [this] {
        if (filling_) return;
        show_preset();
        Q_EMIT changed();
    });
    return box;
}

QLineEdit* WorkloadForm::add_list(const char* name, int least, int most) {
    auto* line = new QLineEdit(this);
    new CompositionGuard(line);
    add_field(line, name);
    connect(line, &QLineEdit::textChanged, this, [this] {
        if (filling_) return;
        show_problem();
        Q_EMIT changed();
    });
    connect(line, &QLineEdit::editingFinished, this, [line, least, most] {
        if (const auto counts = parse_counts(line->text(), least, most)) line->setText(counts_text(*counts));
    });
    return line;
}

void WorkloadForm::set_plan(const BenchPlan& plan) {
    filling_ = true;
    prompt_->setValue(plan.prompt_tokens);
    output_->setValue(plan.output_tokens);
    sequences_->setText(counts_text(plan.sequences));
    depths_->setText(counts_text(plan.depths));
    repeats_->setValue(plan.repeats);
    int device = device_->findData(plan.device);
    if (device < 0) {  // "cuda:1", from the command line
        device_->addItem(plan.device, plan.device);
        device = device_->count() - 1;
    }
    device_->setCurrentIndex(device);
    filling_ = false;
    show_preset();
    show_problem();
}

void WorkloadForm::fill(BenchPlan& plan) const {
    plan.prompt_tokens = prompt_->value();
    plan.output_tokens = output_->value();
    if (const auto counts = parse_counts(sequences_->text(), 1, most_bench_sequences))
        plan.sequences = *counts;
    if (const auto counts = parse_counts(depths_->text(), 0, most_bench_tokens)) plan.depths = *counts;
    plan.repeats = repeats_->value();
    plan.device = device_->currentData().toString();
}

QString WorkloadForm::problem() const {
    if (!parse_counts(sequences_->text(), 1, most_bench_sequences))
        return tr("Sequences: expected numbers from 1 to %1 with commas between, found “%2”.")
            .arg(format_count(most_bench_sequences), sequences_->text());
    if (!parse_counts(depths_->text(), 0, most_bench_tokens))
        return tr("Depths: expected numbers from 0 to %1 with commas between, found “%2”.")
            .arg(format_count(most_bench_tokens), depths_->text());
    return {};
}

void WorkloadForm::take_preset() {
    const int chosen = preset_->currentIndex();
    if (filling_ || chosen < 0 || chosen >= int(presets.size())) return;
    filling_ = true;
    prompt_->setValue(presets[std::size_t(chosen)].prompt);
    output_->setValue(presets[std::size_t(chosen)].output);
    filling_ = false;
    Q_EMIT changed();
}

void WorkloadForm::show_preset() {
    int index = int(presets.size());  // own numbers
    for (std::size_t i = 0; i < presets.size(); ++i)
        if (presets[i].prompt == prompt_->value() && presets[i].output == output_->value()) index = int(i);
    filling_ = true;
    preset_->setCurrentIndex(index);
    filling_ = false;
}

void WorkloadForm::show_problem() {
    const QString text = problem();
    problem_->setText(text);
    problem_->setVisible(!text.isEmpty());
    sequences_->setAccessibleDescription(text);
    depths_->setAccessibleDescription(text);
}

void WorkloadForm::retranslate() {
    filling_ = true;
    for (std::size_t i = 0; i < presets.size(); ++i)
        preset_->setItemText(int(i), QStringLiteral("%1 / %2").arg(format_count(presets[i].prompt),
                                                                   format_count(presets[i].output)));
    preset_->setItemText(int(presets.size()), tr("own numbers"));
    device_->setItemText(0, tr("automatic"));
    device_->setItemText(1, tr("CPU"));
    device_->setItemText(2, tr("CUDA card"));
    filling_ = false;
    const std::array<std::pair<QString, QString>, 7> texts{{
        {tr("Workload, in / out"), tr("Prompt and output tokens of each sequence")},
        {tr("Prompt tokens"), tr("Tokens in each prompt; every prompt is another")},
        {tr("Output tokens"), tr("Every sequence gives exactly this many: the end of turn is ignored")},
        {tr("Sequences at once"), tr("One row of the table for each number: 1, 8, 64")},
        {tr("Depths"), tr("Tokens already in the context before the prompt: 0, 4096")},
        {tr("Repeats"), tr("Timed runs a side and row; 6 is a good number, under 5 nothing is clear")},
        {tr("Device"), tr("What the models run on, the same for both")},
    }};
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        fields_[i].label->setText(texts[i].first);
        fields_[i].label->setToolTip(texts[i].second);
        fields_[i].field->setToolTip(texts[i].second);
        fields_[i].field->setAccessibleName(texts[i].first);
        if (fields_[i].field != sequences_ && fields_[i].field != depths_)
            fields_[i].field->setAccessibleDescription(texts[i].second);
    }
    show_problem();
}

void WorkloadForm::restyle() {
    const Palette& p = theme_->palette();
    for (const Field& f : fields_) {
        f.label->setFont(p.fonts.note);
        f.field->setFont(p.fonts.body);
        f.field->setMinimumWidth(int(104 * p.zoom));
    }
    problem_->setFont(p.fonts.note);
    problem_->setStyleSheet(QStringLiteral("QLabel{color:%1}").arg(p.danger.name()));
    flow_->invalidate();
}

void WorkloadForm::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) retranslate();
}

}  // namespace recto::ui
