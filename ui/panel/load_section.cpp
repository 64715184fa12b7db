#include <QLocale>
#include <QVBoxLayout>

#include "ui/panel/sections.h"

namespace recto::ui {
namespace {

QString stage_name(const std::string& stage) {
    if (stage == "map") return LoadSection::tr("map");
    if (stage == "tokenizer") return LoadSection::tr("tokenizer");
    if (stage == "read") return LoadSection::tr("read");
    if (stage == "repack") return LoadSection::tr("repack");
    if (stage == "upload") return LoadSection::tr("upload");
    if (stage == "warm-up") return LoadSection::tr("warm-up");
    return QString::fromStdString(stage);
}

QString brief_seconds(double s) {
    const QLocale locale;
    return s < 0.995 ? LoadSection::tr("%1 ms").arg(locale.toString(s * 1000, 'f', s < 0.00995 ? 1 : 0))
                     : LoadSection::tr("%1 s").arg(locale.toString(s, 'f', 2));
}

}  // namespace

LoadSection::LoadSection(const PanelContext& context, QWidget* parent) : PanelSection(context, parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme()->palette().metrics.gap);
    header_ = new SectionHeader(theme(), this);
    bar_ = new StageBar(theme(), this);
    bar_->setObjectName(QStringLiteral("stage_bar"));
    legend_ = new FlowLegend(theme(), this);
    legend_->setObjectName(QStringLiteral("stage_legend"));
    column->addWidget(header_);
    column->addWidget(bar_);
    column->addWidget(legend_);
    connect(feed(), &PanelFeed::model_changed, this, [this] { show_model(); });
    connect(theme(), &Theme::changed, this, [this] { show_model(); });
    show_model();
}

void LoadSection::show_model() {
    const auto model = feed()->host()->model();
    setVisible(model != nullptr);
    if (model == nullptr) return;
    header_->set_value(brief_seconds(model->load_seconds));
    bar_->set_stages(model->load_stages);
    std::vector<LegendEntry> entries;
    int position = 0;
    for (const auto& stage : model->load_stages)
        entries.push_back(
            {Swatch::color, -1, stage_color(theme()->palette(), stage.name, position++),
             QStringLiteral("%1 %2").arg(stage_name(stage.name), brief_seconds(stage.seconds))});
    QStringList texts;
    for (const auto& entry : entries)
        texts << entry.text;
    bar_->setAccessibleDescription(texts.join(QStringLiteral("; ")));
    legend_->set_entries(std::move(entries));
}

void LoadSection::retranslate() {
    header_->set_title(tr("Load time"));
    bar_->setAccessibleName(tr("Load time by stage"));
    legend_->setAccessibleName(tr("Load stages"));
    show_model();
}

}  // namespace recto::ui
