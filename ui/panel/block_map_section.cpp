#include <QLocale>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/panel/sections.h"

namespace recto::ui {

BlockMapSection::BlockMapSection(const PanelContext& context, QWidget* parent)
    : PanelSection(context, parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme()->palette().metrics.gap);
    header_ = new SectionHeader(theme(), this);
    map_ = new BlockMapWidget(theme(), this);
    map_->setObjectName(QStringLiteral("block_map"));
    legend_ = new FlowLegend(theme(), this);
    legend_->setObjectName(QStringLiteral("block_legend"));
    reserved_ = new QLabel(this);
    reserved_->setObjectName(QStringLiteral("contiguous_label"));
    reserved_->setWordWrap(true);
    reserved_->setProperty("dim", true);
    column->addWidget(header_);
    column->addWidget(map_);
    column->addWidget(legend_);
    column->addWidget(reserved_);

    tip_ = new QLabel(this, Qt::ToolTip);
    tip_->setObjectName(QStringLiteral("block_tip"));
    tip_->setWordWrap(true);
    tip_->setTextFormat(Qt::PlainText);
    tip_->setMargin(8);
    tip_->hide();

    connect(map_, &BlockMapWidget::pointed, this, [this](int block) { point_at(block); });
    connect(feed()->host(), &HostClient::block_described, this,
            [this](const std::shared_ptr<const BlockDescription>& d) { show_description(*d); });
    const auto restyle = [this] {
        const Palette& p = theme()->palette();
        reserved_->setFont(p.fonts.small);
        tip_->setFont(p.fonts.note);
        tip_->setStyleSheet(QStringLiteral("background:%1;color:%2;border:1px solid %3")
                                .arg(p.raised.name(), p.text.name(), p.line.name()));
    };
    connect(theme(), &Theme::changed, this, restyle);
    restyle();
}

void BlockMapSection::refresh() {
    const EngineSnapshot* s = feed()->snapshot();
    const BlockMapModel* model = feed()->map();
    if (s == nullptr) {
        map_->set_cells({}, 0, 16);
        header_->set_value(tr("no model loaded"));
        legend_->set_entries({});
        reserved_->setText({});
        return;
    }
    map_->set_cells(feed()->looks(), s->counts.total, s->block_size);
    map_->setAccessibleDescription(model->summary());
    const QLocale locale;
    header_->set_value(tr("%1 / %2 used · waste %3 %")
                           .arg(locale.toString(s->counts.used), locale.toString(s->counts.total),
                                locale.toString(100 * model->waste(), 'f', 1)));

    std::vector<LegendEntry> entries;
    const auto owners = model->owners();
    for (const auto& owner : owners) {
        if (entries.size() == 8) break;
        const QString name = feed()->session()->owner_name(owner.owner);
        const QString brief = name.size() > 18 ? name.left(17) + QStringLiteral("…") : name;
        entries.push_back({Swatch::owner,
                           feed()->session()->style(owner.owner).number,
                           {},
                           QStringLiteral("%1 %2").arg(brief, locale.toString(owner.own))});
    }
    if (s->counts.shared > 0)
        entries.push_back({Swatch::shared, -1, {}, tr("shared %1").arg(locale.toString(s->counts.shared))});
    if (s->counts.cached > 0)
        entries.push_back({Swatch::cached, -1, {}, tr("cached %1").arg(locale.toString(s->counts.cached))});
    entries.push_back({Swatch::free, -1, {}, tr("free %1").arg(locale.toString(s->counts.free))});
    legend_->set_entries(std::move(entries));

    QString text;
    if (s->contiguous_slots > 0 && s->allocated_slots > 0) {
        const double times = double(s->contiguous_slots) / double(s->allocated_slots);
        text = tr("A contiguous cache would have reserved %1 blocks for these chats: %2 times as many.")
                   .arg(locale.toString(
                            qulonglong(s->contiguous_slots / std::uint64_t(std::max(s->block_size, 1)))),
                        locale.toString(times, 'f', 1));
    }
    if (text != reserved_->text()) reserved_->setText(text);
}

void BlockMapSection::retranslate() {
    header_->set_title(tr("KV blocks"));
    map_->setAccessibleName(tr("Map of KV blocks"));
    map_->setToolTip({});
    legend_->setAccessibleName(tr("Legend of the block map"));
    refresh();
}

void BlockMapSection::hideEvent(QHideEvent* event) {
    point_at(-1);
    PanelSection::hideEvent(event);
}

void BlockMapSection::point_at(int block) {
    pointed_ = block;
    if (block < 0) {
        tip_->hide();
        return;
    }
    feed()->host()->describe_block(BlockId(block));
}

void BlockMapSection::show_description(const BlockDescription& d) {
    if (d.detail.block != pointed_ || pointed_ < 0) return;
    const QLocale locale;
    QStringList lines;
    const QString number = locale.toString(d.detail.block);
    const int size = feed()->map()->block_size();
    switch (d.detail.state.state) {
        case BlockState::free:
            lines << tr("Block %1, free").arg(number);
            break;
        case BlockState::cached:
            lines << tr("Block %1, cached: kept for whoever starts with the same text").arg(number)
                  << tr("last used by %1").arg(feed()->session()->owner_name(d.detail.state.owner));
            break;
        case BlockState::used:
            lines << (d.detail.state.ref_count > 1
                          ? tr("Block %1, shared by %2").arg(number).arg(d.detail.state.ref_count)
                          : tr("Block %1").arg(number));
            break;
    }
    for (const auto& place : d.detail.places)
        lines << tr("%1: its block %2")
                     .arg(feed()->session()->owner_name(place.owner), locale.toString(place.logical_index));
    if (d.detail.state.state != BlockState::free)
        lines << tr("%1 of %2 tokens").arg(d.detail.state.fill).arg(size);
    QString text;
    for (const auto& token : d.token_texts)
        text += QString::fromStdString(token);
    if (!text.isEmpty()) lines << QStringLiteral("“%1”").arg(text.simplified());

    tip_->setText(lines.join(QLatin1Char('\n')));
    map_->setAccessibleDescription(lines.join(QStringLiteral(", ")));
    tip_->setFixedWidth(300);
    tip_->adjustSize();
    const QRect cell = map_->cell_rect(pointed_);
    const QPoint corner = map_->viewport()->mapToGlobal(QPoint(0, cell.bottom() + 10));
    tip_->move(corner);
    tip_->show();
}

}  // namespace recto::ui
