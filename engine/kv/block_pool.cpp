#include "engine/kv/block_pool.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace recto {
namespace {

constexpr std::size_t max_events = 1 << 15;

// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

}  // namespace

PrefixKey prefix_key(std::uint64_t parent, std::span<const std::int32_t> tokens) {
    std::uint64_t h = mix(parent);
    for (std::int32_t t : tokens)
        h = mix(h + 0x9E3779B97F4A7C15ULL + std::uint32_t(t));
    return {parent, h == 0 ? 1 : h};
}

BlockPool::BlockPool(std::int32_t blocks, std::int32_t block_size)
    : block_size_(block_size), blocks_(std::size_t(blocks)), available_(blocks) {
    assert(blocks > 0 && block_size > 0);
}

BlockPool::Counts BlockPool::counts() const {
    Counts c;
    c.total = total();
    c.used = used_;
    c.cached = keyed_free_;
    c.free = available_ - keyed_free_;
    c.shared = shared_;
    c.touched = untouched_;
    return c;
}

BlockId BlockPool::allocate(OwnerId owner, std::uint64_t sequence) {
    if (available_ == 0) return -1;
    BlockId id = head_;
    const bool forgotten = id >= 0 && blocks_[std::size_t(id)].key_hash == 0;
    if (!forgotten && untouched_ < total()) {
        id = untouched_++;
        blocks_[std::size_t(id)].touched = true;
    } else {
        if (!forgotten) {
            forget(id);
            record({.kind = PoolEventKind::evict, .block = id, .owner = blocks_[std::size_t(id)].owner});
        }
        unlink(id);
    }
    Block& b = blocks_[std::size_t(id)];
    b.ref_count = 1;
    b.owner = owner;
    --available_;
    ++used_;
    record({.kind = PoolEventKind::alloc, .block = id, .owner = owner, .sequence = sequence});
    return id;
}

void BlockPool::share(BlockId id, OwnerId owner, std::uint64_t sequence) {
    Block& b = blocks_[std::size_t(id)];
    assert(b.ref_count > 0 || b.listed);
    if (b.ref_count == 0) {
        unlink(id);
        if (b.key_hash != 0) --keyed_free_;
        --available_;
        ++used_;
    }
    if (b.ref_count > 0) b.other_owners.push_back(b.owner);
    if (++b.ref_count == 2) ++shared_;
    b.owner = owner;
    record({.kind = PoolEventKind::share,
            .block = id,
            .owner = owner,
            .sequence = sequence,
            .count = b.ref_count});
}

void BlockPool::release(BlockId id, OwnerId owner, std::uint64_t sequence) {
    Block& b = blocks_[std::size_t(id)];
    assert(b.ref_count > 0 && !b.listed);
    if (--b.ref_count == 1) --shared_;
    if (b.owner != owner) {
        const auto at = std::find(b.other_owners.rbegin(), b.other_owners.rend(), owner);
        assert(at != b.other_owners.rend());
        b.other_owners.erase(std::next(at).base());
    } else if (!b.other_owners.empty()) {
        b.owner = b.other_owners.back();
        b.other_owners.pop_back();
    }
    record({.kind = PoolEventKind::free,
            .block = id,
            .owner = owner,
            .sequence = sequence,
            .count = b.ref_count});
    if (b.ref_count > 0) return;
    --used_;
    ++available_;
    if (b.key_hash != 0) {
        append(id);
        ++keyed_free_;
    } else {
        prepend(id);
    }
}

void BlockPool::release_all(std::span<const BlockId> table, OwnerId owner, std::uint64_t sequence) {
    for (std::size_t i = table.size(); i-- > 0;)
        release(table[i], owner, sequence);
}

void BlockPool::set_key(BlockId id, const PrefixKey& key, std::span<const std::int32_t> tokens) {
    Block& b = blocks_[std::size_t(id)];
    assert(b.ref_count > 0 && b.key_hash == 0 && key.hash != 0);
    assert(tokens.size() == std::size_t(block_size_));
    const BlockId twin = find(key, tokens);
    b.key_order = ++names_;
    b.chain = twin >= 0 ? blocks_[std::size_t(twin)].chain : b.key_order;
    b.key_hash = key.hash;
    b.key_parent = key.parent;
    b.tokens.assign(tokens.begin(), tokens.end());
    by_hash_.emplace(key.hash, id);
}

void BlockPool::withdraw_key(BlockId id) {
    const Block& b = blocks_[std::size_t(id)];
    if (b.key_hash == 0) return;
    const bool listed = b.listed;
    forget(id);
    if (!listed) return;
    unlink(id);
    prepend(id);
}

BlockId BlockPool::find(const PrefixKey& key, std::span<const std::int32_t> tokens) const {
    BlockId best = -1;
    const auto [first, last] = by_hash_.equal_range(key.hash);
    for (auto it = first; it != last; ++it) {
        const Block& b = blocks_[std::size_t(it->second)];
        if (b.key_parent != key.parent || !std::ranges::equal(b.tokens, tokens)) continue;
        if (best < 0 || b.key_order < blocks_[std::size_t(best)].key_order) best = it->second;
    }
    return best;
}

void BlockPool::forget_cached() {
    for (BlockId id = head_; id >= 0; id = blocks_[std::size_t(id)].next)
        forget(id);
}

void BlockPool::forget(BlockId id) {
    Block& b = blocks_[std::size_t(id)];
    if (b.key_hash == 0) return;
    auto [it, last] = by_hash_.equal_range(b.key_hash);
    while (it != last && it->second != id)
        ++it;
    assert(it != last);
    by_hash_.erase(it);
    if (b.listed) --keyed_free_;
    b.key_hash = b.key_parent = b.chain = b.key_order = 0;
    b.tokens.clear();
}

void BlockPool::unlink(BlockId id) {
    Block& b = blocks_[std::size_t(id)];
    assert(b.listed);
    (b.prev >= 0 ? blocks_[std::size_t(b.prev)].next : head_) = b.next;
    (b.next >= 0 ? blocks_[std::size_t(b.next)].prev : tail_) = b.prev;
    b.prev = b.next = -1;
    b.listed = false;
}

void BlockPool::append(BlockId id) {
    Block& b = blocks_[std::size_t(id)];
    assert(!b.listed);
    b.prev = tail_;
    (tail_ >= 0 ? blocks_[std::size_t(tail_)].next : head_) = id;
    tail_ = id;
    b.listed = true;
}

void BlockPool::prepend(BlockId id) {
    Block& b = blocks_[std::size_t(id)];
    assert(!b.listed);
    b.next = head_;
    (head_ >= 0 ? blocks_[std::size_t(head_)].prev : tail_) = id;
    head_ = id;
    b.listed = true;
}

void BlockPool::record(const PoolEvent& event) {
    if (events_.size() == max_events) {  // half at once, so that dropping stays O(1) an event
        events_.erase(events_.begin(), events_.begin() + max_events / 2);
        dropped_events_ += max_events / 2;
    }
    events_.push_back(event);
    events_.back().step = step_;
}

std::vector<PoolEvent> BlockPool::take_events() {
    return std::exchange(events_, {});
}

void BlockPool::check_invariants() const {
    std::int32_t used = 0, shared = 0, keyed_free = 0, listed = 0, keyed = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const Block& b = blocks_[i];
        assert(b.ref_count >= 0);
        assert(b.other_owners.size() == std::size_t(std::max(b.ref_count, 1) - 1));
        assert(b.touched == (std::int32_t(i) < untouched_));
        assert(b.listed == (b.touched && b.ref_count == 0));
        assert((b.key_hash != 0) == (b.chain != 0));
        assert(b.tokens.size() == (b.key_hash != 0 ? std::size_t(block_size_) : 0));
        used += b.ref_count > 0;
        shared += b.ref_count > 1;
        listed += b.listed;
        keyed += b.key_hash != 0;
        keyed_free += b.listed && b.key_hash != 0;
    }
    assert(used == used_ && shared == shared_ && keyed_free == keyed_free_);
    assert(available_ == total() - used);
    assert(std::size_t(keyed) == by_hash_.size());
    std::int32_t walked = 0;
    bool seen_keyed = false;
    for (BlockId id = head_, prev = -1; id >= 0; prev = id, id = blocks_[std::size_t(id)].next) {
        const Block& b = blocks_[std::size_t(id)];
        assert(b.listed && b.prev == prev);
        assert(!seen_keyed || b.key_hash != 0);
        seen_keyed = seen_keyed || b.key_hash != 0;
        assert(++walked <= listed);
        assert(b.next >= 0 || id == tail_);
    }
    assert(walked == listed);
    static_cast<void>(used), static_cast<void>(shared), static_cast<void>(keyed_free),
        static_cast<void>(listed);
    static_cast<void>(keyed), static_cast<void>(walked);
}

}  // namespace recto
