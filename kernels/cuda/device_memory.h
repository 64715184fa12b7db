// Owned ranges of device memory and of pinned host memory. Error(memory) names what was needed and what is
// free.
#pragma once
#include <cstddef>

namespace recto::cuda {

class DeviceMemory {
  public:
    DeviceMemory() = default;
    explicit DeviceMemory(std::size_t bytes);
    ~DeviceMemory();
    DeviceMemory(DeviceMemory&& other) noexcept;
    DeviceMemory& operator=(DeviceMemory&& other) noexcept;
    void* data() const { return data_; }
    std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(data_) + offset; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

class PinnedMemory {
  public:
    PinnedMemory() = default;
    explicit PinnedMemory(std::size_t bytes);
    ~PinnedMemory();
    PinnedMemory(PinnedMemory&& other) noexcept;
    PinnedMemory& operator=(PinnedMemory&& other) noexcept;
    void* data() const { return data_; }
    std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(data_) + offset; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace recto::cuda
