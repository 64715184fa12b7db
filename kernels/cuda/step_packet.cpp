#include "kernels/cuda/step_packet.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>

#include "kernels/cuda/check.h"

namespace recto::cuda {
namespace {

constexpr std::size_t alignment = 256;
constexpr auto spin_time = std::chrono::microseconds(50);
constexpr std::size_t draw_ints = sizeof(RowDraw) / sizeof(int);
static_assert(sizeof(RowDraw) % sizeof(int) == 0);

// Hands out places in one range.
struct Places {
    char* base = nullptr;
    std::size_t used = 0;

    template <class T>
    T* take(std::size_t count) {
        T* place = reinterpret_cast<T*>(base + used);
        used += (count * sizeof(T) + alignment - 1) / alignment * alignment;
        return place;
    }
};

// Writes a dense packet and remembers where its parts will lie on the card.
class Writer {
  public:
    Writer(void* pinned, const void* landing)
        : pinned_(static_cast<int*>(pinned)), landing_(static_cast<const int*>(landing)) {}

    const int* put(const void* ints, std::size_t count) {
        if (count > 0) std::memcpy(pinned_ + used_, ints, count * sizeof(int));
        return skip(count);
    }
    const int* put(const std::vector<std::int32_t>& v) { return put(v.data(), v.size()); }
    const int* fill(int value, std::size_t count) {
        std::fill_n(pinned_ + used_, count, value);
        return skip(count);
    }
    // Room to be written in place.
    int* here() const { return pinned_ + used_; }
    const int* skip(std::size_t count) {
        const int* place = landing_ + used_;
        used_ += count;
        return place;
    }
    std::size_t bytes() const { return used_ * sizeof(int); }

  private:
    int* pinned_;
    const int* landing_;
    std::size_t used_ = 0;
};

// Spins a little, as a step that is nearly done is the usual case, and then sleeps.
void wait_for(cudaEvent_t event, const char* what) {
    const auto until = std::chrono::steady_clock::now() + spin_time;
    do {
        const cudaError_t status = cudaEventQuery(event);
        if (status == cudaSuccess) return;
        if (status != cudaErrorNotReady) check(status, what);
        cudaGetLastError();  // "not ready" is kept like an error, and the next launch would report it
    } while (std::chrono::steady_clock::now() < until);
    check(cudaEventSynchronize(event), what);
}

}  // namespace

StepPacket::StepPacket(Backend& backend, const BatchLimits& limits, int multiprocessors, int compute_major)
    : limits_(limits),
      attention_(backend, limits, multiprocessors, compute_major),
      known_(std::size_t(limits.max_sequences)) {
    const auto rows = std::size_t(limits.max_rows), sequences = std::size_t(limits.max_sequences),
               outputs = std::size_t(limits.max_outputs);
    const std::size_t table_ints = sequences * std::size_t(limits.max_blocks);
    const auto lay_out = [&](Places& p) {
        view_.token_ids = p.take<int>(rows);
        view_.positions = p.take<int>(rows);
        view_.row_sequence = p.take<int>(rows);
        view_.slots = p.take<int>(rows);
        view_.token_from = p.take<int>(rows);
        view_.logit_rows = p.take<int>(outputs);
        view_.query_start = p.take<int>(sequences + 1);
        view_.context_tokens = p.take<int>(sequences);
        view_.drawn = p.take<int>(outputs);
        draws_ = p.take<RowDraw>(outputs);
        parts_ = p.take<RowPart>(outputs * std::size_t(max_row_parts));
        plan_ = p.take<int>(attention_.packet_ints());
        view_.block_tables = tables_ = p.take<int>(table_ints);
        resident_ = p.take<int>(table_ints);
    };
    const PacketSizes sizes = packet_sizes(limits, attention_.packet_ints());
    fixed_ = backend.allocate(sizes.fixed);
    Places place{static_cast<char*>(fixed_->data()), 0};
    lay_out(place);
    assert(place.used == sizes.fixed);
    view_.table_stride = limits.max_blocks;
    view_.work = attention_.view(plan_);

    packet_bytes_ = sizes.landing;
    landing_ = backend.allocate(packet_bytes_);
    try {
        for (Upload& u : uploads_) {
            check(cudaMallocHost(&u.pinned, packet_bytes_), "allocating pinned memory");
            check(cudaEventCreateWithFlags(&u.copied, cudaEventDisableTiming | cudaEventBlockingSync),
                  "making an event");
        }
        for (Fetch& f : fetches_) {
            check(cudaMallocHost(&f.pinned, std::max<std::size_t>(outputs, 1) * sizeof(int)),
                  "allocating pinned memory");
            check(cudaEventCreateWithFlags(&f.arrived, cudaEventDisableTiming | cudaEventBlockingSync),
                  "making an event");
        }
    } catch (...) {
        release();
        throw;
    }
}

StepPacket::~StepPacket() {
    // Nobody may have waited for the last steps.
    for (const Fetch& f : fetches_)
        cudaEventSynchronize(f.arrived);
    release();
}

void StepPacket::release() {
    for (const Upload& u : uploads_) {
        if (u.copied) cudaEventDestroy(u.copied);
        cudaFreeHost(u.pinned);
    }
    for (const Fetch& f : fetches_) {
        if (f.arrived) cudaEventDestroy(f.arrived);
        cudaFreeHost(f.pinned);
    }
}

// A sequence keeps its row of the resident tables while it takes part in steps; a new one takes the row that
// was not used for longest. Without ids the rows are those of the step, and every table is compared all the
// same.
void StepPacket::place_tables(const StepBatch& step) {
    const auto sequences = std::size_t(step.sequences());
    table_rows_.assign(sequences, -1);
    ++steps_;
    if (step.sequence_ids.empty()) {
        for (std::size_t s = 0; s < sequences; ++s) {
            table_rows_[s] = std::int32_t(s);
            row_of_.erase(known_[s].id);
            known_[s].id = 0;
            known_[s].step = steps_;
        }
        return;
    }
    std::size_t unknown = 0;
    for (std::size_t s = 0; s < sequences; ++s) {
        const auto found = row_of_.find(step.sequence_ids[s]);
        if (found == row_of_.end()) {
            ++unknown;
            continue;
        }
        table_rows_[s] = found->second;
        known_[std::size_t(found->second)].step = steps_;
    }
    if (unknown == 0) return;
    std::vector<std::int32_t> oldest;
    for (std::size_t row = 0; row < known_.size(); ++row)
        if (known_[row].step != steps_) oldest.push_back(std::int32_t(row));
    std::ranges::sort(oldest, {}, [this](std::int32_t row) { return known_[std::size_t(row)].step; });
    auto next = oldest.begin();
    for (std::size_t s = 0; s < sequences; ++s) {
        if (table_rows_[s] >= 0) continue;
        Table& table = known_[std::size_t(*next)];
        row_of_.erase(table.id);
        table.id = step.sequence_ids[s];
        table.step = steps_;
        row_of_.emplace(table.id, *next);
        table_rows_[s] = *next++;
    }
}

void StepPacket::fill(const StepBatch& step, cudaStream_t stream) {
    const auto rows = std::size_t(step.rows()), sequences = std::size_t(step.sequences()),
               outputs = std::size_t(step.outputs());
    assert(step.rows() <= limits_.max_rows && step.sequences() <= limits_.max_sequences &&
           step.outputs() <= limits_.max_outputs && step.max_blocks <= limits_.max_blocks);
    assert(step.draws.empty() || step.draws.size() == outputs);
    assert(step.token_from.empty() || step.token_from.size() == rows);
    host_ = step;
    place_tables(step);
    Upload& upload = uploads_[steps_ % 2];
    wait_for(upload.copied, "copying the packet of the step before the last");

    Writer w(upload.pinned, landing_->data());
    PacketLayout layout{};
    int sections = 0;
    const auto section = [&](const int* from, const void* to, std::size_t count) {
        layout.sections[sections++] = {from, static_cast<int*>(const_cast<void*>(to)), int(count)};
    };
    if (step.draws.empty()) none_.resize(std::max(none_.size(), outputs));
    section(w.put(step.draws.empty() ? none_.data() : step.draws.data(), outputs * draw_ints), draws_,
            outputs * draw_ints);
    section(w.put(step.token_ids), view_.token_ids, rows);
    section(w.put(step.positions), view_.positions, rows);
    section(w.put(step.row_sequence), view_.row_sequence, rows);
    section(w.put(step.slots), view_.slots, rows);
    section(step.token_from.empty() ? w.fill(-1, rows) : w.put(step.token_from), view_.token_from, rows);
    section(w.put(step.logit_rows), view_.logit_rows, outputs);
    section(w.put(step.query_start), view_.query_start, step.query_start.size());
    section(w.put(step.context_tokens), view_.context_tokens, sequences);
    attention_.plan_step(step);
    section(w.put(attention_.decode_ints().data(), attention_.decode_ints().size()), plan_,
            attention_.decode_ints().size());
    section(w.put(attention_.prefill_ints().data(), attention_.prefill_ints().size()),
            plan_ + attention_.prefill_place(), attention_.prefill_ints().size());
    assert(sections == packet_sections);

    layout.sequences = step.sequences();
    layout.resident = resident_;
    layout.tables = tables_;
    layout.table_stride = limits_.max_blocks;
    layout.table_rows = w.put(table_rows_);
    int* counts = w.here();
    layout.block_counts = w.skip(sequences);
    int* first_new = w.here();
    layout.first_new = w.skip(sequences);
    int* new_start = w.here();
    layout.new_start = w.skip(sequences);
    const int* blocks_begin = w.here();
    layout.new_blocks = w.skip(0);
    for (std::size_t s = 0; s < sequences; ++s) {
        const std::span table(step.block_tables.data() + s * std::size_t(step.max_blocks),
                              std::size_t(step.max_blocks));
        std::vector<std::int32_t>& kept = known_[std::size_t(table_rows_[s])].blocks;
        const auto same = std::ranges::mismatch(table, kept).in1;
        const auto end = std::find(same, table.end(), -1);
        const auto first = std::size_t(same - table.begin()), count = std::size_t(end - table.begin());
        kept.resize(first);
        kept.insert(kept.end(), same, end);
        counts[s] = int(count);
        first_new[s] = int(first);
        new_start[s] = int(w.here() - blocks_begin);
        w.put(kept.data() + first, count - first);
    }
    assert(w.bytes() <= packet_bytes_);
    check(cudaMemcpyAsync(landing_->data(), upload.pinned, w.bytes(), cudaMemcpyHostToDevice, stream),
          "copying the step's packet");
    check(cudaEventRecord(upload.copied, stream), "recording an event");
    spread_packet(stream, layout);
}

void StepPacket::fetch(cudaStream_t stream) {
    Fetch& f = fetches_[++fetched_ % 2];
    f.outputs = host_.outputs();
    if (f.outputs > 0)
        check(cudaMemcpyAsync(f.pinned, view_.drawn, std::size_t(f.outputs) * sizeof(int),
                              cudaMemcpyDeviceToHost, stream),
              "copying the drawn ids");
    check(cudaEventRecord(f.arrived, stream), "recording an event");
}

std::span<const std::int32_t> StepPacket::drawn(int fetches_ago) {
    assert(fetches_ago >= 0 && fetches_ago < 2 && std::uint64_t(fetches_ago) < fetched_);
    const Fetch& f = fetches_[(fetched_ - std::uint64_t(fetches_ago)) % 2];
    wait_for(f.arrived, "computing the step");
    return {f.pinned, std::size_t(f.outputs)};
}

}  // namespace recto::cuda
