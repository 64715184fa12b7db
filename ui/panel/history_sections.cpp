#include <QLocale>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/panel/history.h"
#include "ui/panel/sections.h"

namespace recto::ui {
namespace {

QVBoxLayout* column_of(QWidget* section, int gap) {
    auto* column = new QVBoxLayout(section);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(gap);
    return column;
}

}  // namespace

BlocksOverTimeSection::BlocksOverTimeSection(const PanelContext& context, QWidget* parent)
    : PanelSection(context, parent) {
    auto* column = column_of(this, theme()->palette().metrics.small_gap);
    header_ = new SectionHeader(theme(), this);
    plot_ = new PlotWidget(theme(), this);
    plot_->setObjectName(QStringLiteral("blocks_plot"));
    column->addWidget(header_);
    column->addWidget(plot_);
}

void BlocksOverTimeSection::refresh() {
    const TimeSeries& series = feed()->series();
    PlotData data;
    data.points = history_points;
    data.stacked = true;
    data.least_top = 16;
    data.most_top = series.samples().empty() ? 16 : series.samples().back().total;
    for (std::size_t i = 0; i < series.owners().size(); ++i) {
        const OwnerLook look = theme()->palette().owner(feed()->session()->style(series.owners()[i]).number);
        data.series.push_back({feed()->session()->owner_name(series.owners()[i]), look.hue, false,
                               look.pattern, used_history(series, i)});
    }
    plot_->setAccessibleDescription(
        series.samples().empty() ? QString()
                                 : tr("%n block(s) used now", nullptr, series.samples().back().all_used));
    plot_->set_data(std::move(data));
}

void BlocksOverTimeSection::retranslate() {
    header_->set_title(tr("Blocks used"));
    header_->set_value(tr("last %1 s").arg(int(feed()->series().span_s())));
    plot_->setAccessibleName(tr("Blocks used over time, by chat"));
}

SpeedSection::SpeedSection(const PanelContext& context, QWidget* parent) : PanelSection(context, parent) {
    auto* column = column_of(this, theme()->palette().metrics.small_gap);
    header_ = new SectionHeader(theme(), this);
    plot_ = new PlotWidget(theme(), this);
    plot_->setObjectName(QStringLiteral("speed_plot"));
    column->addWidget(header_);
    column->addWidget(plot_);
}

void SpeedSection::refresh() {
    const TimeSeries& series = feed()->series();
    const Palette& palette = theme()->palette();
    PlotData data;  // a prompt is computed many times faster than an answer: an axis each
    data.points = history_points;
    data.least_top = 10;
    data.series.push_back({tr("prefill"), palette.dim, true, OwnerPattern::solid,
                           rate_history(series, &TimeSeries::Sample::prefill_tok_s), true});
    data.series.push_back({tr("decode"), palette.accent, false, OwnerPattern::solid,
                           rate_history(series, &TimeSeries::Sample::decode_tok_s)});
    plot_->setAccessibleDescription(tr("decode %1, prefill %2 tokens per second")
                                        .arg(QLocale().toString(series.latest_decode_tok_s(), 'f', 0),
                                             QLocale().toString(series.latest_prefill_tok_s(), 'f', 0)));
    plot_->set_data(std::move(data));
}

void SpeedSection::retranslate() {
    header_->set_title(tr("Tokens per second"));
    header_->set_value(tr("decode ― left, prefill ┄ right"));
    plot_->setAccessibleName(tr("Tokens per second over time"));
}

}  // namespace recto::ui
