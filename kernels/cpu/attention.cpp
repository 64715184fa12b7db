// Paged attention on the CPU: work items of a few rows of one sequence against one KV head, walked in
// partitions of 256 positions. When items are fewer than the workers want (a long context decoding alone),
// each partition becomes an item of its own and the states are merged afterwards, in the order in which one
// walker would have merged them.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/cpu/backend.h"

namespace recto::cpu {

namespace {

constexpr int queries_wanted = 12;  // query vectors that share a read of K and V
constexpr int queries_few = 8;      // up to so many are limited by that read, and it is asked for ahead
constexpr int partition_units = partition_tokens / kv_unit;

struct Item {
    std::int32_t sequence = 0;
    std::int32_t first_row = 0;  // of the batch
    std::int32_t rows = 0;
    std::int32_t kv_head = 0;
    std::int32_t first_partition = 0;  // of the earliest position that any row sees
    std::int32_t partitions = 0;
    std::int64_t first_state = 0;  // split: index of its first partition's states
};

}  // namespace

class AttentionRun {
  public:
    AttentionRun(CpuBackend& backend, const StepBatch& step, const AttentionArgs& args, Tensor q,
                 const CpuKv& kv, Tensor out)
        : backend_(backend),
          step_(step),
          args_(args),
          q_(q),
          kv_(kv),
          out_(out),
          group_(args.shape.heads / args.shape.kv_heads),
          dim_(args.shape.head_dim),
          stride_((args.shape.head_dim + lanes - 1) / lanes * lanes),
          kernel_(backend.kernels_.partition(kv.shape().dtype)) {}

    void run() {
        make_items();
        if (items_.empty()) return;
        std::int64_t partitions = 0, work = 0;
        for (const Item& i : items_) {
            partitions += i.partitions;
            work += std::int64_t(i.rows) * group_ * i.partitions * partition_tokens * dim_;
        }
        ThreadPool& pool = backend_.pool_;
        if (pool.threads() > 1 && std::int64_t(items_.size()) < std::int64_t(pool.threads()) * 4 &&
            partitions > std::int64_t(items_.size())) {
            run_split(partitions);
            return;
        }
        // The longest come last in a prefill: hand them out first.
        const std::int64_t n = std::int64_t(items_.size());
        const std::int64_t grain =
            work < 100000 ? n : std::clamp<std::int64_t>(n / (pool.threads() * 4), 1, 8);
        pool.parallel_for(n, grain, [&](int worker, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                whole(worker, items_[std::size_t(n - 1 - i)],
                      i + 1 < end ? &items_[std::size_t(n - 2 - i)] : nullptr);
        });
    }

  private:
    void make_items() {
        const int rows_per_item = std::max(1, queries_wanted / group_);
        for (std::int32_t s = 0; s < step_.sequences(); ++s) {
            const std::int32_t begin = step_.query_start[std::size_t(s)],
                               end = step_.query_start[std::size_t(s) + 1];
            for (std::int32_t r = begin; r < end; r += rows_per_item) {
                const std::int32_t n = std::min<std::int32_t>(rows_per_item, end - r);
                const int lo = first_visible(step_.positions[std::size_t(r)]);
                const int hi = step_.positions[std::size_t(r + n - 1)] + 1;
                const int first = lo / partition_tokens;
                const int count = (hi + partition_tokens - 1) / partition_tokens - first;
                for (std::int32_t h = 0; h < args_.shape.kv_heads; ++h)
                    items_.push_back({s, r, n, h, first, count, 0});
            }
        }
    }

    int first_visible(int position) const {
        return args_.window > 0 ? std::max(0, position - args_.window + 1) : 0;
    }

    // Where one worker puts a partition's results: [queries] of everything.
    struct Room {
        const float** q;
        int *lo, *hi, *index;  // index: which query of the item
        float *maximum, *sum;
        float* out;  // [queries][stride]
    };

    // What a worker computes after a partition, as far as it is known.
    struct Next {
        const Item* item = nullptr;
        int partition = 0;
    };

    // The queries of an item that see something of a partition; returns how many.
    int visible(const Item& item, int partition, const Room& room) const {
        int n = 0;
        const int start = partition * partition_tokens;
        for (int r = 0; r < item.rows; ++r) {
            const int position = step_.positions[std::size_t(item.first_row + r)];
            const int lo = std::max(first_visible(position) - start, 0);
            const int hi = std::min(position + 1 - start, partition_tokens);
            if (lo >= hi) continue;
            const float* row = q_.f32() + (item.first_row + r) * q_.row_stride;
            for (int g = 0; g < group_; ++g, ++n) {
                room.q[n] = row + std::int64_t(item.kv_head * group_ + g) * dim_;
                room.lo[n] = lo;
                room.hi[n] = hi;
                room.index[n] = r * group_ + g;
            }
        }
        return n;
    }

    // Where a partition's K and V lie: pointers for the kernel, and the runs of memory behind them.
    struct Units {
        const void *k[partition_units], *v[partition_units];
        const void *k_run[partition_units], *v_run[partition_units];
    };

    // Units from `first` to `last` of a partition.
    void locate(const Item& item, int partition, int first, int last, Units& units) const {
        const KvShape& shape = kv_.shape();
        const std::int32_t* table =
            step_.block_tables.data() + std::int64_t(item.sequence) * step_.max_blocks;
        const int context = step_.context_tokens[std::size_t(item.sequence)];
        const int visible_from = first_visible(step_.positions[std::size_t(item.first_row)]);
        const std::size_t element = dtype_bytes(shape.dtype);
        for (int u = first; u < last; ++u) {
            const int position = partition * partition_tokens + u * kv_unit;
            if (position >= context) {  // beyond the end: any readable place, its scores are masked
                units.k[u] = u > first ? units.k[u - 1] : nullptr;
                units.v[u] = u > first ? units.v[u - 1] : nullptr;
                units.k_run[u] = units.k[u];
                units.v_run[u] = units.v[u];
                continue;
            }
            if (position + kv_unit <= visible_from) {  // given back by a sliding window: never read
                units.k[u] = units.v[u] = units.k_run[u] = units.v_run[u] = nullptr;
                continue;
            }
            const std::int32_t block = table[position / shape.block_size];
            const auto slot = std::size_t(position % shape.block_size);
            const std::uint8_t* k = kv_.head(block, args_.layer, 0, item.kv_head);
            const std::uint8_t* v = kv_.head(block, args_.layer, 1, item.kv_head);
            units.k[u] = k + slot * element;
            units.k_run[u] = k + slot * std::size_t(dim_) * element;
            units.v[u] = units.v_run[u] = v + slot * std::size_t(dim_) * element;
        }
    }

    // The order in which memory is read: K of the tiles, V of them, then the first of what follows.
    void list_ahead(const Units& units, int first, int last, const Next& next, const void** list) const {
        int n = 0;
        for (int u = first; u < last; ++u)
            list[n++] = units.k_run[u];
        for (int u = first; u < last; ++u)
            list[n++] = units.v_run[u];
        const void* stay = units.v_run[last - 1];
        Units after;
        int from = 0, until = 0;
        if (next.item != nullptr) {
            const int start = next.partition * partition_tokens;
            const int seen = first_visible(step_.positions[std::size_t(next.item->first_row)]);
            from = std::max(0, seen - start) / lanes * 2;
            until = std::min(from + units_ahead, partition_units);
            locate(*next.item, next.partition, from, until, after);
        }
        for (int u = from; u < from + units_ahead; ++u)
            list[n++] = u < until && after.k_run[u] != nullptr ? after.k_run[u] : stay;
    }

    void compute(int worker, const Item& item, int partition, int n, const Room& room, const Next& next) {
        const KvShape& shape = kv_.shape();
        const int lo = *std::min_element(room.lo, room.lo + n), hi = *std::max_element(room.hi, room.hi + n);
        const int first = lo / lanes * 2, last = (hi + lanes - 1) / lanes * 2;
        Units units;
        locate(item, partition, first, last, units);
        // A tile of 16 may begin in a unit that no query sees: its masked half is read from its neighbour.
        for (int u = first; u < last; u += 2) {
            if (units.k[u] == nullptr) units.k[u] = units.k[u + 1];
        }
        const void* ahead[2 * partition_units + units_ahead];
        if (n <= queries_few) list_ahead(units, first, last, next, ahead);
        PartitionArgs a;
        a.q = room.q;
        a.lo = room.lo;
        a.hi = room.hi;
        a.n = n;
        a.head_dim = dim_;
        a.block_size = shape.block_size;
        a.k_units = units.k;
        a.v_units = units.v;
        a.fetch = n <= queries_few ? ahead : nullptr;
        a.scale = args_.scale;
        a.softcap = args_.softcap;
        a.scores =
            backend_.workers_[std::size_t(worker)].scores.get<float>(std::size_t(n) * partition_tokens);
        a.out = room.out;
        a.head_stride = stride_;
        a.maximum = room.maximum;
        a.sum = room.sum;
        kernel_(a);
    }

    Room room_of(int worker, int queries) {
        CpuBackend::Worker& w = backend_.workers_[std::size_t(worker)];
        const auto n = std::size_t(queries);
        Room room;
        auto* bytes = w.lists.get<std::uint8_t>(n * (sizeof(float*) + 3 * sizeof(int) + 2 * sizeof(float)));
        room.q = reinterpret_cast<const float**>(bytes);
        room.lo = reinterpret_cast<int*>(room.q + n);
        room.hi = room.lo + n;
        room.index = room.hi + n;
        room.maximum = reinterpret_cast<float*>(room.index + n);
        room.sum = room.maximum + n;
        room.out = w.partial.get<float>(n * std::size_t(stride_));
        return room;
    }

    // The running state of an item's queries: [queries] maximum, sum; [queries][stride] out. sum < 0: none
    // yet.
    struct State {
        float *maximum, *sum, *out;
    };
    State state_of(int worker, int queries) {
        auto* p = backend_.workers_[std::size_t(worker)].state.get<float>(std::size_t(queries) *
                                                                          std::size_t(stride_ + 2));
        State s{p, p + queries, p + 2 * std::int64_t(queries)};
        std::fill(s.sum, s.sum + queries, -1.0F);
        return s;
    }

    void fold(const State& s, int query, float m, float l, const float* o) const {
        float* out = s.out + query * stride_;
        if (s.sum[query] < 0) {
            s.maximum[query] = m;
            s.sum[query] = l;
            std::memcpy(out, o, std::size_t(stride_) * sizeof(float));
            return;
        }
        backend_.kernels_.merge(&s.maximum[query], &s.sum[query], out, m, l, o, dim_);
    }

    void finish(const Item& item, const State& s) const {
        for (int i = 0; i < item.rows * group_; ++i) {
            float* to = out_.f32() + (item.first_row + i / group_) * out_.row_stride +
                        std::int64_t(item.kv_head * group_ + i % group_) * dim_;
            backend_.kernels_.finish(s.out + i * stride_, s.sum[i], dim_, to);
        }
    }

    void whole(int worker, const Item& item, const Item* after) {
        const int queries = item.rows * group_;
        const Room room = room_of(worker, queries);
        const State state = state_of(worker, queries);
        const int end = item.first_partition + item.partitions;
        for (int p = item.first_partition; p < end; ++p) {
            const int n = visible(item, p, room);
            if (n == 0) continue;
            const Next next =
                p + 1 < end ? Next{&item, p + 1} : Next{after, after != nullptr ? after->first_partition : 0};
            compute(worker, item, p, n, room, next);
            for (int i = 0; i < n; ++i)
                fold(state, room.index[i], room.maximum[i], room.sum[i], room.out + i * stride_);
        }
        finish(item, state);
    }

    // A stored partition: for each of the item's queries maximum, sum (−1: sees nothing), out.
    void run_split(std::int64_t partitions) {
        const std::int64_t one = std::int64_t(max_queries()) * (stride_ + 2);
        float* states = backend_.splits_.get<float>(std::size_t(partitions * one));
        std::vector<std::pair<std::int32_t, std::int32_t>> pieces;  // item, partition
        std::int64_t next = 0;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            items_[i].first_state = next;
            next += items_[i].partitions;
            for (int p = 0; p < items_[i].partitions; ++p)
                pieces.emplace_back(int(i), items_[i].first_partition + p);
        }
        ThreadPool& pool = backend_.pool_;
        const auto count = std::int64_t(pieces.size());
        const std::int64_t grain = std::max<std::int64_t>(1, count / (std::int64_t(pool.threads()) * 8));
        pool.parallel_for(count, grain, [&](int worker, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                const auto [index, p] = pieces[std::size_t(i)];
                const Item& item = items_[std::size_t(index)];
                Next next;
                if (i + 1 < end) {
                    const auto [next_index, next_partition] = pieces[std::size_t(i + 1)];
                    next = {&items_[std::size_t(next_index)], next_partition};
                }
                piece(worker, item, p, next, states + (item.first_state + p - item.first_partition) * one);
            }
        });
        pool.parallel_for(std::int64_t(items_.size()), 1,
                          [&](int worker, std::int64_t begin, std::int64_t end) {
                              for (std::int64_t i = begin; i < end; ++i)
                                  merge(worker, items_[std::size_t(i)], states, one);
                          });
    }

    void piece(int worker, const Item& item, int partition, const Next& next, float* to) {
        const int queries = item.rows * group_;
        const Room room = room_of(worker, queries);
        const int n = visible(item, partition, room);
        for (int k = 0; k < queries; ++k)
            to[k * (stride_ + 2) + 1] = -1.0F;
        if (n == 0) return;
        compute(worker, item, partition, n, room, next);
        for (int k = 0; k < n; ++k) {
            float* state = to + std::int64_t(room.index[k]) * (stride_ + 2);
            state[0] = room.maximum[k];
            state[1] = room.sum[k];
            std::memcpy(state + 2, room.out + k * stride_, std::size_t(stride_) * sizeof(float));
        }
    }

    // Folds an item's stored partitions in ascending order.
    void merge(int worker, const Item& item, const float* states, std::int64_t one) {
        const int queries = item.rows * group_;
        const State state = state_of(worker, queries);
        for (int p = 0; p < item.partitions; ++p) {
            const float* from = states + (item.first_state + p) * one;
            for (int k = 0; k < queries; ++k, from += stride_ + 2) {
                if (from[1] < 0) continue;
                fold(state, k, from[0], from[1], from + 2);
            }
        }
        finish(item, state);
    }

    int max_queries() const {
        int n = 0;
        for (const Item& i : items_)
            n = std::max(n, i.rows * group_);
        return n;
    }

    CpuBackend& backend_;
    const StepBatch& step_;
    const AttentionArgs& args_;
    Tensor q_;
    const CpuKv& kv_;
    Tensor out_;
    const int group_, dim_, stride_;
    const PartitionKernel kernel_;
    std::vector<Item> items_;
};

void CpuBackend::attention(const DeviceBatch& batch, const AttentionArgs& args, Tensor q, const KvCache& kv,
                           Tensor out) {
    const StepBatch& step = batch.host();
    assert(q.rows == step.rows() && out.rows == step.rows());
    assert(out.cols == std::int64_t(args.shape.heads) * args.shape.head_dim);
    assert(args.shape.heads % args.shape.kv_heads == 0);
    AttentionRun(*this, step, args, q, static_cast<const CpuKv&>(kv), out).run();
}

}  // namespace recto::cpu
