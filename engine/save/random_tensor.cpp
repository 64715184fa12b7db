#include "engine/save/random_tensor.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/dtype.h"

namespace recto {

namespace {

// Fills n units of `unit_bytes` in pieces, each on all threads: fill(first unit, units, where).
template <class Fill>
ByteSource streamed(std::uint64_t n, std::size_t unit_bytes, std::size_t grain, Fill fill) {
    return [=](const ByteSink& sink) {
        const std::uint64_t at_once =
            std::max<std::uint64_t>(save_piece_bytes / unit_bytes / grain, 1) * grain;
        std::vector<std::byte> piece(std::size_t(std::min(at_once, n)) * unit_bytes);
        for (std::uint64_t first = 0; first < n; first += at_once) {
            const auto count = std::size_t(std::min(at_once, n - first));
            for_parts(count, grain, [&](std::size_t begin, std::size_t end) {
                fill(first + begin, end - begin, piece.data() + begin * unit_bytes);
            });
            sink(std::span(piece).first(count * unit_bytes));
        }
    };
}

// Sums of four bytes: 0 … 1020, with this mean and variance.
constexpr int byte_sums = 4 * 255 + 1;
constexpr double byte_sum_mean = 4 * 127.5;
constexpr double byte_sum_variance = 4 * (256.0 * 256.0 - 1.0) / 12.0;

unsigned byte_sum(std::uint32_t word) {
    return (word & 0xFFU) + ((word >> 8) & 0xFFU) + ((word >> 16) & 0xFFU) + (word >> 24);
}

template <class T>
ByteSource values_from(std::uint64_t key, std::uint64_t n, std::vector<T> table) {
    return streamed(n, sizeof(T), 2, [=](std::uint64_t first, std::size_t count, std::byte* to) {
        for (std::size_t i = 0; i < count; i += 2) {
            const std::uint64_t word = random_word(key, (first + i) / 2);
            const T pair[2] = {table[byte_sum(std::uint32_t(word))],
                               table[byte_sum(std::uint32_t(word >> 32))]};
            std::memcpy(to + i * sizeof(T), pair, std::min<std::size_t>(count - i, 2) * sizeof(T));
        }
    });
}

}  // namespace

std::uint64_t random_key(std::uint64_t seed, std::string_view tensor) {
    std::uint64_t key = random_word(seed, 0);
    for (const char c : tensor)
        key = random_word(key, static_cast<unsigned char>(c));
    return key;
}

double ScaleChoice::operator[](unsigned nibble) const {
    // Mean square of 0.75 + 0.5 (i + 1/2) / 16 over i = 0 … 15: 1 + (16² − 1) / (12 · 32²).
    static const double norm = std::sqrt(1.0 + 255.0 / 12288.0);
    return rms_ * (0.75 + 0.5 * (double(nibble) + 0.5) / 16.0) / norm;
}

ByteSource random_values(std::uint64_t key, std::uint64_t n, SaveType type, float std_dev, float mean) {
    std::vector<float> wide(byte_sums);
    for (int i = 0; i < byte_sums; ++i)
        wide[std::size_t(i)] =
            float(double(mean) + double(std_dev) * (i - byte_sum_mean) / std::sqrt(byte_sum_variance));
    if (type == SaveType::f32) return values_from(key, n, std::move(wide));
    assert(type == SaveType::f16 || type == SaveType::bf16);
    std::vector<std::uint16_t> narrow;
    for (const float value : wide)
        narrow.push_back(narrow_16(value, type));
    return values_from(key, n, std::move(narrow));
}

ByteSource random_bits(std::uint64_t key, std::uint64_t bytes) {
    assert(bytes % 8 == 0);
    return streamed(bytes / 8, 8, 1, [=](std::uint64_t first, std::size_t count, std::byte* to) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t word = random_word(key, first + i);
            std::memcpy(to + 8 * i, &word, 8);
        }
    });
}

ByteSource random_symmetric_nibbles(std::uint64_t key, std::uint64_t bytes) {
    assert(bytes % 8 == 0);
    return streamed(bytes / 8, 8, 1, [=](std::uint64_t first, std::size_t count, std::byte* to) {
        for (std::size_t i = 0; i < count; ++i) {
            std::uint64_t word = random_word(key, first + i);
            const std::uint64_t zero =
                ~(word | (word >> 1) | (word >> 2) | (word >> 3)) & 0x1111111111111111U;
            word |= zero << 3;  // a nibble of 0 becomes 8
            std::memcpy(to + 8 * i, &word, 8);
        }
    });
}

template <class T>
ByteSource elements(std::uint64_t n, std::function<T(std::uint64_t)> at) {
    return streamed(n, sizeof(T), 1, [=](std::uint64_t first, std::size_t count, std::byte* to) {
        for (std::size_t i = 0; i < count; ++i) {
            const T value = at(first + i);
            std::memcpy(to + i * sizeof(T), &value, sizeof(T));
        }
    });
}
template ByteSource elements(std::uint64_t, std::function<std::uint16_t(std::uint64_t)>);
template ByteSource elements(std::uint64_t, std::function<std::uint32_t(std::uint64_t)>);
template ByteSource elements(std::uint64_t, std::function<std::int32_t(std::uint64_t)>);
template ByteSource elements(std::uint64_t, std::function<std::int64_t(std::uint64_t)>);

}  // namespace recto
