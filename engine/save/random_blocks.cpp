// Random blocks of GGUF's quantized types. Their layouts: llama.cpp ggml/src/ggml-common.h. All bytes are
// random first, which makes every integer uniform wherever its bits lie; then the scales are written over.
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/save/random_tensor.h"
#include "kernels/dtype.h"

namespace recto {

namespace {

using Byte = std::uint8_t;

constexpr double variance_of_uniform(double levels) {
    return (levels * levels - 1.0) / 12.0;
}
// Mean square of integers low … high.
constexpr double mean_square(int low, int high) {
    double sum = 0;
    for (int i = low; i <= high; ++i)
        sum += double(i) * i;
    return sum / (high - low + 1);
}
// The non-linear types' values of the integers 0 … 15 (ggml's kvalues_iq4nl).
constexpr int iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr double iq4_mean_square() {
    double sum = 0;
    for (const int value : iq4_values)
        sum += double(value) * value;
    return sum / 16;
}

// Where a type keeps its FP16 scale and its FP16 minimum, and what its weights are for a scale of 1.
struct BlockShape {
    GgufType type;
    int scale_at;
    int minimum_at;      // −1: symmetric
    double minimum;      // per unit of scale, so that the integers' middle is 0
    double mean_square;  // of a weight whose scale is 1, the blocks' own small scales included
};
constexpr double half = 0.25;  // symmetric types' integers lie half a step off zero: 0.5²
constexpr BlockShape shapes[] = {
    {GgufType::q4_0, 0, -1, 0, variance_of_uniform(16) + half},
    {GgufType::q4_1, 0, 2, -7.5, variance_of_uniform(16)},
    {GgufType::q5_0, 0, -1, 0, variance_of_uniform(32) + half},
    {GgufType::q5_1, 0, 2, -15.5, variance_of_uniform(32)},
    {GgufType::q8_0, 0, -1, 0, variance_of_uniform(256) + half},
    {GgufType::q2_k, 80, 82, 1.5, variance_of_uniform(4) * mean_square(8, 15)},
    {GgufType::q3_k, 108, -1, 0, (variance_of_uniform(8) + half) * mean_square(16, 31)},
    {GgufType::q4_k, 0, 2, 7.5, variance_of_uniform(16) * mean_square(32, 63)},
    {GgufType::q5_k, 0, 2, 15.5, variance_of_uniform(32) * mean_square(32, 63)},
    {GgufType::q6_k, 208, -1, 0, (variance_of_uniform(64) + half) * mean_square(64, 127)},
    {GgufType::iq4_nl, 0, -1, 0, iq4_mean_square()},
    {GgufType::iq4_xs, 0, -1, 0, iq4_mean_square() * mean_square(16, 31)},
};

const BlockShape& shape_of(GgufType type) {
    for (const auto& shape : shapes)
        if (shape.type == type) return shape;
    assert(!"a quantized type");
    return shapes[0];
}

// A random byte → a whole number of magnitude low … 2 low − 1, of either sign.
int signed_factor(Byte random, int low) {
    const int magnitude = low + (random & (low - 1));
    return (random & 0x80) != 0 ? -magnitude : magnitude;
}

// 6-bit scales and minima of Q4_K and Q5_K, each minimum equal to its scale.
void put_k4_scales(const Byte* random, Byte* to) {
    Byte scale[8];
    for (int j = 0; j < 8; ++j)
        scale[j] = Byte(32 + (random[j] & 31));
    for (int j = 0; j < 4; ++j) {
        const int high = scale[j + 4] >> 4;
        to[j] = Byte(scale[j] | (high << 6));
        to[j + 4] = Byte(scale[j] | (high << 6));
        to[j + 8] = Byte((scale[j + 4] & 15) | ((scale[j + 4] & 15) << 4));
    }
}

// Sixteen 6-bit scales of Q3_K, stored + 32.
void put_q3_scales(const Byte* random, Byte* to) {
    std::memset(to, 0, 12);
    for (int s = 0; s < 16; ++s) {
        const int stored = 32 + signed_factor(random[s], 16);
        to[s % 8] |= Byte((stored & 15) << (s < 8 ? 0 : 4));
        to[8 + s % 4] |= Byte((stored >> 4) << (2 * (s / 4)));
    }
}

// Eight 6-bit scales of IQ4_XS, stored + 32: low bits in scl, two bits each in sch.
void put_iq4_xs_scales(const Byte* random, Byte* block) {
    std::memset(block + 2, 0, 6);
    for (int k = 0; k < 8; ++k) {
        const int stored = 32 + signed_factor(random[k], 16);
        block[4 + k / 2] |= Byte((stored & 15) << (4 * (k % 2)));
        block[2 + k / 4] |= Byte((stored >> 4) << (2 * (k % 4)));
    }
}

void put_small_scales(GgufType type, const Byte* random, Byte* block) {  // random: 16 bytes
    switch (type) {
        case GgufType::q2_k:
            for (int i = 0; i < 16; ++i)
                block[i] = Byte((8 + (random[i] & 7)) * 0x11);
            break;
        case GgufType::q3_k:
            put_q3_scales(random, block + 96);
            break;
        case GgufType::q4_k:
        case GgufType::q5_k:
            put_k4_scales(random, block + 4);
            break;
        case GgufType::q6_k:
            for (int i = 0; i < 16; ++i)
                block[192 + i] = Byte(signed_factor(random[i], 64));
            break;
        case GgufType::iq4_xs:
            put_iq4_xs_scales(random, block);
            break;
        default:
            break;
    }
}

struct ScalePair {
    std::uint16_t scale, minimum;  // FP16 bits
};

class BlockMaker {
  public:
    BlockMaker(std::uint64_t key, const GgufTypeInfo& type, float std_dev)
        : key_(key), type_(type), shape_(shape_of(type.type)) {
        const ScaleChoice choice(double(std_dev) / std::sqrt(shape_.mean_square));
        for (unsigned i = 0; i < 16; ++i) {
            scales_[i].scale = f32_to_f16(float(choice[i]));
            scales_[i].minimum = f32_to_f16(float(double(f16_to_f32(scales_[i].scale)) * shape_.minimum));
        }
    }

    void make(std::uint64_t block, Byte* to) const {
        const auto bytes = std::size_t(type_.bytes);
        const std::uint64_t words = bytes / 8 + 4;
        const std::uint64_t first = block * words;
        for (std::size_t at = 0, word = 3; at < bytes; at += 8, ++word) {
            const std::uint64_t random = random_word(key_, first + word);
            std::memcpy(to + at, &random, std::min<std::size_t>(8, bytes - at));
        }
        const std::uint64_t small[2] = {random_word(key_, first), random_word(key_, first + 1)};
        put_small_scales(type_.type, reinterpret_cast<const Byte*>(small), to);
        const std::uint64_t choice = random_word(key_, first + 2);
        ScalePair pair = scales_[choice & 15];
        if (shape_.minimum_at < 0 && (choice & 16) != 0) pair.scale |= 0x8000;
        std::memcpy(to + shape_.scale_at, &pair.scale, 2);
        if (shape_.minimum_at >= 0) std::memcpy(to + shape_.minimum_at, &pair.minimum, 2);
    }

  private:
    std::uint64_t key_;
    GgufTypeInfo type_;
    BlockShape shape_;
    std::array<ScalePair, 16> scales_{};
};

}  // namespace

ByteSource random_blocks(std::uint64_t key, std::uint64_t blocks, const GgufTypeInfo& type, float std_dev) {
    const BlockMaker maker(key, type, std_dev);
    return [=](const ByteSink& sink) {
        const auto bytes = std::size_t(type.bytes);
        const std::uint64_t at_once = save_piece_bytes / bytes;
        std::vector<std::byte> piece(std::size_t(std::min(at_once, blocks)) * bytes);
        for (std::uint64_t first = 0; first < blocks; first += at_once) {
            const auto count = std::size_t(std::min(at_once, blocks - first));
            for_parts(count, 1, [&](std::size_t begin, std::size_t end) {
                for (std::size_t b = begin; b < end; ++b)
                    maker.make(first + b, reinterpret_cast<Byte*>(piece.data() + b * bytes));
            });
            sink(std::span(piece).first(count * bytes));
        }
    };
}

}  // namespace recto
