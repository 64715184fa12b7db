#include "ui/chat/sampling_popover.h"

#include <QDoubleSpinBox>
#include <QEvent>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QRegularExpressionValidator>
#include <QSpinBox>
#include <QVBoxLayout>

#include "ui/chat/composition_guard.h"
#include "ui/theme/theme.h"

namespace recto::ui {

QString sampling_summary(const SamplingParams& params) {
    const QLocale locale;
    if (params.greedy()) return SamplingPopover::tr("greedy");
    return SamplingPopover::tr("temp %1 \u00b7 top-p %2")
        .arg(locale.toString(params.temperature), locale.toString(params.top_p));
}

SamplingPopover::SamplingPopover(Theme* theme, QWidget* window_area) : Popover(theme, window_area) {
    setObjectName(QStringLiteral("samplingPopover"));
    title_ = new QLabel(this);
    title_->setFont(theme->palette().fonts.strong);
    column()->addWidget(title_);
    form_ = new QFormLayout;
    form_->setLabelAlignment(Qt::AlignLeft);
    column()->addLayout(form_);
    // Ranges are SamplingParams::check()'s.
    temperature_ = add_number(QStringLiteral("temperature"), 0, 2, 0.05);
    top_p_ = add_number(QStringLiteral("top_p"), 0.01, 1, 0.01);
    top_k_ = add_count(QStringLiteral("top_k"), 0, 1'000'000);
    min_p_ = add_number(QStringLiteral("min_p"), 0, 1, 0.01);
    repetition_ = add_number(QStringLiteral("repetition_penalty"), 0.01, 2, 0.01);
    max_tokens_ = add_count(QStringLiteral("max_tokens"), 0, 10'000'000);
    seed_ = new QLineEdit(this);
    seed_->setValidator(
        new QRegularExpressionValidator(QRegularExpression(QStringLiteral("\\d{0,18}")), seed_));
    new CompositionGuard(seed_);
    add_row(QStringLiteral("seed"), seed_);
    connect(seed_, &QLineEdit::editingFinished, this, [this] {
        if (filling_) return;
        bool ok = false;
        const qint64 seed = seed_->text().toLongLong(&ok);
        set_value(QStringLiteral("seed"), ok ? QJsonValue(seed) : QJsonValue(QJsonValue::Undefined));
    });
    reset_ = new QPushButton(this);
    reset_->setObjectName(QStringLiteral("samplingReset"));
    watch(reset_);
    connect(reset_, &QPushButton::clicked, this, [this] {
        own_ = {};
        Q_EMIT sampling_changed(own_);
    });
    column()->addWidget(reset_);
    retranslate();
}

QDoubleSpinBox* SamplingPopover::add_number(const QString& key, double low, double high, double step) {
    auto* box = new QDoubleSpinBox(this);
    box->setRange(low, high);
    box->setSingleStep(step);
    box->setDecimals(2);
    box->setButtonSymbols(QAbstractSpinBox::NoButtons);  // arrow keys and the wheel step
    new CompositionGuard(box->findChild<QLineEdit*>());
    connect(box, &QDoubleSpinBox::valueChanged, this, [this, key](double value) { set_value(key, value); });
    add_row(key, box);
    return box;
}

QSpinBox* SamplingPopover::add_count(const QString& key, int low, int high) {
    auto* box = new QSpinBox(this);
    box->setRange(low, high);
    box->setGroupSeparatorShown(true);
    box->setButtonSymbols(QAbstractSpinBox::NoButtons);
    new CompositionGuard(box->findChild<QLineEdit*>());
    connect(box, &QSpinBox::valueChanged, this, [this, key](int value) {
        // 0 means the rest of the context, which is what an absent value means.
        const bool rest = key == QLatin1String("max_tokens") && value == 0;
        set_value(key, rest ? QJsonValue(QJsonValue::Undefined) : QJsonValue(value));
    });
    add_row(key, box);
    return box;
}

void SamplingPopover::add_row(const QString& key, QWidget* field) {
    auto* label = new QLabel(this);
    label->setProperty("dim", true);
    label->setBuddy(field);
    labels_.insert(key, label);
    field->setObjectName(QStringLiteral("sampling_") + key);
    field->setMinimumWidth(110);
    watch(field);
    if (auto* line = field->findChild<QLineEdit*>()) watch(line);
    form_->addRow(label, field);
}

void SamplingPopover::set_value(const QString& key, const QJsonValue& value) {
    if (filling_) return;
    if (value.isUndefined())
        own_.remove(key);
    else
        own_[key] = value;
    Q_EMIT sampling_changed(own_);
}

void SamplingPopover::set_sampling(const SamplingParams& effective, const QJsonObject& own) {
    filling_ = true;
    own_ = own;
    temperature_->setValue(effective.temperature);
    top_p_->setValue(effective.top_p);
    top_k_->setValue(std::max(0, effective.top_k));
    min_p_->setValue(effective.min_p);
    repetition_->setValue(effective.repetition_penalty);
    max_tokens_->setValue(effective.max_tokens.value_or(0));
    if (!seed_->hasFocus()) seed_->setText(effective.seed ? QString::number(*effective.seed) : QString());
    filling_ = false;
    reset_->setEnabled(!own_.isEmpty());
}

void SamplingPopover::retranslate() {
    setAccessibleName(tr("Sampling of this chat"));
    title_->setText(tr("Sampling of this chat"));
    const auto name = [this](const char* key, QWidget* field, const QString& label, const QString& help) {
        labels_[QLatin1String(key)]->setText(label);
        labels_[QLatin1String(key)]->setToolTip(help);
        field->setAccessibleName(label);
        field->setAccessibleDescription(help);
        field->setToolTip(help);
    };
    name("temperature", temperature_, tr("Temperature"),
         tr("0 always takes the likeliest token; more is more varied"));
    name("top_p", top_p_, tr("Top-p"),
         tr("Draws from the likeliest tokens that together reach this probability"));
    name("top_k", top_k_, tr("Top-k"), tr("Draws from this many of the likeliest tokens; 0 is off"));
    name("min_p", min_p_, tr("Min-p"),
         tr("Drops tokens less likely than this share of the likeliest; 0 is off"));
    name("repetition_penalty", repetition_, tr("Repetition penalty"),
         tr("Above 1 makes tokens that occurred less likely"));
    name("max_tokens", max_tokens_, tr("Longest answer, tokens"),
         tr("The answer ends after this many tokens"));
    max_tokens_->setSpecialValueText(tr("rest of the context"));
    top_k_->setSpecialValueText(tr("off"));
    name("seed", seed_, tr("Seed"),
         tr("The same seed draws the same answer again; empty: a new one each time"));
    seed_->setPlaceholderText(tr("random"));
    reset_->setText(tr("Back to the defaults"));
    reset_->setAccessibleName(reset_->text());
}

void SamplingPopover::changeEvent(QEvent* event) {
    if (event->type() == QEvent::LanguageChange) retranslate();
    Popover::changeEvent(event);
}

}  // namespace recto::ui
