// Page-aligned memory of the CPU backend.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
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

// A piece of memory that others may share; it lives as long as any of its pieces.
class SharedBytes {
  public:
    SharedBytes() = default;
    SharedBytes(std::shared_ptr<const AlignedBytes> area, std::size_t first, std::size_t bytes)
        : area_(std::move(area)), first_(first), bytes_(bytes) {}
    std::uint8_t* data() const { return area_ ? area_->data() + first_ : nullptr; }
    std::size_t size() const { return bytes_; }

  private:
    std::shared_ptr<const AlignedBytes> area_;
    std::size_t first_ = 0;
    std::size_t bytes_ = 0;
};

// Zero-filled room for weights. Those smaller than a huge page follow each other in areas of many, so that
// they too lie on huge pages: experts of 1 MiB were read 20 to 40 % slower from pages of 4 KiB (EPYC with
// AVX-512).
class WeightMemory {
  public:
    SharedBytes take(std::size_t bytes);  // Error(memory)

  private:
    std::weak_ptr<const AlignedBytes> area_;  // being filled; gone when its last piece is
    std::size_t used_ = 0;
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
