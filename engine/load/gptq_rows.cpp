// GPTQ: words of 8 or 4 inputs, a row of the file for each such run of inputs.
#include "engine/load/grouped_rows.h"
#include "engine/load/quantized_layout.h"
#include "engine/load/safetensors.h"

namespace recto {

namespace {

class GptqRows final : public GroupedRows {
  public:
    explicit GptqRows(QuantizedTensors tensors)
        : GroupedRows(tensors.bits == 4 ? "GPTQ" : "GPTQ 8-bit",
                      tensors.bits == 4 ? QuantInt::u4 : QuantInt::u8, OffsetForm::zero_point,
                      std::move(tensors)) {}

    std::optional<RawWeight> raw() const override { return raw_as(RawLayout::gptq); }

  protected:
    void codes(std::int64_t first_row, std::int64_t n, std::uint8_t* q) const override {
        const std::byte* from = tensors().packed->data.data() + first_row * 4;
        const bool nibbles = tensors().bits == 4;
        const std::int64_t per_word = nibbles ? 8 : 4;
        for (std::int64_t k = 0; k < cols(); k += per_word, from += rows() * 4) {
            std::uint8_t* to = q + k;
            if (nibbles) {
                for (std::int64_t r = 0; r < n; ++r, to += cols()) {
                    const std::uint64_t eight = spread_nibbles(load_u32(from + r * 4));
                    std::memcpy(to, &eight, 8);
                }
            } else {
                for (std::int64_t r = 0; r < n; ++r, to += cols())
                    std::memcpy(to, from + r * 4, 4);
            }
        }
    }

    void scales(std::int64_t first_row, std::int64_t n, float* scale) const override {
        read_columns(*tensors().scales, first_row, n, scale);
    }

    void zero_points(std::int64_t first_row, std::int64_t n, std::uint8_t* zero) const override {
        const std::int64_t groups = tensors().file_groups();
        const int bits = tensors().bits, per_word = 32 / bits;
        const std::uint32_t ones = tensors().zeros_v1 ? quantized::gptq_v1_ones(bits) : 0;
        const std::byte* words = tensors().zeros->data.data();
        for (std::int64_t g = 0; g < groups; ++g)
            for (std::int64_t r = 0; r < n; ++r) {
                const std::int64_t row = first_row + r;
                const std::uint32_t word = load_u32(words + (g * (rows() / per_word) + row / per_word) * 4);
                zero[r * groups + g] =
                    std::uint8_t((word + ones) >> bits * (row % per_word) & ((1U << bits) - 1));
            }
    }
};

}  // namespace

std::unique_ptr<WeightRows> make_gptq_rows(QuantizedTensors tensors) {
    return std::make_unique<GptqRows>(std::move(tensors));
}

}  // namespace recto
