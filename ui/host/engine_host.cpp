#include "ui/host/engine_host.h"

#include <utility>

#include "ui/host/host_worker.h"

namespace recto::ui {

EngineHost::EngineHost(int number, std::function<void()> wake, EngineFactory factory)
    : number_(number), mailbox_(std::move(wake)), factory_(std::move(factory)), thread_([this] { run(); }) {}

EngineHost::~EngineHost() {
    shutdown();
}

Ticket EngineHost::next_ticket() {
    return (Ticket(number_) << 32) | ++last_ticket_;  // unique across hosts
}

HostStatus EngineHost::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

void EngineHost::enqueue(Command command) {
    {
        const std::lock_guard lock(mutex_);
        if (!accepting_) return;
        commands_.push_back(std::move(command));
    }
    work_.notify_one();
}

void EngineHost::run() {
    Worker worker(*this);
    while (!closing_) {
        std::deque<Command> commands;
        {
            std::unique_lock lock(mutex_);
            work_.wait(lock, [&] {
                return closing_ || !commands_.empty() || snapshot_wanted_ || worker.can_step();
            });
            commands.swap(commands_);
        }
        for (const Command& command : commands)
            command(worker);
        worker.step();
        if (snapshot_wanted_.exchange(false)) worker.post_snapshot();
    }
    std::deque<Command> rest;
    {
        const std::lock_guard lock(mutex_);
        rest.swap(commands_);
    }
    for (const Command& command : rest)
        command(worker);  // answers among them are told that it is over
    worker.close();
}

Ticket EngineHost::estimate(ModelRequest request) {
    const Ticket ticket = next_ticket();
    enqueue([ticket, request = std::move(request)](Worker& w) { w.estimate(ticket, request); });
    return ticket;
}

void EngineHost::load(ModelRequest request) {
    auto cancel = std::make_shared<std::atomic<bool>>(false);
    {
        const std::lock_guard lock(mutex_);
        if (load_cancel_) *load_cancel_ = true;  // the newest wish counts
        load_cancel_ = cancel;
    }
    enqueue([cancel, request = std::move(request)](Worker& w) { w.load(request, cancel); });
}

void EngineHost::cancel_load() {
    const std::lock_guard lock(mutex_);
    if (load_cancel_) *load_cancel_ = true;
}

void EngineHost::eject() {
    cancel_load();
    enqueue([](Worker& w) { w.eject(); });
}

void EngineHost::answer(AnswerRequest request) {
    enqueue([request = std::move(request)](Worker& w) { w.answer(request); });
}

void EngineHost::cancel(Ticket ticket) {
    enqueue([ticket](Worker& w) { w.cancel(ticket); });
}

Ticket EngineHost::count_tokens(std::string text) {
    const Ticket ticket = next_ticket();
    enqueue([ticket, text = std::move(text)](Worker& w) { w.count(ticket, text, nullptr); });
    return ticket;
}

Ticket EngineHost::count_prompt(AnswerRequest request, std::string next_text) {
    const Ticket ticket = next_ticket();
    enqueue([ticket, request = std::move(request), text = std::move(next_text)](Worker& w) {
        w.count(ticket, text, &request);
    });
    return ticket;
}

Ticket EngineHost::render(AnswerRequest request) {
    request.ticket = next_ticket();
    const Ticket ticket = request.ticket;
    enqueue([request = std::move(request)](Worker& w) { w.render(request); });
    return ticket;
}

void EngineHost::set_paused(bool paused) {
    enqueue([paused](Worker& w) { w.set_paused(paused); });
}

void EngineHost::step(int n) {
    enqueue([n](Worker& w) { w.allow_steps(n); });
}

void EngineHost::set_fixed_chunk(int tokens) {
    enqueue([tokens](Worker& w) { w.set_fixed_chunk(tokens); });
}

void EngineHost::describe_block(BlockId id) {
    enqueue([id](Worker& w) { w.describe_block(id); });
}

void EngineHost::request_snapshot() {
    {
        const std::lock_guard lock(mutex_);  // or the wait below could miss it
        snapshot_wanted_ = true;
    }
    work_.notify_one();
}

void EngineHost::watch_pool_events(bool on) {
    pool_events_wanted_ = on;
}

void EngineHost::shutdown() {
    {
        const std::lock_guard lock(mutex_);
        accepting_ = false;
        closing_ = true;
        if (load_cancel_) *load_cancel_ = true;
    }
    work_.notify_one();
    const std::lock_guard join(join_mutex_);
    if (thread_.joinable()) thread_.join();
}

}  // namespace recto::ui
