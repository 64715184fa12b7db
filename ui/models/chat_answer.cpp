// An answer's way: rows on disk → engine → text → done. And what snapshots say about it meanwhile.
#include <algorithm>

#include "ui/models/chat.h"
#include "ui/models/sampling_json.h"

namespace recto::ui {

namespace {

constexpr double speed_window_s = 1.0;

QString finish_text(FinishReason reason) {
    return QLatin1String(finish_reason_name(reason));
}

}  // namespace

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

void Chat::abandon() {
    if (busy()) finish(MessageState::stopped, finish_text(FinishReason::abort), {});
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
    if (mine->state == SequenceState::waiting || mine->state == SequenceState::preempted ||
        mine->state == SequenceState::swapped)
        state = mine->blocks_missing > 0 ? ChatState::waiting : ChatState::queued;
    if (state == ChatState::waiting) {
        blocks_missing_ = mine->blocks_missing;
        place_in_line_ = mine->queue_position;
    }
    set_state(state);
}

}  // namespace recto::ui
