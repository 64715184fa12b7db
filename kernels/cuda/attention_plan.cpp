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

struct Cut {
    double cost = 0;  // tokens of the busiest block
    int partials = 0;
};

// Items go round the blocks, longest first, each to all units: block 0 has the longest of every round.
Cut cut_by(const std::vector<Row>& rows, int share, const AttentionShape& shape, std::vector<int>& shares) {
    Cut cut;
    shares.clear();
    for (const Row& r : rows) {
        const int n = splits_of(r.tokens, share);
        if (n > 1) cut.partials += n * shape.units();
        shares.insert(shares.end(), std::size_t(n), (r.tokens + n - 1) / n);
    }
    std::sort(shares.begin(), shares.end(), std::greater<>());
    const std::size_t units = std::size_t(shape.units());
    const std::size_t blocks = std::size_t(shape.decode_blocks());
    for (std::size_t i = 0; i < shares.size() * units; i += blocks)
        cut.cost += shares[i / units] + item_overhead;
    return cut;
}

// The share that leaves the busiest block the least to do.
int choose_share(const std::vector<Row>& rows, const AttentionShape& shape) {
    double tokens = 0;
    int longest = 1;
    for (const Row& r : rows) {
        tokens += r.tokens;
        longest = std::max(longest, r.tokens);
    }
    const double even = tokens * shape.units() / shape.decode_blocks();
    const double floor = even + double(rows.size()) * shape.units() * item_overhead / shape.decode_blocks();
    std::vector<int> shares;
    int best = longest;
    double least = cut_by(rows, longest, shape, shares).cost;
    if (least <= 1.05 * floor) return best;
    for (const int rounds : {1, 2, 3}) {
        for (const double slack : {1.0, 1.03, 1.06, 1.1, 1.15, 1.25, 1.4, 1.7}) {
            const int share = std::max(least_share, int(std::ceil(even * slack / rounds)));
            if (share >= longest) continue;
            const Cut cut = cut_by(rows, share, shape, shares);
            if (cut.partials > shape.most_partials() || cut.cost >= least) continue;
            least = cut.cost;
            best = share;
        }
    }
    return best;
}

void plan_decode(const std::vector<Row>& rows, const AttentionShape& shape, std::vector<DecodeItem>& items) {
    if (rows.empty()) return;
    const int share = choose_share(rows, shape);
    int partials = 0;
    std::vector<int> tokens;  // of each item
    for (const Row& r : rows) {
        const int n = splits_of(r.tokens, share);
        for (int i = 0; i < n; ++i) {
            items.push_back({r.row, i, n, n > 1 ? partials : 0});
            tokens.push_back((r.tokens + n - 1) / n);
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
