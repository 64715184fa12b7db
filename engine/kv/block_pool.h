// The pool of KV blocks. Pure bookkeeping: no tensor, no device. O(1) for allocate, free, share.
//
// A block is free (never used, or forgotten), used (ref_count ≥ 1) or cached (ref_count 0, content still named by
// its prefix key). Forgotten blocks are handed out again first (their memory has been touched already), then never-used
// ones, lowest index first; when none is left, the least recently freed cached block is evicted: only then is its key
// forgotten. vLLM's PagedAttention (Kwon et al. 2023) and vLLM V1's
// block_pool.py are the sources of the scheme.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

namespace recto {

using BlockId = std::int32_t;
using OwnerId = std::uint64_t;  // opaque: whom the map draws; 0 = nobody

enum class PoolEventKind : std::uint8_t { alloc, share, copy, free, evict, preempt, swap_out, swap_in };

// What happened to a block, for the live panel and for replay. `sequence` is the engine's sequence id.
struct PoolEvent {
    std::uint64_t step = 0;
    PoolEventKind kind{};
    BlockId block = -1;          // preempt: -1
    BlockId other = -1;          // copy: the source; swap_out, swap_in: the place in host memory
    OwnerId owner = 0;           // who took it or lets it go; evict: whose it was last
    std::uint64_t sequence = 0;
    std::int32_t count = 1;      // preempt: blocks given back; share: owners now; free: owners left
};

// Names a full block: the chain of tokens that ends with its parent, and its own tokens (both compared on a hit, so
// that a collision of hashes never shares a block). Chains are numbered by the pool: blocks with equal parents and
// equal tokens have the same number, and no number ever means two different texts.
struct PrefixKey {
    std::uint64_t parent = 0;    // Block::chain of the block before; prefix_root for the first block
    std::uint64_t hash = 0;      // of parent and tokens; never 0
};
constexpr std::uint64_t prefix_root = 0x5265637430313031ULL;
PrefixKey prefix_key(std::uint64_t parent, std::span<const std::int32_t> tokens);

class BlockPool {
  public:
    struct Block {
        std::int32_t ref_count = 0;
        OwnerId owner = 0;                     // of those who hold it, the last to take it; kept while cached
        std::vector<OwnerId> other_owners;     // the other holders, in the order they came
        std::uint64_t key_hash = 0;            // 0: no key
        std::uint64_t key_parent = 0;
        std::uint64_t chain = 0;               // number of the text from the first block to the end of this one
        std::uint64_t key_order = 0;           // when it was named; the oldest of equal blocks is hit
        std::vector<std::int32_t> tokens;      // of a keyed block; compared on a hit
        BlockId prev = -1, next = -1;          // free-list links
        bool listed = false;                   // on the free list (cached or forgotten)
        bool touched = false;                  // was ever handed out
    };
    struct Counts {
        std::int32_t total = 0, used = 0, cached = 0, free = 0, shared = 0;  // shared: ref_count ≥ 2, counted in used
        std::int32_t touched = 0;              // blocks ever used: indices 0 … touched − 1
    };

    BlockPool(std::int32_t blocks, std::int32_t block_size);

    std::int32_t block_size() const { return block_size_; }
    std::int32_t total() const { return std::int32_t(blocks_.size()); }
    std::int32_t available() const { return available_; }  // free + cached: what an allocation can draw on
    Counts counts() const;
    const Block& block(BlockId id) const { return blocks_[std::size_t(id)]; }

    // -1 when nothing is available. The block has ref_count 1 and no key.
    BlockId allocate(OwnerId owner, std::uint64_t sequence);
    // One more owner of a used or cached block, or of one that was let go and not handed out again since.
    void share(BlockId id, OwnerId owner, std::uint64_t sequence);
    // `owner` lets go; O(1) unless others hold it too. A keyed block whose last owner leaves stays as cached, at the
    // young end of the list.
    void release(BlockId id, OwnerId owner, std::uint64_t sequence);
    // Frees a whole table in reverse, so that a chain is evicted from its tail and never broken at the root.
    void release_all(std::span<const BlockId> table, OwnerId owner, std::uint64_t sequence);

    // Gives a full block its name. If another block has that name already, both stay; a hit takes the older one.
    void set_key(BlockId id, const PrefixKey& key, std::span<const std::int32_t> tokens);
    void withdraw_key(BlockId id);  // the block holds something else, or nothing
    // The block named so, its tokens compared; -1 if none.
    BlockId find(const PrefixKey& key, std::span<const std::int32_t> tokens) const;
    void forget_cached();           // drops every cached block's key

    void set_step(std::uint64_t step) { step_ = step; }
    void record(const PoolEvent& event);            // for copy, preempt and swap, which the pool does not see
    std::vector<PoolEvent> take_events();           // bounded: the oldest are dropped and counted
    std::uint64_t dropped_events() const { return dropped_events_; }
    void check_invariants() const;                  // asserts that no block is lost, doubly listed or miscounted

  private:
    void unlink(BlockId id);
    void append(BlockId id);                        // young end: keyed blocks
    void prepend(BlockId id);                       // old end: forgotten blocks, so that they go before any keyed one
    void forget(BlockId id);                        // drops the key, wherever the block is
    std::int32_t block_size_;
    std::vector<Block> blocks_;
    BlockId head_ = -1, tail_ = -1;                 // free list of touched blocks: forgotten, then oldest first
    std::int32_t untouched_ = 0;                    // next never-used index
    std::int32_t available_ = 0, used_ = 0, shared_ = 0, keyed_free_ = 0;
    std::unordered_multimap<std::uint64_t, BlockId> by_hash_;
    std::vector<PoolEvent> events_;
    std::uint64_t dropped_events_ = 0;
    std::uint64_t step_ = 0;
    std::uint64_t names_ = 0;                       // chain and key_order numbers given out
};

}  // namespace recto
