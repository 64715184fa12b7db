#include "ui/panel/block_owners.h"

#include <algorithm>

namespace recto::ui {

void BlockOwners::apply(std::span<const PoolEvent> events) {
    for (const PoolEvent& e : events) {
        switch (e.kind) {
            case PoolEventKind::alloc:
                owners_[e.block] = {e.owner};
                break;
            case PoolEventKind::share: {
                auto& list = owners_[e.block];
                if (e.count == 1) list.clear();  // a cached block taken again
                list.push_back(e.owner);
                break;
            }
            case PoolEventKind::free: {
                auto& list = owners_[e.block];
                const auto found = std::find(list.begin(), list.end(), e.owner);
                if (found != list.end()) list.erase(found);
                break;
            }
            case PoolEventKind::evict:
                owners_.erase(e.block);
                break;
            case PoolEventKind::copy:
            case PoolEventKind::preempt:
            case PoolEventKind::swap_out:
            case PoolEventKind::swap_in:
                break;  // the blocks' own alloc and free events say it
        }
    }
}

OwnerId BlockOwners::other_than(BlockId block, OwnerId owner) const {
    const auto found = owners_.find(block);
    if (found == owners_.end()) return 0;
    for (const OwnerId o : found->second)
        if (o != owner) return o;
    return 0;
}

}  // namespace recto::ui
