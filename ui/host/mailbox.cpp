#include "ui/host/mailbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace recto::ui {

namespace {

void merge(AnswerUpdate& into, AnswerUpdate&& next) {
    into.text += next.text;
    into.token_ids.insert(into.token_ids.end(), next.token_ids.begin(), next.token_ids.end());
    next.text = std::move(into.text);
    next.token_ids = std::move(into.token_ids);
    into = std::move(next);
}

}  // namespace

Mailbox::Mailbox(std::function<void()> wake, std::size_t pool_event_limit)
    : wake_(std::move(wake)), pool_event_limit_(pool_event_limit) {}

bool Mailbox::empty_locked() const {
    return events_.empty() && !snapshot_ && !pool_events_;
}

void Mailbox::notify(std::unique_lock<std::mutex>& lock) {
    if (!armed_) return;
    armed_ = false;
    lock.unlock();
    wake_();
}

void Mailbox::post(HostEvent event) {
    std::unique_lock lock(mutex_);
    if (auto* update = std::get_if<AnswerUpdate>(&event)) {
        const Ticket ticket = update->ticket;
        const auto open = open_update_.find(ticket);
        if (open != open_update_.end()) {
            merge(std::get<AnswerUpdate>(events_[open->second]), std::move(*update));
        } else {
            open_update_.emplace(ticket, events_.size());
            events_.push_back(std::move(event));
        }
    } else if (std::holds_alternative<LoadProgress>(event) && !events_.empty() &&
               std::holds_alternative<LoadProgress>(events_.back())) {
        events_.back() = std::move(event);
    } else {
        events_.push_back(std::move(event));
    }
    notify(lock);
}

void Mailbox::post_snapshot(std::shared_ptr<const PoolSnapshot> snapshot) {
    std::unique_lock lock(mutex_);
    snapshot_ = std::move(snapshot);
    notify(lock);
}

void Mailbox::post_pool_events(std::vector<PoolEvent> events, std::uint64_t dropped_before) {
    if (events.empty() && dropped_before == 0) return;
    std::unique_lock lock(mutex_);
    if (!pool_events_) pool_events_ = std::make_shared<PoolEventBatch>();
    auto& kept = pool_events_->events;
    kept.insert(kept.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
    pool_events_->dropped += dropped_before;
    if (kept.size() > pool_event_limit_) {
        const std::size_t excess = kept.size() - pool_event_limit_;
        kept.erase(kept.begin(), kept.begin() + std::ptrdiff_t(excess));
        pool_events_->dropped += excess;
    }
    notify(lock);
}

Mailbox::Batch Mailbox::take() {
    const std::lock_guard lock(mutex_);
    open_update_.clear();
    Batch batch;
    batch.events = std::exchange(events_, {});
    batch.snapshot = std::exchange(snapshot_, nullptr);
    batch.pool_events = std::exchange(pool_events_, nullptr);
    return batch;
}

bool Mailbox::arm() {
    const std::lock_guard lock(mutex_);
    if (!empty_locked()) return false;
    armed_ = true;
    return true;
}

}  // namespace recto::ui
