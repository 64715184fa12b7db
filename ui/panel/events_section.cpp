#include <QVBoxLayout>

#include "ui/panel/sections.h"

namespace recto::ui {

EventsSection::EventsSection(const PanelContext& context, QWidget* parent) : PanelSection(context, parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme()->palette().metrics.small_gap);
    header_ = new SectionHeader(theme(), this);
    pause_ = new QPushButton(this);
    pause_->setObjectName(QStringLiteral("pause_button"));
    pause_->setCheckable(true);
    step_ = new QPushButton(this);
    step_->setObjectName(QStringLiteral("step_button"));
    for (QPushButton* button : {pause_, step_}) {
        button->setProperty("flat", true);
        button->setMinimumHeight(theme()->palette().metrics.target);
        header_->add_control(button);
    }
    list_ = new EventList(theme(), feed()->events(), this);
    list_->setObjectName(QStringLiteral("event_list"));
    column->addWidget(header_);
    column->addWidget(list_);
    connect(pause_, &QPushButton::clicked, this, [this](bool on) { feed()->host()->set_paused(on); });
    connect(step_, &QPushButton::clicked, this, [this] { step(); });
    connect(feed()->host(), &HostClient::paused_changed, this, [this](bool paused) { show_paused(paused); });
    connect(feed(), &PanelFeed::events_added, this, [this] { list_->refresh(); });
    connect(feed(), &PanelFeed::model_changed, this, [this] { show_paused(feed()->host()->paused()); });
    show_paused(feed()->host()->paused());
}

void EventsSection::toggle_pause() {
    if (feed()->host()->ready()) feed()->host()->set_paused(!feed()->host()->paused());
}

void EventsSection::step() {
    if (!feed()->host()->paused()) return;
    feed()->host()->step();
    feed()->host()->request_snapshot();
}

void EventsSection::show_paused(bool paused) {
    pause_->setChecked(paused);
    pause_->setText(paused ? tr("Resume") : tr("Pause"));
    pause_->setEnabled(feed()->host()->ready());
    step_->setEnabled(paused && feed()->host()->ready());
    list_->refresh();
}

void EventsSection::refresh() {}

void EventsSection::retranslate() {
    header_->set_title(tr("Pool events"));
    step_->setText(tr("Step"));
    step_->setToolTip(tr("One step of the engine (. on the block map)"));
    pause_->setToolTip(tr("Stops all chats between two steps (Space on the block map)"));
    list_->setAccessibleName(tr("Pool events, newest first"));
    show_paused(feed()->host()->paused());
}

}  // namespace recto::ui
