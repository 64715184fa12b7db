#include "ui/models/chat.h"

#include <QDateTime>
#include <QLocale>
#include <algorithm>

#include "ui/models/sampling_json.h"
#include "ui/settings/settings.h"

namespace recto::ui {

namespace {

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
    disconnect(host_held_);
    host_ = host;
    // What the host can do decides whether sending is possible.
    if (host) {
        host_state_ = connect(host, &HostClient::state_changed, this, &Chat::state_changed);
        host_held_ = connect(host, &HostClient::held_changed, this, &Chat::state_changed);
    }
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
    if (host_->held()) return host_->hold_reason();
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

void Chat::show_version(int row, int index) {
    if (row < 0 || row >= message_count()) return;
    const std::vector<MessageId>& all = tree_.versions(message(row).id);
    if (index < 0 || index >= int(all.size())) return;
    const MessageId chosen = all[std::size_t(index)];
    const int first = tree_.show(chosen);
    if (first < 0) return;
    store_->show_child(id(), tree_.at(chosen).parent, chosen);
    record_.shown_root = tree_.shown_root();
    measure_context();
    Q_EMIT path_changed(first);
    count_unloaded();
    load_next_page();
}

}  // namespace recto::ui
