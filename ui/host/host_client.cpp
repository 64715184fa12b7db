#include "ui/host/host_client.h"

#include <QCoreApplication>
#include <QEvent>
#include <QMetaType>

namespace recto::ui {

namespace {

const auto wake_event = static_cast<QEvent::Type>(QEvent::registerEventType());
constexpr int drain_interval_ms = 16;
// How many empty drains until the timer rests: a third of a second, longer than a slow step.
constexpr int drains_before_rest = 20;

}  // namespace

HostClient::HostClient(int number, EngineFactory factory, QObject* parent)
    : QObject(parent),
      host_(std::make_unique<EngineHost>(
          number,
          [this] { QCoreApplication::postEvent(this, new QEvent(wake_event), Qt::HighEventPriority); },
          std::move(factory))) {
    timer_.setInterval(drain_interval_ms);
    timer_.setTimerType(Qt::PreciseTimer);
    connect(&timer_, &QTimer::timeout, this, &HostClient::drain);
}

HostClient::~HostClient() {
    disconnect();  // nobody hears what a dying object says; shutdown() called before has delivered it
    shutdown();
}

QString HostClient::error() const {
    return QString::fromStdString(status_.error);
}

void HostClient::load(ModelRequest request) {
    if (held()) {
        Q_EMIT load_refused(hold_reason_);
        return;
    }
    last_request_ = request;
    host_->load(std::move(request));
}

void HostClient::reload() {
    load(last_request_);
}

void HostClient::hold(const QString& reason) {
    if (hold_reason_ == reason) return;
    hold_reason_ = reason;
    Q_EMIT held_changed();
}

Ticket HostClient::answer(AnswerRequest request) {
    request.ticket = host_->next_ticket();
    const Ticket ticket = request.ticket;
    host_->answer(std::move(request));
    return ticket;
}

Ticket HostClient::count_tokens(const QString& text) {
    return host_->count_tokens(text.toStdString());
}

Ticket HostClient::count_prompt(AnswerRequest request, const QString& next_text) {
    return host_->count_prompt(std::move(request), next_text.toStdString());
}

Ticket HostClient::render(AnswerRequest request) {
    return host_->render(std::move(request));
}

bool HostClient::event(QEvent* e) {
    if (e->type() != wake_event) return QObject::event(e);
    idle_drains_ = 0;
    timer_.start();
    drain();
    return true;
}

void HostClient::drain() {
    const Mailbox::Batch batch = host_->mailbox().take();
    if (batch.empty()) {
        if (++idle_drains_ >= drains_before_rest && host_->mailbox().arm()) timer_.stop();
        return;
    }
    idle_drains_ = 0;
    for (const HostEvent& event : batch.events)
        deliver(event);
    if (batch.pool_events) Q_EMIT pool_events_ready(batch.pool_events);
    if (batch.snapshot) {
        last_snapshot_ = batch.snapshot;
        Q_EMIT snapshot_ready(batch.snapshot);
    }
}

void HostClient::deliver(const HostEvent& event) {
    struct Deliver {
        HostClient& client;
        void operator()(const HostStateChange& e) const {
            client.status_ = e.status;
            if (e.status.state != HostState::ready) client.last_snapshot_ = nullptr;
            Q_EMIT client.state_changed(e.status.state);
            if (e.status.state == HostState::ready && !e.status.error.empty())
                Q_EMIT client.load_refused(client.error());
        }
        void operator()(const LoadProgress& e) const {
            Q_EMIT client.load_progress(QString::fromStdString(e.stage), e.fraction);
        }
        void operator()(const EstimateReport& e) const {
            client.last_estimate_ = std::make_shared<const EstimateReport>(e);
            Q_EMIT client.estimate_ready(client.last_estimate_);
        }
        void operator()(const AnswerStarted& e) const {
            Q_EMIT client.answer_started(e.ticket, std::make_shared<const AnswerStarted>(e));
        }
        void operator()(const AnswerUpdate& e) const {
            Q_EMIT client.answer_updated(e.ticket, std::make_shared<const AnswerUpdate>(e));
        }
        void operator()(const TokenCount& e) const {
            Q_EMIT client.tokens_counted(e.ticket, std::make_shared<const TokenCount>(e));
        }
        void operator()(const RenderedPrompt& e) const {
            Q_EMIT client.prompt_rendered(e.ticket, std::make_shared<const RenderedPrompt>(e));
        }
        void operator()(const BlockDescription& e) const {
            Q_EMIT client.block_described(std::make_shared<const BlockDescription>(e));
        }
        void operator()(const PausedChange& e) const {
            client.paused_ = e.paused;
            Q_EMIT client.paused_changed(e.paused);
        }
    };
    std::visit(Deliver{*this}, event);
}

void HostClient::shutdown() {
    host_->shutdown();
    drain();
    timer_.stop();
}

}  // namespace recto::ui
