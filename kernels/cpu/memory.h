// Page-aligned memory of the CPU backend.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

namespace recto::cpu {

// Zero-filled, mapped lazily: pages cost memory once touched. Large ones ask for huge pages.
class AlignedBytes {
  public:
    AlignedBytes() = default;
    explicit AlignedBytes(std::size_t bytes);  // Error(memory)
    ~AlignedBytes();
    AlignedBytes(AlignedBytes&& other) noexcept { swap(other); }
    AlignedBytes& operator=(AlignedBytes&& other) noexcept {
        swap(other);
        return *this;
    }
    std::uint8_t* data() const { return data_; }
    std::size_t size() const { return bytes_; }

  private:
    void swap(AlignedBytes& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(mapped_, other.mapped_);
    }
    std::uint8_t* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t mapped_ = 0;
};

// Scratch that only grows; its content is lost when it does.
class Scratch {
  public:
    template <class T>
    T* get(std::size_t count) {
        if (count * sizeof(T) > bytes_.size()) bytes_ = AlignedBytes(count * sizeof(T) * 5 / 4 + 4096);
        return reinterpret_cast<T*>(bytes_.data());
    }
    std::size_t size() const { return bytes_.size(); }

  private:
    AlignedBytes bytes_;
};

std::size_t memory_total_bytes();
std::size_t memory_free_bytes();  // what could be used without swapping, now

}  // namespace recto::cpu
