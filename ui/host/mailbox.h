// From an engine's thread to the window: a lossless event queue, coalesced per answer, and a snapshot of
// which only the latest counts. Plain C++: any thread may call anything.
//
// The reader alternates between two modes. Armed: the first post calls `wake` once, from the posting thread.
// Awake: posts are silent and the reader drains by its own timer, until arm() finds nothing left.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ui/host/host_types.h"

namespace recto::ui {

class Mailbox {
  public:
    struct Batch {
        std::vector<HostEvent> events;                 // in order; updates of one answer are merged
        std::shared_ptr<const PoolSnapshot> snapshot;  // null: no new one
        std::shared_ptr<const PoolEventBatch> pool_events;
        bool empty() const { return events.empty() && !snapshot && !pool_events; }
    };

    // `wake` must be cheap and must not call the mailbox. It starts armed.
    explicit Mailbox(std::function<void()> wake, std::size_t pool_event_limit = 20'000);

    void post(HostEvent event);
    void post_snapshot(std::shared_ptr<const PoolSnapshot> snapshot);
    void post_pool_events(std::vector<PoolEvent> events, std::uint64_t dropped_before = 0);

    Batch take();
    // True: the mailbox is empty and the next post will wake. False: something is there, take it first.
    bool arm();

  private:
    void notify(std::unique_lock<std::mutex>& lock);
    bool empty_locked() const;
    const std::function<void()> wake_;
    const std::size_t pool_event_limit_;
    std::mutex mutex_;
    bool armed_ = true;
    std::vector<HostEvent> events_;
    std::unordered_map<Ticket, std::size_t>
        open_update_;  // answer → its update in events_ that may still grow
    std::shared_ptr<const PoolSnapshot> snapshot_;
    std::shared_ptr<PoolEventBatch> pool_events_;
};

}  // namespace recto::ui
