#include "ui/panel/live_panel.h"

#include <QEvent>
#include <QVBoxLayout>

#include "ui/panel/sections.h"

namespace recto::ui {

LivePanel::LivePanel(const Theme* theme, Session* session, HostClient* host, QWidget* parent)
    : QScrollArea(parent), theme_(theme), feed_(new PanelFeed(session, host, this)) {
    setObjectName(QStringLiteral("live_panel"));
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::NoFocus);

    auto* content = new QWidget(this);
    auto* column = new QVBoxLayout(content);
    const Metrics& m = theme->palette().metrics;
    column->setContentsMargins(m.pad + 2, m.pad, m.pad + 2, m.pad);
    column->setSpacing(m.pad);
    const PanelContext context{theme, feed_};
    auto* map = new BlockMapSection(context, content);
    auto* events = new EventsSection(context, content);
    sections_ = {new NumbersSection(context, content),        map,
                 new BlocksOverTimeSection(context, content), new SpeedSection(context, content),
                 new LoadSection(context, content),           events};
    for (PanelSection* section : sections_)
        column->addWidget(section);
    column->addStretch(1);
    setWidget(content);

    connect(map->map(), &BlockMapWidget::pause_requested, events, &EventsSection::toggle_pause);
    connect(map->map(), &BlockMapWidget::step_requested, events, &EventsSection::step);
    connect(feed_, &PanelFeed::updated, this, [this] { refresh(); });
    connect(theme, &Theme::changed, this, [this] { refresh(); });
    retranslate();
}

void LivePanel::refresh() {
    if (!isVisible()) return;
    for (PanelSection* section : sections_)
        section->refresh();
}

void LivePanel::retranslate() {
    setAccessibleName(tr("Live panel"));
    for (PanelSection* section : sections_)
        section->retranslate();
}

void LivePanel::update_visibility() {
    feed_->set_visible(isVisible() && !window()->isMinimized());
}

void LivePanel::showEvent(QShowEvent* event) {
    QScrollArea::showEvent(event);
    if (watched_window_ != window()) {
        watched_window_ = window();
        watched_window_->installEventFilter(this);
    }
    update_visibility();
    refresh();
}

void LivePanel::hideEvent(QHideEvent* event) {
    QScrollArea::hideEvent(event);
    update_visibility();
}

void LivePanel::changeEvent(QEvent* event) {
    QScrollArea::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) retranslate();
}

bool LivePanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == watched_window_ && event->type() == QEvent::WindowStateChange) update_visibility();
    return QScrollArea::eventFilter(watched, event);
}

}  // namespace recto::ui
