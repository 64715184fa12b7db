// Who has each shared block, told by the pool's events: the snapshot names only the last to take it, and the
// map stripes a shared block in both owners' hues. Plain data.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv/block_pool.h"

namespace recto::ui {

class BlockOwners {
  public:
    void apply(std::span<const PoolEvent> events);
    void clear() { owners_.clear(); }
    // An owner of the block other than `owner`; 0: none known.
    OwnerId other_than(BlockId block, OwnerId owner) const;

  private:
    std::unordered_map<BlockId, std::vector<OwnerId>> owners_;  // one entry a reference, in order of taking
};

}  // namespace recto::ui
