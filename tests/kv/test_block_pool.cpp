#include <QTest>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "engine/kv/block_pool.h"
#include "engine/kv/block_table.h"
#include "support/registry.h"

using namespace recto;

namespace {

std::vector<std::int32_t> tokens_of(std::int32_t first, int n) {
    std::vector<std::int32_t> t;
    for (int i = 0; i < n; ++i)
        t.push_back(first + i);
    return t;
}

// Says what the pool must do, by lists and linear searches: an independent, slow model of its header's rules.
struct Model {
    struct Entry {
        int refs = 0;
        bool named = false;
        std::uint64_t parent = 0;
        std::vector<std::int32_t> tokens;
        std::uint64_t order = 0;
        std::vector<OwnerId> holders;  // in the order they came; when none is left, unchanged
    };
    std::vector<Entry> blocks;
    std::vector<BlockId> forgotten;  // a stack: the last released is reused first
    std::deque<BlockId> cached;      // oldest first
    int never_used = 0;
    std::uint64_t orders = 0;

    explicit Model(int n) : blocks(std::size_t(n)) {}

    BlockId allocate(OwnerId owner) {
        BlockId id = -1;
        if (!forgotten.empty()) {
            id = forgotten.back();
            forgotten.pop_back();
        } else if (never_used < int(blocks.size())) {
            id = never_used++;
        } else if (!cached.empty()) {
            id = cached.front();
            cached.pop_front();
            blocks[std::size_t(id)] = {};
        } else {
            return -1;
        }
        blocks[std::size_t(id)].refs = 1;
        blocks[std::size_t(id)].holders = {owner};
        return id;
    }
    void share(BlockId id, OwnerId owner) {
        blocks[std::size_t(id)].holders.push_back(owner);
        if (blocks[std::size_t(id)].refs++ == 0) cached.erase(std::find(cached.begin(), cached.end(), id));
    }
    void release(BlockId id, OwnerId owner) {
        Entry& b = blocks[std::size_t(id)];
        b.holders.erase(std::next(std::find(b.holders.rbegin(), b.holders.rend(), owner)).base());
        if (--b.refs > 0) return;
        if (b.named) {
            cached.push_back(id);
        } else {
            forgotten.push_back(id);
        }
    }
    void name(BlockId id, std::uint64_t parent, const std::vector<std::int32_t>& tokens) {
        Entry& b = blocks[std::size_t(id)];
        b.named = true;
        b.parent = parent;
        b.tokens = tokens;
        b.order = ++orders;
    }
    void withdraw(BlockId id) {
        Entry& b = blocks[std::size_t(id)];
        if (!b.named) return;
        b.named = false;
        b.tokens.clear();
        if (b.refs > 0) return;
        cached.erase(std::find(cached.begin(), cached.end(), id));
        forgotten.push_back(id);
    }
    BlockId find(std::uint64_t parent, const std::vector<std::int32_t>& tokens) const {
        BlockId best = -1;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const Entry& b = blocks[i];
            if (!b.named || b.parent != parent || b.tokens != tokens) continue;
            if (best < 0 || b.order < blocks[std::size_t(best)].order) best = BlockId(i);
        }
        return best;
    }
};

void compare(const BlockPool& pool, const Model& model) {
    pool.check_invariants();
    const BlockPool::Counts c = pool.counts();
    int used = 0, shared = 0;
    for (std::size_t i = 0; i < model.blocks.size(); ++i) {
        const auto& expected = model.blocks[i];
        const auto& got = pool.block(BlockId(i));
        QCOMPARE(got.ref_count, expected.refs);
        QCOMPARE(got.key_hash != 0, expected.named);
        QVERIFY(got.tokens == expected.tokens);
        if (!expected.holders.empty()) QCOMPARE(got.owner, expected.holders.back());
        used += expected.refs > 0;
        shared += expected.refs > 1;
    }
    QCOMPARE(c.used, used);
    QCOMPARE(c.shared, shared);
    QCOMPARE(c.cached, int(model.cached.size()));
    QCOMPARE(c.touched, model.never_used);
    QCOMPARE(c.used + c.cached + c.free, c.total);
    QCOMPARE(pool.available(), c.cached + c.free);
}

}  // namespace

class TestBlockPool : public QObject {
    Q_OBJECT
  private slots:
    // After any sequence of operations no block is lost, doubly owned or freed twice, and every answer of the
    // pool is the slow model's.
    void randomOperationsAgreeWithModel_data() {
        QTest::addColumn<int>("blocks");
        QTest::addColumn<quint64>("hashMask");  // a short one makes nearly every pair of names collide
        QTest::newRow("1 block") << 1 << ~quint64(0);
        QTest::newRow("7 blocks") << 7 << ~quint64(0);
        QTest::newRow("64 blocks") << 64 << ~quint64(0);
        QTest::newRow("64 blocks, 2-bit hashes") << 64 << quint64(3);
    }
    void randomOperationsAgreeWithModel() {
        QFETCH(int, blocks);
        QFETCH(quint64, hashMask);
        constexpr int size = 4;
        std::mt19937 random(17);
        const auto pick = [&](std::size_t n) { return std::size_t(random() % n); };
        const auto key = [&](std::uint64_t parent, const std::vector<std::int32_t>& t) {
            PrefixKey k = prefix_key(parent, t);
            k.hash = std::max<std::uint64_t>(1, k.hash & hashMask);
            return k;
        };
        BlockPool pool(blocks, size);
        Model model(blocks);
        std::vector<std::pair<BlockId, OwnerId>> owned;
        std::uint64_t first_parent = prefix_root;
        for (int step = 0; step < 20000; ++step) {
            const auto tokens = tokens_of(std::int32_t(pick(6)), size);
            switch (pick(7)) {
                case 0:
                case 1: {
                    const OwnerId owner = 1 + pick(3);
                    const BlockId id = pool.allocate(owner, 9);
                    QCOMPARE(id, model.allocate(owner));
                    if (id >= 0) owned.emplace_back(id, owner);
                    break;
                }
                case 2: {
                    const BlockId id = pool.find(key(first_parent, tokens), tokens);
                    QCOMPARE(id, model.find(first_parent, tokens));
                    if (id < 0) break;
                    const OwnerId owner = 1 + pick(3);
                    pool.share(id, owner, 9);
                    model.share(id, owner);
                    owned.emplace_back(id, owner);
                    break;
                }
                case 3:
                case 4: {
                    if (owned.empty()) break;
                    const std::size_t at = pick(owned.size());
                    pool.release(owned[at].first, owned[at].second, 9);
                    model.release(owned[at].first, owned[at].second);
                    owned.erase(owned.begin() + std::ptrdiff_t(at));
                    break;
                }
                case 5: {
                    if (owned.empty()) break;
                    const BlockId id = owned[pick(owned.size())].first;
                    if (model.blocks[std::size_t(id)].named) break;
                    pool.set_key(id, key(first_parent, tokens), tokens);
                    model.name(id, first_parent, tokens);
                    break;
                }
                case 6: {
                    if (pick(4) != 0) break;
                    const auto id = BlockId(pick(std::size_t(blocks)));
                    pool.withdraw_key(id);
                    model.withdraw(id);
                    break;
                }
            }
            compare(pool, model);
            if (QTest::currentTestFailed()) return;
        }
        while (!owned.empty()) {
            pool.release(owned.back().first, owned.back().second, 9);
            model.release(owned.back().first, owned.back().second);
            owned.pop_back();
        }
        compare(pool, model);
        QCOMPARE(pool.available(), blocks);
        QVERIFY(pool.counts().touched > 0);
    }

    void neverUsedBlocksComeLowestFirst() {
        BlockPool pool(5, 4);
        for (BlockId id = 0; id < 5; ++id)
            QCOMPARE(pool.allocate(1, 1), id);
        QCOMPARE(pool.allocate(1, 1), BlockId(-1));
    }

    // A table is freed from its tail, so the tail is evicted first and the chain never loses its root.
    void leastRecentlyFreedTailIsEvictedFirst() {
        BlockPool pool(6, 2);
        const auto fill = [&](std::int32_t base) {
            std::vector<BlockId> table;
            std::uint64_t chain = prefix_root;
            for (std::int32_t i = 0; i < 3; ++i) {
                table.push_back(pool.allocate(1, 1));
                const auto t = tokens_of(base + 2 * i, 2);
                pool.set_key(table.back(), prefix_key(chain, t), t);
                chain = pool.block(table.back()).chain;
            }
            return table;
        };
        const auto a = fill(0), b = fill(100);
        pool.release_all(a, 1, 1);
        pool.release_all(b, 1, 1);
        QCOMPARE(pool.counts().cached, 6);
        pool.take_events();
        const std::vector<BlockId> expected{a[2], a[1], a[0], b[2], b[1], b[0]};
        for (BlockId id : expected)
            QCOMPARE(pool.allocate(2, 2), id);
        std::vector<BlockId> evicted;
        for (const PoolEvent& e : pool.take_events())
            if (e.kind == PoolEventKind::evict) {
                QCOMPARE(e.owner, OwnerId(1));
                evicted.push_back(e.block);
            }
        QVERIFY(evicted == expected);
        const auto t = tokens_of(0, 2);
        QCOMPARE(pool.find(prefix_key(prefix_root, t), t), BlockId(-1));
    }

    void cachedBlocksKeepTheirOwner() {
        BlockPool pool(2, 2);
        const BlockId id = pool.allocate(42, 1);
        const auto t = tokens_of(0, 2);
        pool.set_key(id, prefix_key(prefix_root, t), t);
        pool.release(id, 42, 1);
        QCOMPARE(pool.block(id).owner, OwnerId(42));
        pool.share(id, 43, 2);
        QCOMPARE(pool.block(id).owner, OwnerId(43));
    }

    // Whoever leaves is named by the event, and the block shows one who is still there.
    void theOwnerWhoLeavesIsNamed() {
        BlockPool pool(2, 2);
        const BlockId id = pool.allocate(1, 10);
        pool.share(id, 2, 20);
        pool.share(id, 3, 30);
        pool.take_events();
        pool.release(id, 3, 30);
        QCOMPARE(pool.block(id).owner, OwnerId(2));
        pool.release(id, 1, 10);
        QCOMPARE(pool.block(id).owner, OwnerId(2));
        pool.release(id, 2, 20);
        QCOMPARE(pool.block(id).owner, OwnerId(2));
        std::vector<OwnerId> left;
        for (const PoolEvent& e : pool.take_events())
            left.push_back(e.owner);
        QVERIFY(left == std::vector<OwnerId>({3, 1, 2}));
    }

    // Equal hashes of different texts: ids decide, for the block and for everything below it.
    void collidingHashesNeverShare() {
        BlockPool pool(8, 2);
        const auto a = tokens_of(10, 2), b = tokens_of(20, 2), c = tokens_of(30, 2);
        const BlockId x = pool.allocate(1, 1), y = pool.allocate(1, 1), below = pool.allocate(1, 1);
        pool.set_key(x, {prefix_root, 7}, a);
        pool.set_key(y, {prefix_root, 7}, b);
        pool.set_key(below, {pool.block(x).chain, 7}, c);
        QCOMPARE(pool.find({prefix_root, 7}, a), x);
        QCOMPARE(pool.find({prefix_root, 7}, b), y);
        QCOMPARE(pool.find({prefix_root, 7}, c), BlockId(-1));
        QCOMPARE(pool.find({pool.block(x).chain, 7}, c), below);
        QCOMPARE(pool.find({pool.block(y).chain, 7}, c), BlockId(-1));
        // Forgotten and named anew by another text, the old chain is not reachable through it.
        const std::uint64_t old_chain = pool.block(x).chain;
        pool.withdraw_key(x);
        pool.set_key(x, {prefix_root, 7}, c);
        QVERIFY(pool.block(x).chain != old_chain);
        QCOMPARE(pool.find({pool.block(x).chain, 7}, c), BlockId(-1));
    }

    void equalBlocksShareOneChainAndTheOlderIsHit() {
        BlockPool pool(4, 2);
        const auto t = tokens_of(0, 2);
        const PrefixKey key = prefix_key(prefix_root, t);
        const BlockId a = pool.allocate(1, 1), b = pool.allocate(2, 2);
        pool.set_key(b, key, t);
        pool.set_key(a, key, t);
        QCOMPARE(pool.block(a).chain, pool.block(b).chain);
        QCOMPARE(pool.find(key, t), b);
        pool.withdraw_key(b);
        QCOMPARE(pool.find(key, t), a);
    }

    void forgetCachedDropsOnlyOwnerless() {
        BlockPool pool(3, 2);
        const auto t = tokens_of(0, 2), u = tokens_of(9, 2);
        const BlockId a = pool.allocate(1, 1), b = pool.allocate(1, 1);
        pool.set_key(a, prefix_key(prefix_root, t), t);
        pool.set_key(b, prefix_key(prefix_root, u), u);
        pool.release(a, 1, 1);
        pool.forget_cached();
        pool.check_invariants();
        QCOMPARE(pool.counts().cached, 0);
        QCOMPARE(pool.counts().free, 2);
        QCOMPARE(pool.find(prefix_key(prefix_root, u), u), b);
        QCOMPARE(pool.find(prefix_key(prefix_root, t), t), BlockId(-1));
    }

    void eventsAreBoundedAndCounted() {
        BlockPool pool(1, 2);
        for (int i = 0; i < 40000; ++i) {
            pool.set_step(std::uint64_t(i));
            pool.release(pool.allocate(1, 1), 1, 1);
        }
        const std::uint64_t dropped = pool.dropped_events();
        const auto events = pool.take_events();
        QCOMPARE(dropped + events.size(), std::uint64_t(80000));
        QVERIFY(dropped > 0);
        QCOMPARE(events.back().step, std::uint64_t(39999));
        QCOMPARE(int(events.back().kind), int(PoolEventKind::free));
        QVERIFY(pool.take_events().empty());
    }

    void blocksForRoundsUp() {
        QCOMPARE(blocks_for(0, 16), 0);
        QCOMPARE(blocks_for(1, 16), 1);
        QCOMPARE(blocks_for(16, 16), 1);
        QCOMPARE(blocks_for(17, 16), 2);
    }
};

RECTO_TEST_CLASS(TestBlockPool);
#include "test_block_pool.moc"
