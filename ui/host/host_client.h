// The GUI thread's end of an EngineHost. Drains the mailbox by one 16 ms timer while something happens, and
// turns it into signals: at most one a drain for each answer, never one a token. Lives on the GUI thread.
#pragma once
#include <QObject>
#include <QTimer>
#include <memory>

#include "ui/host/engine_host.h"

namespace recto::ui {

class HostClient : public QObject {
    Q_OBJECT
  public:
    explicit HostClient(int number, EngineFactory factory = real_engine_factory(), QObject* parent = nullptr);
    ~HostClient() override;  // shutdown()

    int number() const { return host_->number(); }
    HostState state() const { return status_.state; }
    bool ready() const { return status_.state == HostState::ready; }
    const HostStatus& status() const { return status_; }                            // as last drained
    std::shared_ptr<const LoadedModelInfo> model() const { return status_.model; }  // null unless ready
    std::shared_ptr<const PoolSnapshot> last_snapshot() const {
        return last_snapshot_;
    }  // null before the first
    std::shared_ptr<const EstimateReport> last_estimate() const { return last_estimate_; }
    QString error() const;
    bool paused() const { return paused_; }
    bool draining() const { return timer_.isActive(); }

    Ticket estimate(ModelRequest request) { return host_->estimate(std::move(request)); }
    void load(ModelRequest request);  // held: load_refused with the reason
    void reload();                    // the last request again
    const ModelRequest& last_request() const { return last_request_; }
    void cancel_load() { host_->cancel_load(); }
    void eject() { host_->eject(); }

    Ticket answer(AnswerRequest request);  // fills in the ticket
    void cancel(Ticket ticket) { host_->cancel(ticket); }
    Ticket count_tokens(const QString& text);
    Ticket count_prompt(AnswerRequest request, const QString& next_text);
    Ticket render(AnswerRequest request);

    void set_paused(bool paused) { host_->set_paused(paused); }
    void step(int n = 1) { host_->step(n); }
    void set_fixed_chunk(int tokens) { host_->set_fixed_chunk(tokens); }
    void describe_block(BlockId id) { host_->describe_block(id); }
    void request_snapshot() { host_->request_snapshot(); }
    void watch_pool_events(bool on) { host_->watch_pool_events(on); }

    // Held: something else measures on this machine, and the engine must not compute. Chats ask before they
    // send and say `reason`, one sentence; nothing is loaded. Empty: free again. Ejecting stays possible.
    void hold(const QString& reason);
    bool held() const { return !hold_reason_.isEmpty(); }
    const QString& hold_reason() const { return hold_reason_; }

    // Joins the engine's thread and delivers what it posted last. Idempotent.
    void shutdown();

  Q_SIGNALS:
    void load_refused(const QString& sentence);  // the file is bad, or held; the model loaded before stays
    void held_changed();
    void state_changed(recto::ui::HostState state);             // also: model loaded, ejected
    void load_progress(const QString& stage, double fraction);  // 0 … 1 of the whole load
    void estimate_ready(std::shared_ptr<const recto::ui::EstimateReport> report);
    void answer_started(recto::ui::Ticket ticket, std::shared_ptr<const recto::ui::AnswerStarted> started);
    void answer_updated(recto::ui::Ticket ticket, std::shared_ptr<const recto::ui::AnswerUpdate> update);
    void tokens_counted(recto::ui::Ticket ticket, std::shared_ptr<const recto::ui::TokenCount> count);
    void prompt_rendered(recto::ui::Ticket ticket, std::shared_ptr<const recto::ui::RenderedPrompt> prompt);
    void block_described(std::shared_ptr<const recto::ui::BlockDescription> description);
    void snapshot_ready(std::shared_ptr<const recto::ui::PoolSnapshot> snapshot);
    void pool_events_ready(std::shared_ptr<const recto::ui::PoolEventBatch> batch);
    void paused_changed(bool paused);

  protected:
    bool event(QEvent* e) override;  // the mailbox's wake event

  private:
    void drain();
    void deliver(const HostEvent& event);
    std::unique_ptr<EngineHost> host_;
    QTimer timer_;
    HostStatus status_;
    ModelRequest last_request_;
    std::shared_ptr<const PoolSnapshot> last_snapshot_;
    std::shared_ptr<const EstimateReport> last_estimate_;
    bool paused_ = false;
    QString hold_reason_;
    int idle_drains_ = 0;
};

}  // namespace recto::ui
