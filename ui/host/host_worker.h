// What runs on an engine's thread: owns the engine, carries out commands between steps. Part of EngineHost.
#pragma once
#include <string>
#include <unordered_map>

#include "ui/host/engine_host.h"

namespace recto::ui {

struct EngineHost::Worker {
    explicit Worker(EngineHost& host) : host_(host) {}

    void estimate(Ticket ticket, const ModelRequest& request);
    void load(const ModelRequest& request, const CancelFlag& cancel);
    void eject();
    void answer(const AnswerRequest& request);
    void cancel(Ticket ticket);
    void count(Ticket ticket, const std::string& text, const AnswerRequest* conversation);
    void render(const AnswerRequest& request);
    void set_paused(bool paused);
    void allow_steps(int n) { steps_allowed_ += paused_ ? n : 0; }
    void set_fixed_chunk(int tokens);
    void describe_block(BlockId id);

    bool can_step() const;
    void step();  // one, if there is work and it is allowed
    void post_snapshot();
    void close();  // cancels everything and frees the engine

  private:
    struct Answer {
        Ticket ticket = 0;
        int prompt_tokens = 0;
    };
    void deliver(RequestEvent&& event);
    void deliver_pool_events();
    void cancel_all();
    // Everything in flight ends with this sentence; the engine is gone.
    void lose_engine(const std::string& sentence, ErrorKind kind);
    void refuse(Ticket ticket, const std::string& sentence, ErrorKind kind);
    void set_status(HostStatus status);
    const ChatTemplate& choose_template(const std::string& wanted, std::string& used);
    const LoadedEngine& ready() const;  // Error(runtime) when no model is loaded

    EngineHost& host_;
    std::unique_ptr<LoadedEngine> loaded_;
    std::unordered_map<RequestId, Answer> answers_;
    std::unordered_map<Ticket, RequestId> requests_;
    bool paused_ = false;
    int steps_allowed_ = 0;
    int fixed_chunk_ = 0;
    double snapshot_cost_s_ = 0;
};

// One sentence for whatever was thrown, and its kind. Call inside a catch block.
std::pair<std::string, ErrorKind> describe_current_exception();

}  // namespace recto::ui
