#include "engine/kv/swap_space.h"

#include <algorithm>
#include <cassert>

namespace recto {

bool SwapSpace::has_room(std::span<const BlockId> table) const {
    if (table.empty()) return false;
    std::int32_t more = 0;
    for (BlockId id : table)
        more += !resident_.contains(id);
    return used_ + more <= places_;
}

std::vector<SavedId> SwapSpace::keep(std::span<const BlockId> table, std::int32_t tokens, OwnerId owner,
                                     std::uint64_t sequence) {
    std::vector<SavedId> result;
    result.reserve(table.size());
    for (BlockId block : table) {
        const auto found = resident_.find(block);
        const std::int32_t filled = std::min(tokens, block_size_);
        tokens -= filled;
        if (found != resident_.end()) {
            Saved& s = saved_[std::size_t(found->second)];
            ++s.waiters;
            s.filled = std::max(s.filled, filled);
            result.push_back(found->second);
            continue;
        }
        SavedId id = SavedId(saved_.size());
        if (free_saved_.empty()) {
            saved_.emplace_back();
        } else {
            id = free_saved_.back();
            free_saved_.pop_back();
        }
        saved_[std::size_t(id)] = {
            .block = block, .owner = owner, .sequence = sequence, .filled = filled, .waiters = 1};
        resident_.emplace(block, id);
        ++used_;
        result.push_back(id);
    }
    assert(used_ <= places_);
    return result;
}

void SwapSpace::share(std::span<const SavedId> saved) {
    for (SavedId id : saved)
        ++saved_[std::size_t(id)].waiters;
}

void SwapSpace::drop(std::span<const SavedId> saved) {
    for (SavedId id : saved) {
        Saved& s = saved_[std::size_t(id)];
        assert(s.waiters > 0);
        if (--s.waiters > 0) continue;
        --used_;
        if (s.place >= 0) {
            free_places_.push_back(s.place);
            --copied_;
        } else {
            resident_.erase(s.block);
        }
        s = {};
        free_saved_.push_back(id);
    }
}

const SwapSpace::Saved* SwapSpace::give_place(BlockId block, std::int32_t first) {
    const auto found = resident_.find(block);
    if (found == resident_.end()) return nullptr;
    Saved& s = saved_[std::size_t(found->second)];
    if (s.filled <= first) return nullptr;
    resident_.erase(found);
    if (free_places_.empty()) {
        s.place = next_place_++;
    } else {
        s.place = free_places_.back();
        free_places_.pop_back();
    }
    assert(s.place < places_);
    s.block = -1;
    ++copied_;
    return &s;
}

}  // namespace recto
