// A cursor over the bytes of a file. Every read is checked against what is left; Error(input) says what was cut off.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/load/refuse.h"

namespace recto {

static_assert(std::endian::native == std::endian::little, "model files are little-endian");

class ByteReader {
  public:
    ByteReader(std::span<const std::byte> bytes, const std::string& label) : bytes_(bytes), label_(&label) {}

    std::uint64_t position() const { return position_; }
    std::uint64_t left() const { return bytes_.size() - position_; }

    std::span<const std::byte> take(std::uint64_t n, const char* what) {
        if (n > left())
            refuse(*label_, std::string(what) + " should take " + std::to_string(n) + " bytes at offset " +
                                std::to_string(position_) + ", but only " + std::to_string(left()) +
                                " are left; the file is cut off or damaged");
        const auto taken = bytes_.subspan(position_, n);
        position_ += n;
        return taken;
    }

    template <class T>
    T number(const char* what) {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
        return value;
    }

    // u64 length and bytes.
    std::string_view text(const char* what) {
        const auto bytes = take(number<std::uint64_t>(what), what);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }

  private:
    std::span<const std::byte> bytes_;
    const std::string* label_;
    std::uint64_t position_ = 0;
};

}  // namespace recto
