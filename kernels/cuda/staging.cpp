#include "kernels/cuda/staging.h"

#include <chrono>
#include <system_error>

#include "kernels/cuda/check.h"

namespace recto::cuda {

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t ns_since(Clock::time_point& last) {
    const auto now = Clock::now();
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last).count();
    last = now;
    return passed;
}

}  // namespace

StagingPool::StagingPool(int device, cudaStream_t stream, int threads)
    : device_(device), stream_(stream), slots_(std::size_t(threads) * slots_each * slot_bytes) {
    readers_.resize(std::size_t(threads));
    for (Reader& reader : readers_)
        for (cudaEvent_t& event : reader.copied)
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
                  "making an event");
    for (int i = 0; i < threads; ++i) {
        try {
            readers_[std::size_t(i)].thread = std::thread([this, i] { run(i); });
        } catch (const std::system_error& error) {
            if (i > 0) break;  // fewer do too
            throw Error(ErrorKind::runtime,
                        std::string("no thread can be started to read the model: ") + error.what());
        }
    }
}

StagingPool::~StagingPool() {
    abandon();
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    work_.notify_all();
    for (Reader& reader : readers_) {
        if (reader.thread.joinable()) reader.thread.join();
        for (cudaEvent_t event : reader.copied)
            if (event) cudaEventDestroy(event);
    }
    cudaStreamSynchronize(
        stream_);  // before the slots go; a failure has surfaced in what waited for the copies
}

void StagingPool::start(std::shared_ptr<Transfer> transfer) {
    {
        const std::lock_guard lock(mutex_);
        transfer->open = transfer->chunks.size();
        if (transfer->open == 0) return;
        queue_.push_back(std::move(transfer));
    }
    work_.notify_all();
}

bool StagingPool::enqueued(const Transfer& transfer) {
    const std::lock_guard lock(mutex_);
    return transfer.open == 0;
}

void StagingPool::wait(const Transfer& transfer) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return transfer.open == 0 || failure_; });
    if (failure_) std::rethrow_exception(failure_);
}

void StagingPool::abandon() {
    std::unique_lock lock(mutex_);
    queue_.clear();
    done_.wait(lock, [&] { return busy_ == 0; });
}

LoadTimes StagingPool::times() const {
    const double per_reader = 1e-9 / double(readers_.size());
    return {double(read_ns_) * per_reader, double(upload_ns_) * per_reader, double(idle_ns_) * per_reader};
}

bool StagingPool::take(std::shared_ptr<Transfer>& transfer, std::size_t& chunk) {
    std::unique_lock lock(mutex_);
    work_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (stop_) return false;
    transfer = queue_.front();
    chunk = transfer->next++;
    if (transfer->next == transfer->chunks.size()) queue_.pop_front();
    ++busy_;
    return true;
}

void StagingPool::carry(const StagedChunk& chunk, std::byte* slot, cudaEvent_t copied,
                        std::vector<StagedPiece>& pieces) {
    auto last = Clock::now();
    check(cudaEventSynchronize(copied), "waiting for a copy to the card");
    upload_ns_ += ns_since(last);
    pieces.clear();
    chunk(slot, pieces);
    read_ns_ += ns_since(last);
    for (const StagedPiece& piece : pieces)
        check(cudaMemcpyAsync(piece.to, slot + piece.at, piece.bytes, cudaMemcpyHostToDevice, stream_),
              "copying to the card");
    check(cudaEventRecord(copied, stream_), "recording an event");
    upload_ns_ += ns_since(last);
}

void StagingPool::run(int index) {
    Reader& reader = readers_[std::size_t(index)];
    std::byte* slots = slots_.at(std::size_t(index) * slots_each * slot_bytes);
    std::vector<StagedPiece> pieces;
    std::shared_ptr<Transfer> transfer;
    std::size_t chunk = 0;
    std::exception_ptr failure;
    try {
        check(cudaSetDevice(device_), "choosing the card");
    } catch (...) {
        failure = std::current_exception();
    }
    auto last = Clock::now();
    for (int slot = 0; take(transfer, chunk); slot = (slot + 1) % slots_each) {
        idle_ns_ += ns_since(last);
        if (!failure) {
            try {
                carry(transfer->chunks[chunk], slots + std::size_t(slot) * slot_bytes, reader.copied[slot],
                      pieces);
            } catch (...) {
                failure = std::current_exception();
            }
        }
        last = Clock::now();
        {
            const std::lock_guard lock(mutex_);
            if (failure && !failure_) failure_ = failure;
            --transfer->open;
            --busy_;
        }
        transfer.reset();
        done_.notify_all();
    }
}

}  // namespace recto::cuda
