// SHA-256 (FIPS 180-4), so that a report names files by a hash that anybody can check.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace recto {

class Sha256 {
  public:
    void add(std::span<const std::byte> bytes);
    void add(const void* data, std::size_t bytes);
    std::string hex();  // of everything added; once

  private:
    void block(const std::uint8_t* p);

    std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::uint8_t, 64> pending_{};
    std::size_t filled_ = 0;
    std::uint64_t total_bytes_ = 0;
};

}  // namespace recto
