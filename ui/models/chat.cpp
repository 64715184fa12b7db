#include "ui/models/chat.h"

#include <QDateTime>
#include <QLocale>
#include <algorithm>

#include "ui/models/sampling_json.h"
#include "ui/settings/settings.h"

namespace recto::ui {

namespace {

constexpr double speed_window_s = 1.0;

QString finish_text(FinishReason reason) {
    return QLatin1String(finish_reason_name(reason));
}

// The model's own recommendations, where it gives them.
SamplingParams with_defaults_of(const LoadedModelInfo& model, SamplingParams params) {
    const GenerationDefaults& d = model.generation_defaults;
    if (d.temperature >= 0) params.temperature = d.temperature;
    if (d.top_p > 0) params.top_p = d.top_p;
    if (d.top_k >= 0) params.top_k = d.top_k;
    if (d.min_p >= 0) params.min_p = d.min_p;
    if (d.repetition_penalty > 0) params.repetition_penalty = d.repetition_penalty;
    return params;
}

}  // namespace

Chat::Chat(const ChatRecord& record, bool stored, ChatStore* store, Settings* settings, QObject* parent)
    : QObject(parent), record_(record), stored_(stored), store_(store), settings_(settings) {}

Chat::~Chat() = default;

QString Chat::title() const {
    return record_.title.isEmpty() ? tr("New chat") : record_.title;
}

void Chat::set_host(HostClient* host) {
    if (host_ == host) return;
    disconnect(host_state_);
    host_ = host;
    // What the host can do decides whether sending is possible.
    if (host) host_state_ = connect(host, &HostClient::state_changed, this, &Chat::state_changed);
    Q_EMIT state_changed();
}

int Chat::version_index(int row) const {
    return tree_.version(message(row).id);
}
int Chat::version_count(int row) const {
    return int(tree_.versions(message(row).id).size());
}

int Chat::context_limit() const {
    const auto model = host_ ? host_->model() : nullptr;
    return model ? model->max_model_len : 0;
}

QString Chat::state_text() const {
    const QLocale locale;
    switch (state_) {
        case ChatState::idle:
            return tr("idle");
        case ChatState::queued:
            return tr("queued");
        case ChatState::waiting:
            return tr("waiting: %n block(s) short, place %1 in line", nullptr, blocks_missing_)
                .arg(place_in_line_);
        case ChatState::prefill:
            return tr("reading the prompt, %1 %").arg(qRound(prefill_fraction_ * 100));
        case ChatState::generating:
            return speed_ > 0
                       ? tr("generating %1 tok/s").arg(locale.toString(speed_, 'f', speed_ < 10 ? 1 : 0))
                       : tr("generating");
        case ChatState::stopping:
            return tr("stopping");
        case ChatState::failed:
            return tr("failed");
    }
    return {};
}

QString Chat::send_blocked_reason() const {
    if (busy()) return tr("This chat is answering.");
    if (!store_->is_open()) return tr("The chats are not open, so nothing could be kept.");
    if (stored_ && !open_) return tr("This chat is still being read.");
    if (store_->read_only()) return tr("The chats are open for reading only.");
    if (!host_) return tr("No model is loaded.");
    switch (host_->state()) {
        case HostState::ready:
            return {};
        case HostState::loading:
            return tr("The model is being loaded.");
        case HostState::failed:
            return host_->error();
        case HostState::closed:
            return tr("Recto is closing.");
        case HostState::empty:
            break;
    }
    return tr("No model is loaded.");
}

void Chat::set_state(ChatState state) {
    state_ = state;
    if (state != ChatState::generating) speed_ = 0;
    if (state != ChatState::waiting) blocks_missing_ = place_in_line_ = 0;
    Q_EMIT state_changed();
}

// --- records

void Chat::save_record() {
    if (open_) record_.shown_root = tree_.shown_root();
    store_->save_chat(record_);
    stored_ = true;
}

void Chat::rename(const QString& title) {
    record_.title = title.simplified();
    record_.renamed = !record_.title.isEmpty();
    save_record();
    Q_EMIT record_changed();
}

void Chat::set_system_prompt(const QString& text) {
    if (record_.system_prompt == text) return;
    record_.system_prompt = text;
    save_record();
    Q_EMIT record_changed();
}

void Chat::set_sampling(const QJsonObject& sampling) {
    if (record_.sampling == sampling) return;
    record_.sampling = sampling;
    save_record();
    Q_EMIT record_changed();
}

void Chat::set_template(const QString& template_id) {
    if (record_.template_id == template_id) return;
    record_.template_id = template_id;
    save_record();
    Q_EMIT record_changed();
}

void Chat::set_draft(const QString& text) {
    if (record_.draft == text) return;
    record_.draft = text;
    if (stored_)
        store_->save_draft(id(), text);
    else
        save_record();
}

void Chat::put_in_trash() {
    stop();
    record_.trashed_at = QDateTime::currentDateTimeUtc();
    if (stored_) save_record();
    Q_EMIT record_changed();
}

void Chat::restore() {
    record_.trashed_at = {};
    if (stored_) save_record();
    Q_EMIT record_changed();
}

SamplingParams Chat::effective_sampling() const {
    SamplingParams params = chat_sampling_defaults();
    if (const auto model = host_ ? host_->model() : nullptr) params = with_defaults_of(*model, params);
    params = sampling_from_json(settings_->sampling(), params);
    params = sampling_from_json(record_.sampling, params);
    params.n = 1;
    return params;
}

// --- conversations

MessageRecord Chat::new_message(Role role, MessageId parent, const QString& text) const {
    MessageRecord m;
    m.id = store_->take_message_id();
    m.chat = id();
    m.parent = parent;
    m.role = role;
    m.created = QDateTime::currentDateTimeUtc();
    m.content = text;
    m.chars = int(text.size());
    m.loaded = true;
    return m;
}

MessageRecord Chat::new_answer(MessageId parent) const {
    MessageRecord m = new_message(Role::assistant, parent, {});
    m.state = MessageState::streaming;
    m.system_prompt = record_.system_prompt;
    m.template_id = record_.template_id;
    if (const auto model = host_ ? host_->model() : nullptr) {
        m.model_name = QString::fromStdString(model->name);
        m.model_path = QString::fromStdString(model->path.string());
        m.model_hash = QString::fromStdString(model->fingerprint);
    }
    return m;
}

AnswerRequest Chat::conversation_to(MessageId leaf) const {
    AnswerRequest request;
    request.template_id = record_.template_id.toStdString();
    request.owner = owner();
    if (!record_.system_prompt.isEmpty())
        request.messages.push_back({"system", record_.system_prompt.toStdString(), {}});
    std::vector<MessageId> line;
    for (MessageId id = leaf; id != 0; id = tree_.at(id).parent)
        line.push_back(id);
    for (auto at = line.rbegin(); at != line.rend(); ++at) {
        const MessageRecord& m = tree_.at(*at);
        if (m.role == Role::assistant && m.content.isEmpty())
            continue;  // an answer that failed before its first word
        const std::string role = role_name(m.role).toStdString();
        if (m.role == Role::user && !request.messages.empty() && request.messages.back().role == role) {
            // Templates insist on turns: two messages in a row are one turn.
            request.messages.back().content += "\n\n" + m.content.toStdString();
            continue;
        }
        request.messages.push_back({role, m.content.toStdString(), m.token_ids});
    }
    return request;
}

AnswerRequest Chat::conversation() const {
    return conversation_to(tree_.leaf());
}

// --- what a person does

bool Chat::send(const QString& text) {
    if (text.trimmed().isEmpty() || !send_blocked_reason().isEmpty()) return false;
    if (!open_) open();
    const MessageRecord question = new_message(Role::user, tree_.leaf(), text);
    if (record_.title.isEmpty() && !record_.renamed) record_.title = title_from_text(text);
    add_rows({question, new_answer(question.id)}, text);
    return true;
}

bool Chat::regenerate(int row) {
    if (row < 0 || row >= message_count() || !send_blocked_reason().isEmpty()) return false;
    const MessageRecord& m = message(row);
    if (m.role != Role::assistant) return false;
    add_rows({new_answer(m.parent)}, {});
    return true;
}

bool Chat::retry() {
    if (!send_blocked_reason().isEmpty() || tree_.leaf() == 0) return false;
    const MessageRecord& last = tree_.at(tree_.leaf());
    if (last.role == Role::assistant) return regenerate(message_count() - 1);
    add_rows({new_answer(last.id)}, {});
    return true;
}

bool Chat::edit(int row, const QString& text) {
    if (row < 0 || row >= message_count() || text.trimmed().isEmpty() || busy()) return false;
    const MessageRecord old = message(row);
    MessageRecord edited = new_message(old.role, old.parent, text);
    if (old.role == Role::user) {
        if (!send_blocked_reason().isEmpty()) return false;
        add_rows({edited, new_answer(edited.id)}, {});
        return true;
    }
    edited.model_name = old.model_name;
    edited.model_path = old.model_path;
    edited.model_hash = old.model_hash;
    edited.note = tr("Edited by you.");
    add_rows({edited}, {});
    return true;
}

bool Chat::continue_answer() {
    if (!send_blocked_reason().isEmpty() || tree_.leaf() == 0) return false;
    const MessageId last = tree_.leaf();
    MessageRecord& m = tree_.at(last);
    if (m.role != Role::assistant || !m.loaded) return false;
    m.state = MessageState::streaming;
    m.error.clear();
    m.note.clear();
    store_->reopen_message(last);
    Q_EMIT messages_changed(tree_.row(last), tree_.row(last));
    start_answer(last);
    store_->flush(this, [this, last](bool, const QString&) {
        if (answering_ != last) return;
        committing_ = false;
        when_loaded([this, last] { submit(last, true); });
    });
    return true;
}

void Chat::stop() {
    if (!busy() || state_ == ChatState::stopping) return;
    stop_wanted_ = true;
    if (ticket_ != 0 && host_) host_->cancel(ticket_);
    set_state(ChatState::stopping);
}

void Chat::abandon() {
    if (busy()) finish(MessageState::stopped, finish_text(FinishReason::abort), {});
}

void Chat::show_version(int row, int index) {
    if (row < 0 || row >= message_count()) return;
    const std::vector<MessageId>& all = tree_.versions(message(row).id);
    if (index < 0 || index >= int(all.size())) return;
    const MessageId chosen = all[std::size_t(index)];
    const int first = tree_.show(chosen);
    if (first < 0) return;
    store_->show_child(id(), tree_.at(chosen).parent, chosen);
    record_.shown_root = tree_.shown_root();
    Q_EMIT path_changed(first);
    count_unloaded();
    load_next_page();
}

// --- an answer's way: rows on disk → engine → text → done

// Adds the rows to the tree and the store. The last of them, if it is an answer, is then asked for. `typed`
// goes back into the input box if the store refuses.
void Chat::add_rows(const QList<MessageRecord>& rows, const QString& typed) {
    const int rows_before = message_count();
    int changed_from = rows_before;
    for (const MessageRecord& row : rows) {
        changed_from = std::min(changed_from, row.parent == 0 ? 0 : tree_.row(row.parent) + 1);
        tree_.add(row);
        if (changed_from == rows_before) Q_EMIT message_added(message_count() - 1);
    }
    if (changed_from < rows_before) Q_EMIT path_changed(changed_from);
    record_.updated = rows.last().created;
    save_record();
    Q_EMIT record_changed();

    const MessageRecord last = rows.last();
    const bool asks = last.state == MessageState::streaming;
    if (asks) start_answer(last.id);
    store_->add_messages(rows, this, [this, last, asks, typed](bool ok, const QString& error) {
        if (ok && !typed.isEmpty() && record_.draft == typed) set_draft({});
        if (!ok && !typed.isEmpty()) Q_EMIT draft_restored(typed);
        if (!asks || answering_ != last.id) return;
        committing_ = false;
        if (!ok) {
            fail_answer(tr("The message could not be stored, so it was not sent: %1").arg(error));
            return;
        }
        when_loaded([this, answer = last.id] { submit(answer, false); });
    });
}

void Chat::start_answer(MessageId answer) {
    committing_ = true;
    stop_wanted_ = false;
    answering_ = answer;
    request_ = 0;
    timings_ = {};
    recent_.clear();
    last_prefill_ = {0, -1};
    prefill_fraction_ = prefill_speed_ = 0;
    problem_.clear();
    set_state(ChatState::queued);
}

void Chat::submit(MessageId answer, bool continues) {
    if (answering_ != answer) return;  // abandoned while its chat was being read
    if (stop_wanted_) {
        finish(MessageState::stopped, finish_text(FinishReason::abort), {});
        return;
    }
    if (!host_ || !host_->ready()) {
        fail_answer(send_blocked_reason());
        return;
    }
    MessageRecord& m = tree_.at(answer);
    AnswerRequest request = conversation_to(continues ? answer : m.parent);
    request.continue_last = continues;
    try {
        request.sampling = effective_sampling();
    } catch (const Error& e) {
        fail_answer(QString::fromUtf8(e.what()));
        return;
    }
    m.sampling = sampling_to_json(request.sampling);
    answer_signals_ = {connect(host_, &HostClient::answer_started, this,
                               [this](Ticket ticket, std::shared_ptr<const AnswerStarted> started) {
                                   if (ticket == ticket_) on_started(*started);
                               }),
                       connect(host_, &HostClient::answer_updated, this,
                               [this](Ticket ticket, std::shared_ptr<const AnswerUpdate> update) {
                                   if (ticket == ticket_) on_update(*update);
                               })};
    ticket_ = host_->answer(std::move(request));
    Q_EMIT state_changed();
}

void Chat::on_started(const AnswerStarted& started) {
    request_ = started.request;
    context_used_ = started.prompt_tokens;
    template_in_use_ = QString::fromStdString(started.template_id);
    tree_.at(answering_).template_id = template_in_use_;
    Q_EMIT state_changed();
}

void Chat::note_speed(const RequestMetrics& metrics) {
    recent_.emplace_back(metrics.t_last, metrics.output_tokens);
    while (recent_.size() > 2 && recent_.back().first - recent_.front().first > speed_window_s)
        recent_.pop_front();
    const double span = recent_.back().first - recent_.front().first;
    if (span > 0) speed_ = (recent_.back().second - recent_.front().second) / span;
}

void Chat::on_update(const AnswerUpdate& update) {
    MessageRecord& m = tree_.at(answering_);
    const QString text = QString::fromStdString(update.text);
    const int row = tree_.row(answering_);
    if (!text.isEmpty() || !update.token_ids.empty()) {
        m.content += text;
        m.chars = int(m.content.size());
        m.token_ids.insert(m.token_ids.end(), update.token_ids.begin(), update.token_ids.end());
        store_->append_text(answering_, text, update.token_ids);
        if (row >= 0 && !text.isEmpty()) Q_EMIT text_appended(row, text);
    }
    const RequestMetrics& metrics = update.metrics;
    if (metrics.output_tokens > 0) {
        context_used_ = metrics.prompt_tokens + metrics.output_tokens;
        note_speed(metrics);
    }
    if (!update.finished) {
        if (state_ != ChatState::stopping && metrics.output_tokens > 0) set_state(ChatState::generating);
        return;
    }
    if (metrics.prompt_tokens > 0) {
        timings_.valid = true;
        timings_.prompt_tokens = metrics.prompt_tokens;
        timings_.cached_tokens = metrics.cached_tokens;
        timings_.output_tokens = metrics.output_tokens;
        timings_.preemptions = metrics.preemptions;
        timings_.queue_s = std::max(0.0, metrics.queue_s());
        timings_.ttft_s = std::max(0.0, metrics.ttft_s());
        timings_.decode_tok_s = metrics.decode_tok_s();
        timings_.paused_s = metrics.paused_s;
        // Less than a block was computed: a rate over it says nothing.
        const auto model = host_ ? host_->model() : nullptr;
        const int least = model ? model->block_size : 1;
        if (metrics.prompt_tokens - metrics.cached_tokens >= least)
            timings_.prefill_tok_s = metrics.prefill_tok_s();
    }
    MessageState state = MessageState::done;
    if (update.context_full) state = MessageState::context_full;
    if (update.finish == FinishReason::abort) state = MessageState::stopped;
    if (update.finish == FinishReason::error) state = MessageState::failed;
    finish(state, finish_text(update.finish), QString::fromStdString(update.error));
}

void Chat::fail_answer(const QString& sentence) {
    finish(MessageState::failed, finish_text(FinishReason::error), sentence);
}

void Chat::finish(MessageState state, const QString& reason, const QString& error) {
    for (const QMetaObject::Connection& connection : answer_signals_)
        disconnect(connection);
    answer_signals_.clear();
    const MessageId answer = answering_;
    MessageRecord& m = tree_.at(answer);
    m.state = state;
    m.finish_reason = reason;
    m.error = state == MessageState::failed ? error : QString();
    if (timings_.valid) m.timings = timings_;
    store_->finish_message(m);
    ticket_ = 0;
    request_ = 0;
    answering_ = 0;
    committing_ = false;
    blocks_ = 0;
    problem_ = m.error;
    const int row = tree_.row(answer);
    if (row >= 0) Q_EMIT messages_changed(row, row);
    set_state(state == MessageState::failed ? ChatState::failed : ChatState::idle);
    Q_EMIT answer_finished(row);
}

void Chat::take_snapshot(const PoolSnapshot& snapshot) {
    if (request_ == 0 || !host_ || snapshot.host != host_->number()) return;
    const auto& all = snapshot.engine.sequences;
    const auto mine = std::find_if(all.begin(), all.end(),
                                   [this](const SequenceSnapshot& s) { return s.request == request_; });
    if (mine == all.end()) return;
    blocks_ = mine->blocks;
    if (mine->state == SequenceState::prefill && mine->prompt_tokens > 0) {
        prefill_fraction_ = std::min(1.0, double(mine->computed) / mine->prompt_tokens);
        const double time = snapshot.engine.time;
        if (last_prefill_.second >= 0 && time > last_prefill_.first && mine->computed > last_prefill_.second)
            prefill_speed_ = (mine->computed - last_prefill_.second) / (time - last_prefill_.first);
        last_prefill_ = {time, mine->computed};
    }
    if (state_ == ChatState::stopping) return;
    ChatState state = ChatState::generating;
    if (mine->state == SequenceState::prefill) state = ChatState::prefill;
    if (mine->state == SequenceState::waiting || mine->state == SequenceState::preempted)
        state = mine->blocks_missing > 0 ? ChatState::waiting : ChatState::queued;
    if (state == ChatState::waiting) {
        blocks_missing_ = mine->blocks_missing;
        place_in_line_ = mine->queue_position;
    }
    set_state(state);
}

}  // namespace recto::ui
