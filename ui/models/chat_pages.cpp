// How a chat comes from the store: skeletons at once, contents in pages from the end.
#include <algorithm>

#include "ui/models/chat.h"

namespace recto::ui {

namespace {

constexpr int first_page = 32;  // messages: more than a screen shows
constexpr int later_page = 128;

}  // namespace

void Chat::open() {
    if (open_ || opening_) return;
    if (!stored_) {
        open_ = true;
        Q_EMIT opened();
        return;
    }
    opening_ = true;
    store_->load_chat(id(), first_page, this,
                      [this](std::shared_ptr<const ChatContents> contents, const QString& error) {
                          opening_ = false;
                          if (contents) {
                              take_chat(*contents);
                          } else {
                              problem_ = error;
                              set_state(ChatState::failed);
                          }
                      });
}

void Chat::take_chat(const ChatContents& contents) {
    tree_.reset(contents.messages, record_.shown_root);
    open_ = true;
    count_unloaded();
    measure_context();
    Q_EMIT opened();
    load_next_page();
}

// What the answer at the end of the shown path had in its context when it was written.
void Chat::measure_context() {
    if (busy() || tree_.path().empty()) return;
    const AnswerTimings& last = tree_.at(tree_.leaf()).timings;
    context_used_ = last.prompt_tokens + last.output_tokens;
}

void Chat::count_unloaded() {
    unloaded_ = int(std::count_if(tree_.path().begin(), tree_.path().end(),
                                  [this](MessageId id) { return !tree_.at(id).loaded; }));
    if (unloaded_ > 0) return;
    const auto waiting = std::exchange(waiting_for_load_, {});
    for (const auto& then : waiting)
        then();
}

void Chat::request_page(const QList<MessageId>& ids) {
    if (ids.isEmpty()) return;
    requested_.insert(ids.begin(), ids.end());
    store_->load_messages(
        id(), ids, this,
        [this, ids](std::shared_ptr<const QList<MessageRecord>> messages, const QString& error) {
            take_page(ids, messages ? *messages : QList<MessageRecord>(), error);
        });
}

void Chat::load_next_page() {
    if (!requested_.empty() || unloaded_ == 0) return;
    QList<MessageId> ids;
    const auto& path = tree_.path();
    for (auto at = path.rbegin(); at != path.rend() && ids.size() < later_page; ++at)
        if (!tree_.at(*at).loaded) ids.append(*at);
    request_page(ids);
}

void Chat::ensure_loaded(int first_row, int last_row) {
    QList<MessageId> ids;
    for (int row = std::max(0, first_row); row <= std::min(last_row, message_count() - 1); ++row) {
        const MessageId id = tree_.path()[std::size_t(row)];
        if (!tree_.at(id).loaded && requested_.count(id) == 0) ids.append(id);
    }
    request_page(ids);
}

void Chat::take_page(const QList<MessageId>& asked, const QList<MessageRecord>& messages,
                     const QString& error) {
    for (const MessageRecord& message : messages) {
        MessageRecord& mine = tree_.at(message.id);
        if (mine.loaded) continue;  // it came with another page, or has grown since
        const MessageRecord skeleton = mine;
        mine = message;
        mine.shown_child = skeleton.shown_child;
        mine.parent = skeleton.parent;
        if (!skeleton.note.isEmpty()) mine.note = skeleton.note;
    }
    int first = message_count(), last = -1;
    for (const MessageId id : asked) {
        requested_.erase(id);
        MessageRecord& mine = tree_.at(id);
        if (!mine.loaded) {
            mine.loaded = true;
            mine.note = error.isEmpty() ? tr("This message could not be read.") : error;
        }
        const int row = tree_.row(id);
        if (row < 0) continue;
        first = std::min(first, row);
        last = std::max(last, row);
    }
    if (last >= 0) Q_EMIT messages_changed(first, last);
    count_unloaded();
    load_next_page();
}

void Chat::when_loaded(std::function<void()> then) {
    if (is_loaded()) {
        then();
        return;
    }
    waiting_for_load_.push_back(std::move(then));
    load_next_page();
}

}  // namespace recto::ui
