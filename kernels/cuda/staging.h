// Reader threads that carry bytes from host memory through pinned slots to the device. While one thread
// copies pages of the file map into its slot, the copy engine empties the others'.
#pragma once
#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/device_memory.h"

namespace recto::cuda {

// `bytes` from place `at` of the slot go to device memory `to`.
struct StagedPiece {
    void* to;
    std::size_t at;
    std::size_t bytes;
};
// Fills the slot, [StagingPool::slot_bytes], and says where its parts belong.
using StagedChunk = std::function<void(std::byte* slot, std::vector<StagedPiece>& pieces)>;

// Chunks that arrive together. `keep_alive` holds what they read.
struct Transfer {
    std::vector<StagedChunk> chunks;
    std::shared_ptr<const void> keep_alive;
    std::size_t next = 0;  // these two under the pool's lock
    std::size_t open = 0;  // not yet enqueued
};

class StagingPool {
  public:
    static constexpr std::size_t slot_bytes = std::size_t(2) << 20;

    // Copies are enqueued on `stream`. Error(memory, runtime).
    StagingPool(int device, cudaStream_t stream, int threads);
    ~StagingPool();  // abandons
    StagingPool(const StagingPool&) = delete;
    StagingPool& operator=(const StagingPool&) = delete;

    void start(std::shared_ptr<Transfer> transfer);
    bool enqueued(const Transfer& transfer);  // all of its copies
    void wait(const Transfer& transfer);      // until enqueued(); rethrows what a reader met
    // Drops the chunks that no reader has taken and waits for the others; none is enqueued after.
    void abandon();
    // Of the readers' time since the pool was made: copying from the map, waiting for a free slot, waiting
    // for work. They sum to its wall time.
    LoadTimes times() const;

  private:
    static constexpr int slots_each = 2;
    struct Reader {
        std::thread thread;
        cudaEvent_t copied[slots_each] = {};
    };

    void run(int index);
    bool take(std::shared_ptr<Transfer>& transfer, std::size_t& chunk);
    void carry(const StagedChunk& chunk, std::byte* slot, cudaEvent_t copied,
               std::vector<StagedPiece>& pieces);

    int device_;
    cudaStream_t stream_;
    PinnedMemory slots_;  // [readers][slots_each][slot_bytes]
    std::vector<Reader> readers_;
    mutable std::mutex mutex_;
    std::condition_variable work_, done_;
    std::deque<std::shared_ptr<Transfer>> queue_;  // those with chunks that no reader has taken
    int busy_ = 0;
    bool stop_ = false;
    std::exception_ptr failure_;
    std::atomic<std::int64_t> read_ns_{0}, upload_ns_{0}, idle_ns_{0};
};

}  // namespace recto::cuda
