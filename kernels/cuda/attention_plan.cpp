#include "kernels/cuda/attention_plan.h"

#include <algorithm>
#include <cmath>

namespace recto::cuda {

namespace {

// What an item costs beside its tokens, in tokens: the walk to its first loads and the merge of four warps.
constexpr int item_overhead = 96;
constexpr int least_share = 64;  // tokens; a chunk for each warp

struct Row {
    int row, tokens;
};

int splits_of(int tokens, int share) {
    return std::clamp((tokens + share - 1) / share, 1, most_splits);
}
int share_of(int tokens, int splits) {
    return (tokens + splits - 1) / splits;
}

// How a step's rows are cut: into how many shares each.
struct Cut {
    std::vector<int> splits;
    double cost = 0;  // tokens of the busiest block
    int partials = 0;
};

// Shares of one length: a step of hundreds of rows has thousands, and this is worked out for each step.
struct Shares {
    int tokens, count;
};

// Items go round the blocks, longest first, each to all units: block 0 has the longest of every round.
void weigh(Cut& cut, const std::vector<Row>& rows, const AttentionShape& shape, std::vector<Shares>& shares) {
    cut.cost = 0;
    cut.partials = 0;
    shares.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const int n = cut.splits[i];
        if (n > 1) cut.partials += n * shape.units();
        shares.push_back({share_of(rows[i].tokens, n), n});
    }
    std::sort(shares.begin(), shares.end(),
              [](const Shares& a, const Shares& b) { return a.tokens > b.tokens; });
    long long items = 0, next = 0;  // next: of block 0
    for (const Shares& s : shares)
        for (items += (long long)s.count * shape.units(); next < items; next += shape.decode_blocks())
            cut.cost += s.tokens + item_overhead;
}

// The shares that leave the busiest block the least to do. Rows: the longest first.
std::vector<int> choose_splits(const std::vector<Row>& rows, const AttentionShape& shape) {
    const int units = shape.units(), blocks = shape.decode_blocks(), count = int(rows.size());
    double tokens = 0;
    for (const Row& r : rows)
        tokens += r.tokens;
    const double even = tokens * units / blocks;
    const double floor = even + double(count) * units * item_overhead / blocks;
    std::vector<Shares> shares;
    Cut best;
    best.splits.assign(rows.size(), 1);
    weigh(best, rows, shape, shares);
    if (best.cost <= 1.05 * floor) return best.splits;
    Cut cut;
    const auto consider = [&](auto&& splits_of_row) {
        cut.splits.clear();
        for (int i = 0; i < count; ++i)
            cut.splits.push_back(splits_of_row(i));
        weigh(cut, rows, shape, shares);
        if (cut.partials <= shape.most_partials() && cut.cost < best.cost) std::swap(best, cut);
    };
    for (const int rounds : {1, 2, 3}) {
        for (const double slack : {1.0, 1.03, 1.06, 1.1, 1.15, 1.25, 1.4, 1.7}) {
            const int share = std::max(least_share, int(std::ceil(even * slack / rounds)));
            if (share < rows.front().tokens)
                consider([&](int i) { return splits_of(rows[std::size_t(i)].tokens, share); });
        }
    }
    // Whole rows as long as they fill rounds of blocks, and the rest, the shortest, cut so that they fill one
    // more.
    const int rounds = int((long long)count * units / blocks);
    const int whole = int((long long)rounds * blocks / units);
    for (int more = 1; more <= 2 && rounds > 0 && whole < count; ++more) {
        const int n = more * blocks / ((count - whole) * units);
        if (n < 2) continue;
        consider([&](int i) {
            return i < whole ? 1 : std::min(n, splits_of(rows[std::size_t(i)].tokens, least_share));
        });
    }
    return best.splits;
}

void plan_decode(std::vector<Row> rows, const AttentionShape& shape, std::vector<DecodeItem>& items) {
    if (rows.empty()) return;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.tokens > b.tokens; });
    const std::vector<int> splits = choose_splits(rows, shape);
    int partials = 0;
    std::vector<int> tokens;  // of each item
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const int n = splits[r];
        for (int i = 0; i < n; ++i) {
            items.push_back({rows[r].row, i, n, n > 1 ? partials : 0});
            tokens.push_back(share_of(rows[r].tokens, n));
        }
        if (n > 1) partials += n;
    }
    std::vector<std::size_t> order(items.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return tokens[a] > tokens[b]; });
    std::vector<DecodeItem> sorted;
    sorted.reserve(items.size());
    for (const std::size_t i : order)
        sorted.push_back(items[i]);
    items = std::move(sorted);
}

}  // namespace

AttentionPlan plan_attention(const StepBatch& step, const AttentionShape& shape) {
    AttentionPlan plan;
    std::vector<Row> rows;
    struct Tile {
        PrefillTile tile;
        int tokens;
    };
    std::vector<Tile> tiles;
    const int group = shape.group(), tile_rows = prefill_rows(shape.heads.head_dim);
    for (int s = 0; s < step.sequences(); ++s) {
        const int first = step.query_start[std::size_t(s)];
        const int queries = step.query_start[std::size_t(s) + 1] - first;
        if (queries == 1) rows.push_back({first, step.positions[std::size_t(first)] + 1});
        if (queries <= 1) continue;
        for (int packed = 0; packed < queries * group; packed += tile_rows) {
            const int last = std::min(queries - 1, (packed + tile_rows - 1) / group);
            tiles.push_back({{s, first, queries, packed}, step.positions[std::size_t(first + last)] + 1});
        }
    }
    plan_decode(rows, shape, plan.decode);
    double tokens = 0;
    for (const Row& r : rows)
        tokens += r.tokens;
    constexpr double much = 8e6;  // elements of K: about 8 us of an H200
    plan.reads_much = tokens * shape.heads.kv_heads * shape.heads.head_dim > much;
    std::stable_sort(tiles.begin(), tiles.end(),
                     [](const Tile& a, const Tile& b) { return a.tokens > b.tokens; });
    for (const Tile& t : tiles)
        plan.prefill.push_back(t.tile);
    return plan;
}

}  // namespace recto::cuda
