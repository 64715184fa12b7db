// compressed-tensors "pack-quantized": rows of words, padded to a whole word.
#include <algorithm>

#include "engine/load/grouped_rows.h"
#include "engine/load/module_weights.h"
#include "engine/load/quantized_layout.h"
#include "engine/load/safetensors.h"
#include "engine/load/stored_rows.h"

namespace recto {

namespace {

// Eight bits without a zero point travel signed and need no offset; four bits have 8 as their zero point.
bool is_signed(const QuantizedTensors& tensors) {
    return tensors.bits == 8 && tensors.zeros == nullptr;
}

class CompressedRows final : public GroupedRows {
  public:
    explicit CompressedRows(QuantizedTensors tensors)
        : GroupedRows("compressed-tensors",
                      tensors.bits == 4    ? QuantInt::u4
                      : is_signed(tensors) ? QuantInt::i8
                                           : QuantInt::u8,
                      is_signed(tensors) ? OffsetForm::none : OffsetForm::zero_point, std::move(tensors)) {}

    std::optional<RawWeight> raw() const override { return raw_as(RawLayout::words); }

  protected:
    void codes(std::int64_t first_row, std::int64_t n, std::uint8_t* q) const override {
        const std::int64_t row_bytes = (cols() * tensors().bits + 31) / 32 * 4;
        const std::byte* from = tensors().packed->data.data() + first_row * row_bytes;
        for (std::int64_t r = 0; r < n; ++r, from += row_bytes, q += cols()) {
            if (tensors().bits == 8) {
                std::memcpy(q, from, std::size_t(cols()));
                if (is_signed(tensors()))
                    for (std::int64_t k = 0; k < cols(); ++k)
                        q[k] ^= 0x80;  // v + 128 → v in two's complement
                continue;
            }
            for (std::int64_t k = 0; k < cols(); k += 8) {
                const std::uint64_t eight = spread_nibbles(load_u32(from + k / 2));
                std::memcpy(q + k, &eight, std::size_t(std::min<std::int64_t>(8, cols() - k)));
            }
        }
    }

    void scales(std::int64_t first_row, std::int64_t n, float* scale) const override {
        const DType dtype = dense_type(tensors().scales->dtype)->dtype;
        const std::int64_t groups = tensors().file_groups();
        const auto at = std::size_t(first_row * groups) * dtype_bytes(dtype);
        widen_to_f32(dtype, tensors().scales->data.data() + at, n * groups, scale);
    }

    void zero_points(std::int64_t first_row, std::int64_t n, std::uint8_t* zero) const override {
        const std::int64_t groups = tensors().file_groups();
        const int bits = tensors().bits, per_word = 32 / bits;
        const SafeTensor* zeros = tensors().zeros;
        for (std::int64_t i = 0; i < n * groups; ++i) {
            const std::int64_t row = first_row + i / groups, g = i % groups;
            if (zeros == nullptr) {
                zero[i] = std::uint8_t(quantized::middle(bits));
            } else if (zeros->dtype == "I8") {
                zero[i] = std::uint8_t(int(std::int8_t(zeros->data[std::size_t(row * groups + g)])) +
                                       quantized::middle(bits));
            } else {
                const std::uint32_t word = load_u32(zeros->data.data() + (row / per_word * groups + g) * 4);
                zero[i] = std::uint8_t(word >> bits * (row % per_word) & ((1U << bits) - 1));
            }
        }
    }
};

}  // namespace

std::unique_ptr<WeightRows> make_compressed_rows(QuantizedTensors tensors) {
    return std::make_unique<CompressedRows>(std::move(tensors));
}

}  // namespace recto
