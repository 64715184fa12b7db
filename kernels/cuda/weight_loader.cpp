#include "kernels/cuda/weight_loader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/host_planes.h"
#include "kernels/cuda/offload.h"
#include "kernels/cuda/plane_memory.h"
#include "kernels/cuda/raw_ring.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/unpack.h"

namespace recto::cuda {

namespace {

constexpr int most_readers = 16;  // 16 reach what one bus takes: 3 GB/s each on a Sapphire Rapids host

int reader_count() {
    const int cores = int(std::thread::hardware_concurrency());  // that this process may use
    return std::clamp(cores, 2, most_readers);
}

class ResidentMemory final : public WeightMemory {
  public:
    explicit ResidentMemory(std::shared_ptr<const DeviceMemory> memory) : memory_(std::move(memory)) {}
    std::byte* at(std::size_t offset) const override { return memory_->at(offset); }
    std::size_t bytes() const override { return memory_->bytes(); }
    bool offloaded() const override { return false; }

  private:
    std::shared_ptr<const DeviceMemory> memory_;
};

std::size_t aligned(std::size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

// Whole pages of the map that lie in a range, and what the kernel may do about them. Only hints.
void advise(const std::byte* from, std::size_t bytes, int advice) {
    static const auto page = std::uintptr_t(sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<std::uintptr_t>(from) + page - 1) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(from) + bytes) / page * page;
    if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

// Copies out of the file map. Its pages are mapped by one call (Linux 5.14) instead of a fault for every few
// of them, and given back at once: a load holds no more of the file than is on its way.
void copy_from_map(std::byte* to, const std::byte* from, std::size_t bytes) {
#ifdef MADV_POPULATE_READ
    advise(from, bytes, MADV_POPULATE_READ);
#endif
    std::memcpy(to, from, bytes);
    advise(from, bytes, MADV_DONTNEED);
}

// Bytes begin … end − 1 of the plane without the gaps between its lines. `mapped`: they are pages of a file.
void copy_range(const RawPlane& plane, const RowOrder& order, bool mapped, std::size_t begin, std::size_t end,
                std::byte* to) {
    const auto line_bytes = std::size_t(plane.line_bytes);
    if (order.head_dim == 0 && plane.line_bytes == plane.stride) {
        if (mapped)
            copy_from_map(to, plane.data + begin, end - begin);
        else
            std::memcpy(to, plane.data + begin, end - begin);
        return;
    }
    while (begin < end) {
        const std::size_t line = begin / line_bytes, in_line = begin % line_bytes;
        const std::size_t n = std::min(line_bytes - in_line, end - begin);
        std::memcpy(to, plane.data + order.file_row(std::int64_t(line)) * plane.stride + in_line, n);
        to += n;
        begin += n;
    }
}

void add_range_chunks(Transfer& transfer, const RawPlane& plane, const RowOrder& order, bool mapped,
                      std::byte* to) {
    for (std::size_t begin = 0; begin < plane.bytes(); begin += StagingPool::slot_bytes) {
        const std::size_t end = std::min(plane.bytes(), begin + StagingPool::slot_bytes);
        transfer.chunks.push_back([=](std::byte* slot, std::vector<StagedPiece>& pieces) {
            copy_range(plane, order, mapped, begin, end, slot);
            pieces.push_back({to + begin, 0, end - begin});
        });
    }
}

// An array in memory of our own.
RawPlane plain_plane(const void* data, std::size_t bytes) {
    return {static_cast<const std::byte*>(data), 1, std::int64_t(bytes), std::int64_t(bytes)};
}

}  // namespace

class WeightLoader::Impl {
  public:
    Impl(int device, cudaStream_t stream) : device_(device), stream_(stream) {}
    ~Impl() { release(); }

    std::unique_ptr<WeightMemory> allocate(std::size_t bytes) {
        if (offload_ && offloading_) return offload_->allocate(bytes);
        auto memory = std::make_shared<const DeviceMemory>(bytes);
        held_.push_back(memory);
        return std::make_unique<ResidentMemory>(std::move(memory));
    }

    void load_dense(const WeightRows& rows, std::byte* to) {
        auto transfer = std::make_shared<Transfer>();
        if (const auto raw = rows.raw(); raw && raw->layout == RawLayout::dense) {
            add_range_chunks(*transfer, raw->packed, raw->order, raw->keep_alive != nullptr, to);
            transfer->keep_alive = raw->keep_alive;
            submit(transfer, {}, false);
            return;
        }
        const auto row_bytes = std::size_t(rows.cols()) * dtype_bytes(rows.form().dense);
        const std::int64_t n = rows_of_chunk(rows, row_bytes);
        for (std::int64_t first = 0; first < rows.rows(); first += n)
            transfer->chunks.push_back([&rows, first, n, row_bytes, to](std::byte* slot, auto& pieces) {
                const std::int64_t count = std::min(n, rows.rows() - first);
                rows.read_dense(first, count, slot);
                pieces.push_back({to + std::size_t(first) * row_bytes, 0, std::size_t(count) * row_bytes});
            });
        submit(transfer, {}, false);
        pool().wait(*transfer);  // `rows` may go now
    }

    void load_grouped(const WeightRows& rows, Consume consume) {
        if (auto raw = rows.raw())
            load_raw(rows, std::move(*raw), std::move(consume));
        else
            load_read(rows, std::move(consume));
    }

    void put(const void* host, std::size_t bytes, std::byte* to) {
        auto transfer = std::make_shared<Transfer>();
        const auto* from = static_cast<const std::byte*>(host);
        auto copy = std::make_shared<std::vector<std::byte>>(from, from + bytes);
        add_range_chunks(*transfer, plain_plane(copy->data(), bytes), {}, false, to);
        transfer->keep_alive = std::move(copy);
        submit(transfer, {}, false);
    }

    void seal(const WeightMemory& memory) {
        if (!memory.offloaded()) return;
        // What passes through the same slot two layers later must not be copied in before this has left it.
        submit(
            std::make_shared<Transfer>(),
            [this, &memory, offload = offload_] {
                offload->store(memory, stream_);
                if (!stored_)
                    check(cudaEventCreateWithFlags(&stored_, cudaEventDisableTiming), "making an event");
                check(cudaEventRecord(stored_, stream_), "recording an event");
            },
            false);
    }

    void finish() {
        if (!pool_) return;
        drain(0);
        join_copies();
        check(cudaStreamSynchronize(stream_), "waiting for the card");
        held_.clear();
    }

    void begin(const LoadPlan& plan) {
        release();
        loading_ = true;
        times_ = {};
        if (!plan.host_layers.empty()) offload_ = std::make_shared<OffloadSlots>(plan.host_layers);
    }
    bool loading() const { return loading_; }

    void begin_layer(int layer) {
        offloading_ = offload_ && offload_->has(layer);
        if (!offloading_) return;
        // Nothing may be copied into the slot before what it holds has gone to its home.
        drain(0);
        if (stored_) check(cudaStreamWaitEvent(copy_, stored_, 0), "waiting for an event");
        offload_->begin_layer(layer);
    }

    std::unique_ptr<WeightStream> end() {
        finish();
        auto offload = offload_;
        release();
        return offload ? make_weight_stream(std::move(offload), stream_) : nullptr;
    }

    void release() {
        jobs_.clear();
        if (pool_) {
            pool_->abandon();
            times_ = pool_->times();
            pool_.reset();
        }
        cudaStreamSynchronize(stream_);  // kernels under way read the memory that goes now
        ring_.reset();
        planes_ = DeviceMemory();
        if (stored_) cudaEventDestroy(std::exchange(stored_, nullptr));
        if (arrived_) cudaEventDestroy(std::exchange(arrived_, nullptr));
        if (copy_) cudaStreamDestroy(std::exchange(copy_, nullptr));
        held_.clear();
        offload_.reset();
        offloading_ = false;
        loading_ = false;
    }

    LoadTimes times() const { return pool_ ? pool_->times() : times_; }

    cudaStream_t stream() const { return stream_; }

  private:
    // What happens, in this order, on the thread of the caller once the transfer's copies are enqueued.
    struct Job {
        std::shared_ptr<Transfer> transfer;
        std::function<void()> then;  // may be empty
        bool in_ring = false;
    };
    static constexpr std::size_t most_jobs = 64;  // bounds what a cancelled load has to give up

    // Threads, slots and streams exist while weights are loaded.
    StagingPool& pool() {
        if (!pool_) {
            check(cudaStreamCreateWithFlags(&copy_, cudaStreamNonBlocking), "making a stream");
            check(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "making an event");
            ring_.emplace();
            pool_.emplace(device_, copy_, reader_count());
        }
        return *pool_;
    }

    void submit(std::shared_ptr<Transfer> transfer, std::function<void()> then, bool in_ring) {
        pool().start(transfer);
        jobs_.push_back({std::move(transfer), std::move(then), in_ring});
        while (!jobs_.empty() && pool_->enqueued(*jobs_.front().transfer))
            finish_oldest();
        drain(most_jobs);
    }

    void drain(std::size_t most) {
        while (jobs_.size() > most)
            finish_oldest();
    }

    void finish_oldest() {
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        pool_->wait(*job.transfer);
        if (!job.then) return;
        join_copies();
        job.then();
        if (job.in_ring) ring_->consumed(stream_);
    }

    // What is enqueued from here on sees all copies so far.
    void join_copies() {
        check(cudaEventRecord(arrived_, copy_), "recording an event");
        check(cudaStreamWaitEvent(stream_, arrived_, 0), "waiting for an event");
    }

    std::byte* take_region(std::size_t bytes) {
        pool();
        return ring_->take(bytes, copy_, [this] { finish_oldest_in_ring(); });
    }
    void finish_oldest_in_ring() {
        for (bool found = false; !found;) {
            assert(!jobs_.empty());
            found = jobs_.front().in_ring;
            finish_oldest();
        }
    }

    PlaneMemory planes_for(const WeightForm& form, std::int64_t rows, std::int64_t cols) {
        const std::size_t bytes = planes_at(form, rows, cols, nullptr).bytes;
        if (bytes > planes_.bytes()) {
            check(cudaStreamSynchronize(stream_), "waiting for the card");
            planes_ = DeviceMemory();
            planes_ = DeviceMemory(bytes);
        }
        return planes_at(form, rows, cols, planes_.at(0));
    }

    void load_raw(const WeightRows& rows, RawWeight raw, Consume consume) {
        const std::size_t permutation_bytes = raw.permutation.size() * sizeof(std::int32_t);
        const std::size_t packed_at = 0, scales_at = packed_at + aligned(raw.packed.bytes()),
                          zeros_at = scales_at + aligned(raw.scales.bytes()),
                          permutation_at = zeros_at + aligned(raw.zeros.bytes()),
                          end = permutation_at + aligned(permutation_bytes);
        std::byte* region = take_region(end);
        RawView view;
        view.layout = raw.layout;
        view.blocks = region;
        view.words = {raw.layout,
                      raw.bits,
                      raw.zeros_less_one,
                      raw.zero_bytes,
                      region,
                      raw.zeros.lines > 0 ? region + zeros_at : nullptr,
                      region + scales_at,
                      raw.packed.line_bytes,
                      raw.zeros.line_bytes,
                      raw.scales.line_bytes,
                      int(dtype_bytes(raw.scale_dtype))};
        view.file_group = raw.file_group;
        if (permutation_bytes > 0)
            view.permutation = reinterpret_cast<std::int32_t*>(region + permutation_at);
        auto transfer = std::make_shared<Transfer>();
        // The map and the permutation live until the last chunk has been read.
        const auto kept = std::make_shared<const RawWeight>(std::move(raw));
        transfer->keep_alive = kept;
        const bool mapped = kept->keep_alive != nullptr;
        add_range_chunks(*transfer, kept->packed, kept->order, mapped, region + packed_at);
        add_range_chunks(*transfer, kept->scales, {}, mapped, region + scales_at);
        add_range_chunks(*transfer, kept->zeros, {}, mapped, region + zeros_at);
        add_range_chunks(*transfer, plain_plane(kept->permutation.data(), permutation_bytes), {}, false,
                         region + permutation_at);
        submit(
            transfer,
            [this, view, form = rows.form(), n = rows.rows(), cols = rows.cols(),
             consume = std::move(consume)] {
                const PlaneMemory memory = planes_for(form, n, cols);
                unpack(stream_, view, memory.planes);
                consume(memory.planes, stream_);
            },
            true);
    }

    // A weight that only its reader can unpack: on the readers' threads.
    void load_read(const WeightRows& rows, Consume consume) {
        const std::size_t bytes = planes_at(rows.form(), rows.rows(), rows.cols(), nullptr).bytes;
        const LogicalPlanes planes =
            planes_at(rows.form(), rows.rows(), rows.cols(), take_region(bytes)).planes;
        auto transfer = std::make_shared<Transfer>();
        const std::int64_t n = rows_of_chunk(rows, host_plane_bytes(rows.form(), rows.cols()));
        for (std::int64_t first = 0; first < rows.rows(); first += n)
            transfer->chunks.push_back([&rows, planes, first, n](std::byte* slot, auto& pieces) {
                read_planes(rows, first, std::min(n, rows.rows() - first), planes, slot, pieces);
            });
        submit(
            transfer, [this, planes, consume = std::move(consume)] { consume(planes, stream_); }, true);
        pool().wait(*transfer);  // `rows` may go now
    }

    static std::int64_t rows_of_chunk(const WeightRows& rows, std::size_t row_bytes) {
        const auto most = std::int64_t(StagingPool::slot_bytes / row_bytes);
        if (most == 0)
            throw Error(ErrorKind::memory, "a weight's row of " + std::to_string(row_bytes) +
                                               " bytes is longer than what is staged at once (" +
                                               std::to_string(StagingPool::slot_bytes) + ")");
        const std::int64_t whole = most / rows.preferred_rows() * rows.preferred_rows();
        return whole > 0 ? whole : most;
    }

    int device_;
    cudaStream_t stream_;
    cudaStream_t copy_ = nullptr;
    cudaEvent_t arrived_ = nullptr, stored_ = nullptr;
    std::optional<RawRing> ring_;
    DeviceMemory planes_;  // of the part that is being repacked
    std::optional<StagingPool> pool_;
    std::deque<Job> jobs_;
    // A weight that is given up before its bytes have arrived leaves its memory to those on the way.
    std::vector<std::shared_ptr<const DeviceMemory>> held_;
    std::shared_ptr<OffloadSlots> offload_;
    bool offloading_ = false;  // what is allocated now
    bool loading_ = false;
    LoadTimes times_;
};

WeightLoader::WeightLoader(int device, cudaStream_t stream) : impl_(std::make_unique<Impl>(device, stream)) {}
WeightLoader::~WeightLoader() = default;

// After a failure nothing may be on its way to memory that the caller is about to free.
template <class F>
auto WeightLoader::guarded(F&& work) {
    try {
        return work();
    } catch (...) {
        impl_->release();
        throw;
    }
}

std::unique_ptr<WeightMemory> WeightLoader::allocate(std::size_t bytes) {
    return guarded([&] { return impl_->allocate(bytes); });
}
void WeightLoader::load_dense(const WeightRows& rows, std::byte* to) {
    guarded([&] { impl_->load_dense(rows, to); });
}
void WeightLoader::load_grouped(const WeightRows& rows, Consume consume) {
    assert(rows.form().grouped);
    guarded([&] { impl_->load_grouped(rows, std::move(consume)); });
}
void WeightLoader::put(const void* host, std::size_t bytes, std::byte* to) {
    guarded([&] { impl_->put(host, bytes, to); });
}
void WeightLoader::seal(const WeightMemory& memory) {
    guarded([&] { impl_->seal(memory); });
}
void WeightLoader::finish() {
    guarded([&] { impl_->finish(); });
}
void WeightLoader::begin(const LoadPlan& plan) {
    impl_->begin(plan);
}
bool WeightLoader::loading() const {
    return impl_->loading();
}
void WeightLoader::begin_layer(int layer) {
    guarded([&] { impl_->begin_layer(layer); });
}
std::unique_ptr<WeightStream> WeightLoader::end() {
    return guarded([&] { return impl_->end(); });
}
void WeightLoader::release() {
    impl_->release();
}
LoadTimes WeightLoader::times() const {
    return impl_->times();
}

std::string WeightLoader::compare_planes(const WeightRows& rows) {
    std::string difference;
    load_grouped(rows, [&](const LogicalPlanes& planes, cudaStream_t stream) {
        difference = compare_with_read(rows, planes, stream);
    });
    finish();
    return difference;
}

}  // namespace recto::cuda
