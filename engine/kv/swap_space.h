// Which blocks of preempted sequences must not be lost, and where they are. Pure bookkeeping: no tensor, no
// device.
//
// Preempting by swap moves nothing at first: the sequence lets its blocks go, and the pool hands them out
// again in its own order. Only when such a block is about to be overwritten does it get a place in host
// memory and is copied there. What is still in the pool when the sequence comes back (prompts that others
// share, the cached part of a conversation) is simply taken again. A block that several paused sequences want
// is kept once.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv/block_pool.h"

namespace recto {

using SavedId = std::int32_t;

class SwapSpace {
  public:
    struct Saved {
        BlockId block = -1;       // in the pool, not overwritten yet
        std::int32_t place = -1;  // or in host memory
        OwnerId owner = 0;        // of the first that was paused
        std::uint64_t sequence = 0;
        std::int32_t filled = 0;   // slots, from the first, that some of them wants
        std::int32_t waiters = 0;  // paused sequences that want it; 0: entry unused
    };

    SwapSpace(std::int32_t places, std::int32_t block_size) : places_(places), block_size_(block_size) {}

    std::int32_t total() const { return places_; }
    std::int32_t used() const { return used_; }      // entries: each may need a place
    std::int32_t copied() const { return copied_; }  // places that hold a block
    const Saved& saved(SavedId id) const { return saved_[std::size_t(id)]; }

    // Every block that must be kept has, from the beginning, a place it can go to.
    bool has_room(std::span<const BlockId> table) const;
    // `tokens`: in the table's blocks. has_room() was true.
    std::vector<SavedId> keep(std::span<const BlockId> table, std::int32_t tokens, OwnerId owner,
                              std::uint64_t sequence);
    void share(std::span<const SavedId> saved);  // one more waiter each
    void drop(std::span<const SavedId> saved);   // one waiter less each

    // `block` will be overwritten from slot `first` on: its entry, which names the place that the content
    // must be copied to before; null when nobody wants what is overwritten.
    const Saved* give_place(BlockId block, std::int32_t first);

  private:
    std::int32_t places_;
    std::int32_t block_size_;
    std::int32_t used_ = 0;
    std::int32_t copied_ = 0;
    std::int32_t next_place_ = 0;  // places never used yet
    std::vector<std::int32_t> free_places_;
    std::vector<Saved> saved_;
    std::vector<SavedId> free_saved_;
    std::unordered_map<BlockId, SavedId> resident_;  // blocks in the pool that are wanted
};

}  // namespace recto
