#include "kernels/cuda/raw_ring.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"

namespace recto::cuda {

RawRing::~RawRing() {
    for (const Region& region : regions_)
        if (region.read) cudaEventDestroy(region.read);
    for (cudaEvent_t event : spare_)
        cudaEventDestroy(event);
}

bool RawRing::overlaps(std::size_t begin, std::size_t end) const {
    return std::any_of(regions_.begin(), regions_.end(),
                       [&](const Region& r) { return r.begin < end && begin < r.end; });
}

void RawRing::drop_oldest(cudaStream_t copy, const std::function<void()>& consume_oldest) {
    if (regions_.front().read == nullptr) consume_oldest();
    assert(regions_.front().read != nullptr);
    check(cudaStreamWaitEvent(copy, regions_.front().read, 0), "waiting for an event");
    spare_.push_back(regions_.front().read);
    regions_.pop_front();
}

std::byte* RawRing::take(std::size_t bytes, cudaStream_t copy, const std::function<void()>& consume_oldest) {
    bytes = (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256;
    if (bytes > memory_.bytes()) {
        while (!regions_.empty())
            drop_oldest(copy, consume_oldest);
        check(cudaStreamSynchronize(copy), "waiting for the card");  // which has waited for every reader
        memory_ = DeviceMemory();
        memory_ = DeviceMemory(std::max(bytes, smallest));
        head_ = 0;
    }
    const std::size_t begin = head_ + bytes <= memory_.bytes() ? head_ : 0;
    while (overlaps(begin, begin + bytes))
        drop_oldest(copy, consume_oldest);
    regions_.push_back({begin, begin + bytes, nullptr});
    head_ = begin + bytes;
    return memory_.at(begin);
}

void RawRing::consumed(cudaStream_t stream) {
    const auto oldest =
        std::find_if(regions_.begin(), regions_.end(), [](const Region& r) { return r.read == nullptr; });
    assert(oldest != regions_.end());
    cudaEvent_t event = nullptr;
    if (spare_.empty()) {
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
    } else {
        event = spare_.back();
        spare_.pop_back();
    }
    oldest->read = event;  // first: a failed record must not lose it
    check(cudaEventRecord(event, stream), "recording an event");
}

}  // namespace recto::cuda
