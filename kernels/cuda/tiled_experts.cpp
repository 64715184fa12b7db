#include "kernels/cuda/tiled_experts.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/choices.h"
#include "kernels/cuda/kernels.h"
#include "kernels/error.h"

namespace recto::cuda {
namespace {

static_assert(sizeof(int) + sizeof(ExpertTile) == sorted_slot_bytes);

const TiledWeight& tiled(const PackedWeight& w) {
    return static_cast<const TiledWeight&>(w);
}

bool alike(const TiledWeight& a, const TiledWeight& b) {
    return a.interleaved() == b.interleaved() &&
           std::ranges::equal(a.segments(), b.segments(), [](const auto& s, const auto& t) {
               const TileWeight &f = s.tile, &g = t.tile;
               return s.first_output == t.first_output && f.kind == g.kind && f.dtype == g.dtype &&
                      f.rows == g.rows && f.cols == g.cols && f.planes_bf16 == g.planes_bf16 &&
                      f.mode == g.mode && f.zero == g.zero && f.group_size == g.group_size;
           });
}

}  // namespace

TiledExperts::TiledExperts(Backend& backend, std::vector<std::unique_ptr<PackedWeight>> experts)
    : experts_(std::move(experts)) {
    assert(!experts_.empty());
    const TiledWeight& first = tiled(*experts_[0]);
    std::vector<ExpertPlanes> host;
    for (std::size_t s = 0; s < first.segments().size(); ++s) {
        segments_.push_back({first.segments()[s].tile, first.segments()[s].first_output, false, nullptr});
        for (const auto& e : experts_) {
            const TiledWeight& w = tiled(*e);
            if (!alike(first, w))
                throw Error(ErrorKind::input, "expected all experts of a layer in one form, found " +
                                                  first.describe() + " beside " + w.describe() +
                                                  "; use a file that quantizes them alike, or --device cpu");
            const TiledWeight::Segment& from = w.segments()[s];
            host.push_back({from.tile.data, from.tile.scale, from.tile.second, from.bias, from.order});
            segments_.back().permuted = segments_.back().permuted || from.order != nullptr;
        }
    }
    planes_ = backend.allocate(host.size() * sizeof(ExpertPlanes));
    backend.upload(planes_->data(), host.data(), host.size() * sizeof(ExpertPlanes));
    for (std::size_t s = 0; s < segments_.size(); ++s)
        segments_[s].planes = static_cast<const ExpertPlanes*>(planes_->data()) + s * experts_.size();
}

std::size_t TiledExperts::bytes() const {
    std::size_t n = planes_->bytes();
    for (const auto& e : experts_)
        n += e->bytes();
    return n;
}

DType TiledExperts::activation() const {
    return tiled(*experts_[0]).activation();
}
bool TiledExperts::interleaved() const {
    return tiled(*experts_[0]).interleaved();
}
bool TiledExperts::permuted() const {
    return std::ranges::any_of(segments_, [](const Segment& s) { return s.permuted; });
}

// Rows [first, first + rows) of a step.
struct ExpertRunner::Slice {
    std::int64_t first, rows;
    ExpertChoice choice;  // of these rows
    int experts, tokens;
    SortedSlots sorted;

    std::int64_t slots() const { return rows * choice.per_row; }
    Tensor rows_of(Tensor t, int per_row) const {  // of a tensor of the step with `per_row` rows a row
        t.data = static_cast<std::byte*>(t.data) +
                 std::size_t(first * per_row * t.row_stride) * dtype_bytes(t.dtype);
        t.rows = rows * per_row;
        return t;
    }
};

void ExpertRunner::expect(ProductNeeds& needs, const TiledExperts& e) {
    needs.experts = std::max<std::int64_t>(needs.experts, e.experts());
    // A gated product leaves no scratch; the others FP32 (down), or 16 bits of both parts (gate|up apart).
    if (!e.interleaved())
        needs.expert_row_bytes = std::max(needs.expert_row_bytes, e.rows() * std::int64_t(sizeof(float)));
    if (e.permuted()) needs.expert_input = std::max(needs.expert_input, e.cols());
}

bool ExpertRunner::reserve(const ProductNeeds& needs, std::int64_t max_rows) {
    if (needs.experts == 0) return false;
    rows_ = std::max(rows_, max_rows);
    const ExpertSizes sizes = expert_sizes(needs, rows_);
    const auto grow = [](DeviceMemory& memory, std::size_t bytes) {
        if (bytes <= memory.bytes()) return false;
        memory = DeviceMemory();  // first, so that both never exist together
        memory = DeviceMemory(bytes);
        return true;
    };
    bool moved = grow(sorted_, sizes.sorted);
    moved = grow(products_, sizes.products) || moved;
    moved = grow(inputs_, sizes.inputs) || moved;
    slots_ = sizes.most_slots;
    return moved;
}

template <class Work>
void ExpertRunner::for_slices(cudaStream_t stream, const ExpertChoice& choice, int experts, Work work) {
    const std::int64_t step = slots_ / choice.per_row;
    assert(step > 0 && experts <= slots_);
    auto* slots = static_cast<int*>(sorted_.data());
    auto* tiles = reinterpret_cast<ExpertTile*>(slots + slots_);
    auto* count = reinterpret_cast<int*>(tiles + slots_);
    for (std::int64_t first = 0; first < choice.rows; first += step) {
        Slice s{first, std::min(step, choice.rows - first), choice, experts, 0, {slots, tiles, count}};
        s.choice.rows = s.rows;
        s.choice.ids += first * choice.per_row;
        s.choice.weights += first * choice.per_row;
        s.tokens = expert_tile_tokens(s.slots(), s.rows, experts);
        sort_slots(stream, s.choice.ids, int(s.slots()), experts, s.tokens, s.sorted);
        work(s);
    }
}

void ExpertRunner::product(cudaStream_t stream, Tensor x, const Slice& slice, const TiledExperts::Segment& s,
                           int per_row, Epilogue epilogue, int splits, Tensor out) {
    assert(x.dtype == s.tile.dtype && x.row_stride % 8 == 0 &&
           reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0);
    if (s.permuted) {
        const Tensor in{inputs_.data(), x.dtype, slice.slots(), x.cols, x.cols};
        gather_inputs(stream, x, slice.choice.ids, slice.sorted.slots, per_row, s.planes, in);
        x = in;
        per_row = 0;
    }
    GroupedProduct p;
    p.weight = s.tile;
    p.planes = s.planes;
    p.sorted = slice.sorted;
    p.per_row = per_row;
    p.tokens = slice.tokens;
    p.splits = splits;
    p.epilogue = epilogue;
    const std::int64_t tiles = expert_tiles(slice.slots(), slice.tokens, slice.experts);
    p.grid = int(std::min<std::int64_t>(tiles * s.tile.blocks * splits,
                                        std::int64_t(multiprocessors_) * expert_blocks_a_multiprocessor));
    grouped_linear(stream, x, p, out);
}

void ExpertRunner::gate_up(cudaStream_t stream, Tensor x, const ExpertChoice& choice,
                           const TiledExperts& experts, Epilogue epilogue, Tensor out) {
    for_slices(stream, choice, experts.experts(), [&](const Slice& slice) {
        const Tensor in = slice.rows_of(x, 1), to = slice.rows_of(out, choice.per_row);
        if (experts.interleaved()) {
            product(stream, in, slice, experts.segments()[0], choice.per_row, epilogue, 1, to);
            return;
        }
        const Tensor both{products_.data(), experts.activation(), slice.slots(), experts.rows(),
                          experts.rows()};
        for (const auto& s : experts.segments())
            product(stream, in, slice, s, choice.per_row, Epilogue::store, 1,
                    both.columns(s.first_output, s.tile.outputs));
        gate_rows(stream, both, epilogue, to);
    });
}

void ExpertRunner::down(cudaStream_t stream, Tensor x, const ExpertChoice& choice,
                        const TiledExperts& experts, Tensor out) {
    for_slices(stream, choice, experts.experts(), [&](const Slice& slice) {
        const Tensor in = slice.rows_of(x, choice.per_row);
        const TileWeight& w = experts.segments()[0].tile;
        const std::int64_t room =
            std::int64_t(products_.bytes() / sizeof(float)) / (slice.slots() * experts.rows());
        const int splits =
            expert_splits(multiprocessors_, expert_tiles(slice.slots(), slice.tokens, slice.experts),
                          w.blocks, w.chunks, room);
        const Tensor products{products_.data(), DType::f32, slice.slots() * splits, experts.rows(),
                              experts.rows()};
        for (const auto& s : experts.segments())
            product(stream, in, slice, s, 1, Epilogue::store, splits,
                    products.columns(s.first_output, s.tile.outputs));
        combine_experts(stream, products, splits, slice.choice.weights, choice.per_row,
                        slice.rows_of(out, 1));
    });
}

}  // namespace recto::cuda
