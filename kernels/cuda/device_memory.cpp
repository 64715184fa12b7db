#include "kernels/cuda/device_memory.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/check.h"

namespace recto::cuda {

namespace {

std::string mib(std::size_t bytes) {
    return std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB";
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    const cudaError_t status = cudaMalloc(&data_, std::max<std::size_t>(bytes, 1));
    if (status == cudaErrorMemoryAllocation) {
        std::size_t free = 0;
        std::size_t total = 0;
        cudaGetLastError();  // the failed allocation is reported here and must not surface again
        cudaMemGetInfo(&free, &total);
        throw Error(ErrorKind::memory, "not enough memory on the card: needed " + mib(bytes) + ", " +
                                           mib(free) + " of " + mib(total) + " are free");
    }
    check(status, "allocating memory");
}

DeviceMemory::~DeviceMemory() {
    cudaFree(data_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    const cudaError_t status = cudaHostAlloc(&data_, std::max<std::size_t>(bytes, 1), cudaHostAllocDefault);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        throw Error(ErrorKind::memory, "not enough host memory that can be pinned for the card: needed " +
                                           mib(bytes) + "; close other programs or offload less");
    }
    check(status, "allocating pinned memory");
}

PinnedMemory::~PinnedMemory() {
    cudaFreeHost(data_);
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

}  // namespace recto::cuda
