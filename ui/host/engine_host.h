// One engine on its own thread. Commands go in through a queue, results come out through the mailbox. Plain
// C++. Hosts share nothing: several live in one process.
//
// Every method may be called from any thread and returns at once (shutdown waits). Whatever goes wrong on the
// engine's thread arrives as one sentence: in HostStatus for loads and a lost device, in AnswerUpdate for
// answers.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "ui/host/host_types.h"
#include "ui/host/mailbox.h"

namespace recto::ui {

// A model ready to answer. Members are freed in reverse order: the engine before what it looks at.
struct LoadedEngine {
    std::shared_ptr<const Model> model;  // null in tests that drive a stand-in
    std::shared_ptr<const Tokenizer> tokenizer;
    std::shared_ptr<const ChatTemplate> chat_template;  // the model's own; null: it has none, or a broken one
    std::function<const ChatTemplate*(const std::string& name)>
        find_template;  // known ones; null: no such name
    LoadedModelInfo info;
    std::unique_ptr<Engine> engine;
};

// How a host comes by an engine. Both functions run on the engine's thread and throw recto::Error.
struct EngineFactory {
    std::function<EstimateReport(const ModelRequest&)> estimate;
    std::function<LoadedEngine(const ModelRequest&, const std::function<void(const LoadProgress&)>& progress,
                               const CancelFlag& cancel)>
        load;
};
EngineFactory real_engine_factory();  // opens model files, chooses a backend

class EngineHost {
  public:
    // `wake`: see Mailbox.
    EngineHost(int number, std::function<void()> wake, EngineFactory factory = real_engine_factory());
    ~EngineHost();  // shutdown()
    EngineHost(const EngineHost&) = delete;
    EngineHost& operator=(const EngineHost&) = delete;

    int number() const { return number_; }
    Mailbox& mailbox() { return mailbox_; }
    HostStatus status() const;

    Ticket estimate(ModelRequest request);  // → EstimateReport
    // The model loaded now is ejected first, unless the new one's headers are bad: then it stays, and
    // HostStatus says ready with an error. Answers in flight are stopped and keep their text. → LoadProgress
    // …, then HostStateChange to ready or failed. A cancelled load ends as empty.
    void load(ModelRequest request);
    void cancel_load();  // at once, also while the thread is deep inside a file
    void eject();

    void answer(AnswerRequest
                    request);  // ticket chosen by the caller (next_ticket()) → AnswerStarted, AnswerUpdate …
    void cancel(Ticket ticket);             // within one step; the blocks are back by then
    Ticket count_tokens(std::string text);  // → TokenCount
    Ticket count_prompt(AnswerRequest request, std::string next_text);  // → TokenCount with prompt_tokens
    Ticket render(AnswerRequest request);                               // → RenderedPrompt

    void set_paused(bool paused);      // no step is taken while paused → PausedChange
    void step(int n = 1);              // while paused: n steps
    void set_fixed_chunk(int tokens);  // 0: chunks by time again
    void describe_block(BlockId id);   // → BlockDescription
    void request_snapshot();           // one, as soon as the step in flight ends; requests meanwhile are one
    void watch_pool_events(bool on);

    // Stop accepting, cancel a load and all answers (their last text still reaches the mailbox), free the
    // engine, join. Nothing is posted afterwards. Idempotent.
    void shutdown();

    Ticket next_ticket();

  private:
    struct Worker;
    using Command = std::function<void(Worker&)>;
    void enqueue(Command command);
    void run();

    const int number_;
    Mailbox mailbox_;
    const EngineFactory factory_;
    mutable std::mutex mutex_;
    std::condition_variable work_;
    std::deque<Command> commands_;  // guarded by mutex_
    HostStatus status_;             // guarded by mutex_
    CancelFlag load_cancel_;        // guarded by mutex_; of the load in flight or queued last
    bool accepting_ = true;         // guarded by mutex_
    std::atomic<std::uint32_t> last_ticket_{0};
    std::atomic<bool> snapshot_wanted_{false};
    std::atomic<bool> pool_events_wanted_{false};
    std::atomic<bool> closing_{false};
    std::mutex join_mutex_;
    std::thread thread_;
};

}  // namespace recto::ui
