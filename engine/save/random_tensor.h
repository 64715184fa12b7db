// Random tensors as streams of bytes: each byte is a pure function of key and place, so that the result
// depends neither on threads nor on pieces. The generator is SplitMix64's (Steele, Lea, Flood: "Fast
// splittable pseudorandom number generators", OOPSLA 2014) read at any counter.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/load/gguf_type.h"
#include "engine/save/byte_sink.h"
#include "engine/save/safetensors_writer.h"

namespace recto {

constexpr std::uint64_t random_word(std::uint64_t key, std::uint64_t counter) {
    std::uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}
std::uint64_t random_key(std::uint64_t seed, std::string_view tensor);
// Four bits of element `index`.
constexpr unsigned random_nibble(std::uint64_t key, std::uint64_t index) {
    return unsigned(random_word(key, index / 16) >> (4 * (index % 16))) & 15U;
}

// n values around `mean`, close to normal: sums of four uniform bytes (at most 3.45 standard deviations
// away).
ByteSource random_values(std::uint64_t key, std::uint64_t n, SaveType type, float std_dev, float mean = 0.0F);
ByteSource random_bits(std::uint64_t key, std::uint64_t bytes);  // a multiple of 8
// 4-bit integers symmetric around 8: 1 … 15, with 8 twice as often. Their variance is 17.5.
ByteSource random_symmetric_nibbles(std::uint64_t key, std::uint64_t bytes);  // a multiple of 8
// Blocks of a quantized GGUF type (any but F32, F16, BF16) whose values have this standard deviation and no
// common mean: integers uniform, scales varied by a third, minima in the middle, signs of symmetric scales
// mixed.
ByteSource random_blocks(std::uint64_t key, std::uint64_t blocks, const GgufTypeInfo& type, float std_dev);

// n elements that a function of their index gives; T is written as it lies in memory.
template <class T>
ByteSource elements(std::uint64_t n, std::function<T(std::uint64_t)> at);
extern template ByteSource elements(std::uint64_t, std::function<std::uint16_t(std::uint64_t)>);
extern template ByteSource elements(std::uint64_t, std::function<std::uint32_t(std::uint64_t)>);
extern template ByteSource elements(std::uint64_t, std::function<std::int32_t(std::uint64_t)>);
extern template ByteSource elements(std::uint64_t, std::function<std::int64_t(std::uint64_t)>);

// Sixteen scales around one value, in [0.74, 1.24] times it, whose root mean square it is.
class ScaleChoice {
  public:
    explicit ScaleChoice(double root_mean_square) : rms_(root_mean_square) {}
    double operator[](unsigned nibble) const;

  private:
    double rms_;
};

}  // namespace recto
