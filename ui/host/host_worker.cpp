#include "ui/host/host_worker.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "ui/host/prompt_builder.h"

namespace recto::ui {

std::pair<std::string, ErrorKind> describe_current_exception() {
    try {
        throw;
    } catch (const Error& e) {
        return {e.what(), e.kind()};
    } catch (const std::bad_alloc&) {
        return {
            "There is not enough memory: close other programs, or choose a smaller model or fewer KV blocks.",
            ErrorKind::memory};
    } catch (const std::exception& e) {
        return {std::string("The engine stopped: ") + e.what() + ". Reload the model.", ErrorKind::runtime};
    }
}

void EngineHost::Worker::set_status(HostStatus status) {
    {
        const std::lock_guard lock(host_.mutex_);
        host_.status_ = status;
    }
    host_.mailbox_.post(HostStateChange{std::move(status)});
}

const LoadedEngine& EngineHost::Worker::ready() const {
    if (!loaded_) throw Error(ErrorKind::runtime, "No model is loaded: load one to go on.");
    return *loaded_;
}

void EngineHost::Worker::estimate(Ticket ticket, const ModelRequest& request) {
    EstimateReport report;
    try {
        report = host_.factory_.estimate(request);
        if (loaded_)
            report.returned_bytes =
                loaded_->info.weight_bytes + loaded_->info.workspace_bytes + loaded_->info.kv_bytes;
    } catch (...) {
        std::tie(report.error, report.error_kind) = describe_current_exception();
    }
    report.ticket = ticket;
    report.request = request;
    host_.mailbox_.post(std::move(report));
}

void EngineHost::Worker::load(const ModelRequest& request, const CancelFlag& cancel) {
    HostStatus outcome;
    try {
        // A file whose headers are bad costs nothing: the model loaded now stays.
        if (loaded_) host_.factory_.estimate(request);
    } catch (...) {
        std::tie(outcome.error, outcome.error_kind) = describe_current_exception();
        outcome.state = HostState::ready;
        outcome.model = std::make_shared<const LoadedModelInfo>(loaded_->info);
        set_status(std::move(outcome));
        return;
    }
    cancel_all();
    loaded_.reset();
    set_status({.state = HostState::loading});
    try {
        if (*cancel) throw Error(ErrorKind::cancelled, "Loading was cancelled.");
        auto loaded = std::make_unique<LoadedEngine>(host_.factory_.load(
            request, [this](const LoadProgress& progress) { host_.mailbox_.post(progress); }, cancel));
        if (*cancel) throw Error(ErrorKind::cancelled, "Loading was cancelled.");
        loaded_ = std::move(loaded);
        if (fixed_chunk_ > 0) loaded_->engine->set_fixed_chunk(fixed_chunk_);
        outcome.state = HostState::ready;
        outcome.model = std::make_shared<const LoadedModelInfo>(loaded_->info);
    } catch (...) {
        std::tie(outcome.error, outcome.error_kind) = describe_current_exception();
        outcome.state = outcome.error_kind == ErrorKind::cancelled ? HostState::empty : HostState::failed;
    }
    set_status(std::move(outcome));
}

void EngineHost::Worker::eject() {
    cancel_all();
    loaded_.reset();
    set_status({.state = HostState::empty});
}

const ChatTemplate& EngineHost::Worker::choose_template(const std::string& wanted, std::string& used) {
    const LoadedEngine& loaded = ready();
    used = wanted.empty() ? loaded.info.template_id : wanted;
    if (used == "model" && loaded.chat_template) return *loaded.chat_template;
    if (used.empty() || used == "model") {
        const std::string& why = loaded.info.template_error;
        throw Error(ErrorKind::input, why.empty()
                                          ? "The model brings no chat template: choose one for this chat."
                                          : "The model's chat template cannot be used: " + why +
                                                " Choose a known template for this chat.");
    }
    const ChatTemplate* known = loaded.find_template ? loaded.find_template(used) : nullptr;
    if (!known) throw Error(ErrorKind::argument, "There is no chat template named \"" + used + "\".");
    return *known;
}

void EngineHost::Worker::refuse(Ticket ticket, const std::string& sentence, ErrorKind kind) {
    AnswerUpdate update;
    update.ticket = ticket;
    update.finished = true;
    update.refused = true;
    update.finish = kind == ErrorKind::cancelled ? FinishReason::abort : FinishReason::error;
    update.error = sentence;
    update.error_kind = kind;
    host_.mailbox_.post(std::move(update));
}

void EngineHost::Worker::answer(const AnswerRequest& request) {
    try {
        if (host_.closing_) throw Error(ErrorKind::cancelled, "Recto is closing.");
        const LoadedEngine& loaded = ready();
        if (!loaded.tokenizer)
            throw Error(ErrorKind::input, "The model brings no tokenizer, so it cannot chat.");
        AnswerStarted started;
        started.ticket = request.ticket;
        const ChatTemplate& chat_template = choose_template(request.template_id, started.template_id);
        BuiltPrompt prompt = build_prompt(request, *loaded.tokenizer, chat_template);
        started.prompt_tokens = int(prompt.ids.size());
        started.spliced_tokens = prompt.spliced_tokens;
        started.max_model_len = loaded.engine->max_model_len();
        started.prompt_ids = std::make_shared<const std::vector<std::int32_t>>(prompt.ids);

        Request engine_request;
        engine_request.prompt = std::move(prompt.ids);
        engine_request.sampling = request.sampling;
        engine_request.owner = request.owner;
        engine_request.priority = request.priority;
        started.request = loaded.engine->submit(std::move(engine_request));
        answers_[started.request] = {request.ticket, started.prompt_tokens};
        requests_[request.ticket] = started.request;
        host_.mailbox_.post(std::move(started));
    } catch (...) {
        const auto [sentence, kind] = describe_current_exception();
        refuse(request.ticket, sentence, kind);
    }
}

void EngineHost::Worker::cancel(Ticket ticket) {
    const auto found = requests_.find(ticket);
    if (found == requests_.end() || !loaded_) return;
    const RequestId request = found->second;
    loaded_->engine->cancel(request);
    deliver_pool_events();
    if (!paused_) return;  // the next step reports it
    // Paused, no step will come for who knows how long: the person's stop must not wait for it.
    requests_.erase(found);
    answers_.erase(request);
    AnswerUpdate update;
    update.ticket = ticket;
    update.finished = true;
    update.finish = FinishReason::abort;
    host_.mailbox_.post(std::move(update));
}

void EngineHost::Worker::cancel_all() {
    if (!loaded_) return;
    for (const auto& [request, answer] : answers_)
        loaded_->engine->cancel(request);
    try {
        if (loaded_->engine->has_work())
            for (RequestEvent& event : loaded_->engine->step())
                deliver(std::move(event));
    } catch (...) {
        const auto [sentence, kind] = describe_current_exception();
        lose_engine(sentence, kind);
        return;
    }
    for (const auto& [request, answer] : answers_) {  // whatever the engine did not report
        AnswerUpdate update;
        update.ticket = answer.ticket;
        update.finished = true;
        update.finish = FinishReason::abort;
        host_.mailbox_.post(std::move(update));
    }
    answers_.clear();
    requests_.clear();
}

void EngineHost::Worker::lose_engine(const std::string& sentence, ErrorKind kind) {
    for (const auto& [request, answer] : answers_) {
        AnswerUpdate update;
        update.ticket = answer.ticket;
        update.finished = true;
        update.finish = FinishReason::error;
        update.error = sentence;
        update.error_kind = kind;
        host_.mailbox_.post(std::move(update));
    }
    answers_.clear();
    requests_.clear();
    loaded_.reset();
    set_status({.state = HostState::failed, .error = sentence, .error_kind = kind});
}

void EngineHost::Worker::deliver(RequestEvent&& event) {
    const auto found = answers_.find(event.request);
    if (found == answers_.end()) return;  // stopped while paused: already told
    const Answer answer = found->second;
    AnswerUpdate update;
    update.ticket = answer.ticket;
    update.text = std::move(event.text);
    update.token_ids = std::move(event.token_ids);
    update.finished = event.request_finished;
    update.finish = event.finish;
    update.stop_string = std::move(event.stop_string);
    update.error = std::move(event.error);
    update.metrics = std::move(event.metrics);
    if (!update.finished) update.metrics.token_times.clear();
    update.context_full =
        update.finish == FinishReason::length &&
        answer.prompt_tokens + update.metrics.output_tokens >= loaded_->engine->max_model_len();
    if (update.finished) {
        requests_.erase(answer.ticket);
        answers_.erase(found);
    }
    host_.mailbox_.post(std::move(update));
}

void EngineHost::Worker::deliver_pool_events() {
    if (loaded_ && host_.pool_events_wanted_)
        host_.mailbox_.post_pool_events(loaded_->engine->take_pool_events());
}

bool EngineHost::Worker::can_step() const {
    return loaded_ && (!paused_ || steps_allowed_ > 0) && loaded_->engine->has_work();
}

void EngineHost::Worker::step() {
    if (!can_step()) return;
    if (paused_) --steps_allowed_;
    try {
        for (RequestEvent& event : loaded_->engine->step())
            deliver(std::move(event));
        deliver_pool_events();
    } catch (...) {
        const auto [sentence, kind] = describe_current_exception();
        lose_engine(sentence, kind);
    }
}

void EngineHost::Worker::set_paused(bool paused) {
    paused_ = paused;
    steps_allowed_ = 0;
    host_.mailbox_.post(PausedChange{paused});
}

void EngineHost::Worker::set_fixed_chunk(int tokens) {
    fixed_chunk_ = tokens;
    if (loaded_) loaded_->engine->set_fixed_chunk(tokens);
}

void EngineHost::Worker::count(Ticket ticket, const std::string& text, const AnswerRequest* conversation) {
    TokenCount count;
    count.ticket = ticket;
    try {
        const LoadedEngine& loaded = ready();
        if (!loaded.tokenizer)
            throw Error(ErrorKind::input, "The model brings no tokenizer, so it cannot chat.");
        count.tokens = int(loaded.tokenizer->encode(text, {.add_bos = false}).size());
        if (conversation) {
            AnswerRequest next = *conversation;
            next.continue_last = false;
            next.messages.push_back({"user", text, {}});
            std::string used;
            const ChatTemplate& chat_template = choose_template(next.template_id, used);
            count.prompt_tokens = int(build_prompt(next, *loaded.tokenizer, chat_template).ids.size());
        }
    } catch (...) {
        count.error = describe_current_exception().first;
    }
    host_.mailbox_.post(std::move(count));
}

void EngineHost::Worker::render(const AnswerRequest& request) {
    RenderedPrompt rendered;
    rendered.ticket = request.ticket;
    try {
        const LoadedEngine& loaded = ready();
        if (!loaded.tokenizer)
            throw Error(ErrorKind::input, "The model brings no tokenizer, so it cannot chat.");
        const ChatTemplate& chat_template = choose_template(request.template_id, rendered.template_id);
        BuiltPrompt prompt = build_prompt(request, *loaded.tokenizer, chat_template);
        rendered.text = std::move(prompt.text);
        rendered.ids = std::move(prompt.ids);
    } catch (...) {
        rendered.error = describe_current_exception().first;
    }
    host_.mailbox_.post(std::move(rendered));
}

void EngineHost::Worker::describe_block(BlockId id) {
    if (!loaded_ || id < 0 || id >= loaded_->engine->kv_blocks()) return;  // ejected since it was drawn
    BlockDescription description;
    description.detail = loaded_->engine->describe_block(id);
    if (loaded_->tokenizer) {
        for (const std::int32_t token : description.detail.tokens)
            description.token_texts.push_back(
                decode(*loaded_->tokenizer, {&token, 1}, {.skip_special = false}));
    }
    host_.mailbox_.post(std::move(description));
}

void EngineHost::Worker::post_snapshot() {
    if (!loaded_) return;
    const auto start = std::chrono::steady_clock::now();
    auto snapshot = std::make_shared<PoolSnapshot>();
    snapshot->engine = loaded_->engine->snapshot();
    snapshot->cost_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    snapshot_cost_s_ += snapshot->cost_s;
    snapshot->cost_total_s = snapshot_cost_s_;
    snapshot->host = host_.number_;
    snapshot->paused = paused_;
    host_.mailbox_.post_snapshot(std::move(snapshot));
}

void EngineHost::Worker::close() {
    cancel_all();
    loaded_.reset();
    set_status({.state = HostState::closed});
}

}  // namespace recto::ui
