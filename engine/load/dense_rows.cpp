#include <cassert>
#include <cstring>

#include "engine/load/stored_rows.h"
#include "kernels/half_float.h"

namespace recto {

namespace {

class DenseRows final : public StoredRows {
  public:
    using StoredRows::StoredRows;

    void read(std::int64_t, std::int64_t, const WeightPlanes&) const override {
        assert(!"a dense weight has no planes");
    }
    void read_f32(std::int64_t first_row, std::int64_t n, float* out) const override {
        assert(first_row >= 0 && n >= 0 && first_row + n <= rows());
        for (std::int64_t r = 0; r < n; ++r)
            widen_to_f32(form().dense, row(first_row + r), cols(), out + r * cols());
    }
    void read_dense(std::int64_t first_row, std::int64_t n, void* out) const override {
        assert(first_row >= 0 && n >= 0 && first_row + n <= rows());
        if (cols() == 0) return;
        auto* to = static_cast<std::byte*>(out);
        for (std::int64_t r = 0; r < n; ++r)
            std::memcpy(to + r * row_bytes(), row(first_row + r), std::size_t(row_bytes()));
    }
};

std::uint16_t load_u16(const std::byte* from) {
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return bits;
}

}  // namespace

void widen_to_f32(DType dtype, const std::byte* from, std::int64_t n, float* to) {
    if (n == 0) return;
    switch (dtype) {
        case DType::f32:
            std::memcpy(to, from, std::size_t(n) * 4);
            return;
        case DType::f16:
            for (std::int64_t i = 0; i < n; ++i)
                to[i] = widen_f16(load_u16(from + 2 * i));
            return;
        case DType::bf16:
            for (std::int64_t i = 0; i < n; ++i)
                to[i] = bf16_to_f32(load_u16(from + 2 * i));
            return;
        case DType::i32:
        case DType::i8:
        case DType::f8_e4m3:
            break;
    }
    assert(!"weights are float32, float16 or bfloat16");
}

std::unique_ptr<WeightRows> make_dense_rows(DType dtype, const char* source_name, StoredMatrix matrix) {
    WeightForm form;
    form.dense = dtype;
    form.source_name = source_name;
    form.bits_per_weight = 8.0 * double(dtype_bytes(dtype));
    return std::make_unique<DenseRows>(form, RawLayout::dense, 1, int(dtype_bytes(dtype)), std::move(matrix));
}

}  // namespace recto
