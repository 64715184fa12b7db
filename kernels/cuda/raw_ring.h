// Device memory that the bytes of files wait in until they are unpacked: regions are taken and given back in
// order.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "kernels/cuda/device_memory.h"

namespace recto::cuda {

class RawRing {
  public:
    static constexpr std::size_t smallest = std::size_t(128) << 20;

    RawRing() = default;
    ~RawRing();
    RawRing(const RawRing&) = delete;
    RawRing& operator=(const RawRing&) = delete;

    // A region, 256-byte aligned, that copies enqueued on `copy` after this call may write. Where no space is
    // left it calls `consume_oldest`, which ends in consumed(). Error(memory).
    std::byte* take(std::size_t bytes, cudaStream_t copy, const std::function<void()>& consume_oldest);
    // Everything that reads the oldest region not yet consumed has been enqueued on `stream`.
    void consumed(cudaStream_t stream);

  private:
    struct Region {
        std::size_t begin = 0, end = 0;
        cudaEvent_t read = nullptr;  // set once consumed
    };
    bool overlaps(std::size_t begin, std::size_t end) const;
    void drop_oldest(cudaStream_t copy, const std::function<void()>& consume_oldest);

    DeviceMemory memory_;
    std::deque<Region> regions_;  // oldest first; the consumed ones come first
    std::vector<cudaEvent_t> spare_;
    std::size_t head_ = 0;
};

}  // namespace recto::cuda
