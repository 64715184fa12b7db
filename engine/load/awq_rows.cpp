// AutoAWQ's packings. Their places are in engine/load/quantized_layout.h.
#include <algorithm>
#include <cassert>

#include "engine/load/grouped_rows.h"
#include "engine/load/module_weights.h"
#include "engine/load/quantized_layout.h"
#include "engine/load/safetensors.h"
#include "engine/load/stored_rows.h"

namespace recto {

namespace {

using Lane = std::uint8_t __attribute__((vector_size(16)));

Lane load_lane(const std::uint8_t* from) {
    Lane lane;
    std::memcpy(&lane, from, sizeof lane);
    return lane;
}

Lane zip_low(Lane a, Lane b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
Lane zip_high(Lane a, Lane b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// m[i][j] ↔ m[j][i]: pairing lane i with lane i + 8 four times turns the index of a byte around once.
void transpose(Lane (&m)[16]) {
    Lane t[16];
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < 8; ++i) {
            t[2 * i] = zip_low(m[i], m[i + 8]);
            t[2 * i + 1] = zip_high(m[i], m[i + 8]);
        }
        std::copy_n(t, 16, m);
    }
}

// Packed along outputs: a row of the file is one input, a 32-bit word eight outputs. Blocks of 64 inputs are
// copied together, so that every cache line of the file is touched once, and turned by 16 × 16 bytes.
class AwqGemmRows final : public GroupedRows {
    static constexpr std::int64_t inputs = 64;   // of a block
    static constexpr std::int64_t outputs = 16;  // turned at once: two words

  public:
    explicit AwqGemmRows(QuantizedTensors tensors)
        : GroupedRows("AWQ", QuantInt::u4, OffsetForm::zero_point, std::move(tensors)) {}

    std::int64_t preferred_rows() const override { return 128; }  // 64 bytes of an input
    std::optional<RawWeight> raw() const override { return raw_as(RawLayout::awq_gemm); }

  protected:
    void codes(std::int64_t first_row, std::int64_t n, std::uint8_t* q) const override {
        const std::int64_t first_word = first_row / 8, end_word = (first_row + n + 7) / 8;
        const std::int64_t pairs = (end_word - first_word + 1) / 2;
        const std::byte* from = tensors().packed->data.data() + first_word * 4;
        const std::int64_t stride = rows() / 8 * 4;
        const auto used = std::size_t(end_word - first_word) * 4;
        std::vector<std::byte> block(std::size_t(inputs * pairs) * 8);
        for (std::int64_t k = 0; k < cols(); k += inputs) {
            const std::int64_t count = std::min(inputs, cols() - k);
            for (std::int64_t i = 0; i < count; ++i)
                std::memcpy(block.data() + i * pairs * 8, from + (k + i) * stride, used);
            for (std::int64_t p = 0; p < pairs; ++p)
                turn(block.data() + p * 8, pairs * 8, count, first_word * 8 + p * outputs - first_row, n,
                     q + k);
        }
    }

    void scales(std::int64_t first_row, std::int64_t n, float* scale) const override {
        read_columns(*tensors().scales, first_row, n, scale);
    }

    void zero_points(std::int64_t first_row, std::int64_t n, std::uint8_t* zero) const override {
        const std::int64_t groups = tensors().file_groups();
        if (tensors().zeros == nullptr) {
            std::fill_n(zero, n * groups, std::uint8_t(quantized::middle(4)));
            return;
        }
        const std::byte* words = tensors().zeros->data.data();
        for (std::int64_t g = 0; g < groups; ++g)
            for (std::int64_t r = 0; r < n; ++r) {
                const std::int64_t row = first_row + r;
                const std::uint32_t word = load_u32(words + (g * (rows() / 8) + row / 8) * 4);
                zero[r * groups + g] = std::uint8_t(word >> 4 * quantized::awq_nibble[row % 8] & 15);
            }
    }

  private:
    // `count` inputs, `stride` bytes apart, of two words each, whose first output is row `row` of the n asked
    // for (or lies before them): q[row * cols + input].
    void turn(const std::byte* words, std::int64_t stride, std::int64_t count, std::int64_t row,
              std::int64_t n, std::uint8_t* q) const {
        alignas(64) std::uint8_t turned[outputs][inputs];
        for (std::int64_t k = 0; k < count; k += 16) {
            Lane m[16] = {};
            const std::int64_t lanes = std::min<std::int64_t>(16, count - k);
            for (std::int64_t i = 0; i < lanes; ++i) {
                const std::uint64_t both = load_u64(words + (k + i) * stride);
                const std::uint64_t nibbles[2] = {both & 0x0F0F0F0F0F0F0F0FULL,
                                                  both >> 4 & 0x0F0F0F0F0F0F0F0FULL};
                m[i] = load_lane(reinterpret_cast<const std::uint8_t*>(nibbles));
            }
            transpose(m);
            for (std::size_t p = 0; p < 16; ++p)
                std::memcpy(turned[p] + k, &m[p], 16);
        }
        // Byte p: the even nibbles of both words, then the odd ones.
        for (int p = 0; p < outputs; ++p) {
            const std::int64_t to = row + 8 * (p / 4 % 2) + quantized::awq_output[2 * (p % 4) + p / 8];
            if (to >= 0 && to < n) std::memcpy(q + to * cols(), turned[p], std::size_t(count));
        }
    }
};

class AwqGemvRows final : public GroupedRows {
  public:
    explicit AwqGemvRows(QuantizedTensors tensors)
        : GroupedRows("AWQ", QuantInt::u4, OffsetForm::zero_point, std::move(tensors)),
          zero_words_(quantized::awq_zero_words(cols(), this->tensors().file_group)) {}

    std::optional<RawWeight> raw() const override { return raw_as(RawLayout::awq_gemv); }

  protected:
    void codes(std::int64_t first_row, std::int64_t n, std::uint8_t* q) const override {
        const std::byte* from = tensors().packed->data.data() + first_row * (cols() / 2);
        for (std::int64_t word = 0; word < n * cols() / 8; ++word) {
            const std::uint64_t eight = spread_nibbles(load_u32(from + word * 4));
            std::memcpy(q + word * 8, &eight, 8);
        }
    }

    void scales(std::int64_t first_row, std::int64_t n, float* scale) const override {
        const DType dtype = dense_type(tensors().scales->dtype)->dtype;
        const std::int64_t groups = tensors().file_groups();
        for (std::int64_t r = 0; r < n; ++r)
            widen_to_f32(dtype,
                         tensors().scales->data.data() +
                             (first_row + r) * zero_words_ * 8 * std::int64_t(dtype_bytes(dtype)),
                         groups, scale + r * groups);
    }

    void zero_points(std::int64_t first_row, std::int64_t n, std::uint8_t* zero) const override {
        const std::int64_t groups = tensors().file_groups();
        if (tensors().zeros == nullptr) {
            std::fill_n(zero, n * groups, std::uint8_t(quantized::middle(4)));
            return;
        }
        for (std::int64_t r = 0; r < n; ++r)
            for (std::int64_t g = 0; g < groups; ++g) {
                const auto at = ((first_row + r) * zero_words_ + g / 8) * 4;
                zero[r * groups + g] =
                    std::uint8_t(load_u32(tensors().zeros->data.data() + at) >> 4 * (g % 8) & 15);
            }
    }

  private:
    std::int64_t zero_words_;  // a row
};

class AwqFastRows final : public GroupedRows {
  public:
    explicit AwqFastRows(QuantizedTensors tensors)
        : GroupedRows("AWQ", QuantInt::u4, tensors.zeros->dtype == "F16" ? OffsetForm::f16 : OffsetForm::f32,
                      std::move(tensors)) {}

  protected:
    // The 16 bytes of inputs 32 i … 32 i + 31 hold inputs 8 j + w of them in nibble j of word w.
    void codes(std::int64_t first_row, std::int64_t n, std::uint8_t* q) const override {
        for (std::int64_t r = 0; r < n; ++r) {
            const std::int64_t row = first_row + r;
            const std::byte* line = tensors().packed->data.data() + row / 4 * cols() * 2;
            for (std::int64_t k = 0; k < cols(); k += 32) {
                std::uint16_t words[8];
                std::memcpy(words, line + 2 * quantized::awq_fast_place(row, k).word, sizeof words);
                std::uint8_t* to = q + r * cols() + k;
                for (int j = 0; j < 4; ++j)
                    for (int w = 0; w < 8; ++w)
                        to[8 * j + w] = std::uint8_t(words[w] >> 4 * j & 15);
            }
        }
    }

    void scales(std::int64_t first_row, std::int64_t n, float* scale) const override {
        read_columns(*tensors().scales, first_row, n, scale);
    }
    void offsets(std::int64_t first_row, std::int64_t n, float* offset) const override {
        read_columns(*tensors().zeros, first_row, n, offset);
    }
};

}  // namespace

std::unique_ptr<WeightRows> make_awq_gemm_rows(QuantizedTensors tensors) {
    return std::make_unique<AwqGemmRows>(std::move(tensors));
}
std::unique_ptr<WeightRows> make_awq_gemv_rows(QuantizedTensors tensors) {
    return std::make_unique<AwqGemvRows>(std::move(tensors));
}
std::unique_ptr<WeightRows> make_awq_fast_rows(QuantizedTensors tensors) {
    return std::make_unique<AwqFastRows>(std::move(tensors));
}

}  // namespace recto
