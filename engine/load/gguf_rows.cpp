#include <algorithm>
#include <cassert>

#include "engine/load/stored_rows.h"
#include "kernels/gguf_blocks.h"

namespace recto {

namespace {

using gguf::BlockGroups;

bool wants_groups(const WeightPlanes& out) {
    return out.scale || out.offset || out.zero_point || out.super_scale || out.scale_factor ||
           out.super_offset || out.offset_factor;
}

template <class Block>
class BlockRows final : public StoredRows {
    static constexpr int groups_per_block = Block::elements / Block::group;
    static constexpr bool composed_scale =
        Block::scale_form == ScaleForm::f16_times_u6 || Block::scale_form == ScaleForm::f16_times_i8;
    static constexpr bool composed_offset = Block::offset_form == OffsetForm::f16_times_u6;

  public:
    BlockRows(const char* name, RawLayout layout, StoredMatrix matrix)
        : StoredRows(make_form(name), layout, Block::elements, Block::bytes, std::move(matrix)) {}

    void read(std::int64_t first_row, std::int64_t n, const WeightPlanes& out) const override {
        assert(first_row >= 0 && n >= 0 && first_row + n <= rows());
        const std::int64_t blocks = cols() / Block::elements;
        for (std::int64_t r = 0; r < n; ++r) {
            const std::uint8_t* from = bytes_of(first_row + r);
            if (out.q)
                for (std::int64_t b = 0; b < blocks; ++b)
                    Block::codes(from + b * Block::bytes, out.q + r * cols() + b * Block::elements);
            if (wants_groups(out))
                for (std::int64_t b = 0; b < blocks; ++b)
                    store_groups(from + b * Block::bytes, r * blocks + b, out);
        }
    }

    void read_f32(std::int64_t first_row, std::int64_t n, float* out) const override {
        assert(first_row >= 0 && n >= 0 && first_row + n <= rows());
        const std::int64_t blocks = cols() / Block::elements;
        for (std::int64_t r = 0; r < n; ++r) {
            const std::uint8_t* from = bytes_of(first_row + r);
            for (std::int64_t b = 0; b < blocks; ++b)
                dequantize(from + b * Block::bytes, out + r * cols() + b * Block::elements);
        }
    }

    void read_dense(std::int64_t, std::int64_t, void*) const override {
        assert(!"a grouped weight has no dense rows");
    }

  private:
    static WeightForm make_form(const char* name) {
        WeightForm form;
        form.grouped = true;
        if constexpr (Block::offset_form == OffsetForm::zero_point) form.constant_zero = Block::zero_point;
        form.integer = Block::integer;
        form.group_size = Block::group;
        form.scale = Block::scale_form;
        form.offset = Block::offset_form;
        form.source_name = name;
        form.bits_per_weight = 8.0 * Block::bytes / Block::elements;
        return form;
    }

    const std::uint8_t* bytes_of(std::int64_t logical) const {
        return reinterpret_cast<const std::uint8_t*>(row(logical));
    }

    // `block` counts blocks over the rows asked for.
    static void store_groups(const std::uint8_t* from, std::int64_t block, const WeightPlanes& out) {
        BlockGroups g;
        Block::groups(from, g);
        const std::int64_t at = block * groups_per_block;
        if (out.scale) std::copy_n(g.scale, groups_per_block, out.scale + at);
        if (out.offset) std::copy_n(g.offset, groups_per_block, out.offset + at);
        if constexpr (Block::offset_form == OffsetForm::zero_point)
            if (out.zero_point)
                std::fill_n(out.zero_point + at, groups_per_block, std::uint8_t(Block::zero_point));
        if constexpr (composed_scale) {
            if (out.super_scale) out.super_scale[block] = g.super_scale;
            if (out.scale_factor) std::copy_n(g.scale_factor, groups_per_block, out.scale_factor + at);
        }
        if constexpr (composed_offset) {
            if (out.super_offset) out.super_offset[block] = g.super_offset;
            if (out.offset_factor) std::copy_n(g.offset_factor, groups_per_block, out.offset_factor + at);
        }
    }

    // The format's own arithmetic, so that the sign of zeros is right too: d·(q − z) where there is a zero
    // point, d·q where there is no offset, else one product and one sum.
    static void dequantize(const std::uint8_t* from, float* out) {
        std::uint8_t q[Block::elements];
        BlockGroups g;
        Block::codes(from, q);
        Block::groups(from, g);
        for (int j = 0; j < groups_per_block; ++j)
            for (int i = j * Block::group; i < (j + 1) * Block::group; ++i) {
                if constexpr (Block::offset_form == OffsetForm::zero_point)
                    out[i] = g.scale[j] * float(int(q[i]) - Block::zero_point);
                else if constexpr (Block::offset_form == OffsetForm::none)
                    out[i] = g.scale[j] * float(static_cast<std::int8_t>(q[i]));
                else
                    out[i] = g.scale[j] * float(q[i]) + g.offset[j];
            }
    }
};

}  // namespace

std::unique_ptr<WeightRows> make_gguf_rows(GgufType type, StoredMatrix matrix) {
    const GgufTypeInfo* info = gguf_type_info(std::uint32_t(type));
    assert(info != nullptr && matrix.cols % info->elements == 0);
    assert(matrix.data.size() == std::size_t(matrix.rows * (matrix.cols / info->elements)) * info->bytes);
    const char* name = info->name;
    switch (type) {
        case GgufType::f32:
            return make_dense_rows(DType::f32, name, std::move(matrix));
        case GgufType::f16:
            return make_dense_rows(DType::f16, name, std::move(matrix));
        case GgufType::bf16:
            return make_dense_rows(DType::bf16, name, std::move(matrix));
        case GgufType::q4_0:
            return std::make_unique<BlockRows<gguf::Q4_0>>(name, RawLayout::q4_0, std::move(matrix));
        case GgufType::q4_1:
            return std::make_unique<BlockRows<gguf::Q4_1>>(name, RawLayout::q4_1, std::move(matrix));
        case GgufType::q5_0:
            return std::make_unique<BlockRows<gguf::Q5_0>>(name, RawLayout::q5_0, std::move(matrix));
        case GgufType::q5_1:
            return std::make_unique<BlockRows<gguf::Q5_1>>(name, RawLayout::q5_1, std::move(matrix));
        case GgufType::q8_0:
            return std::make_unique<BlockRows<gguf::Q8_0>>(name, RawLayout::q8_0, std::move(matrix));
        case GgufType::q2_k:
            return std::make_unique<BlockRows<gguf::Q2_K>>(name, RawLayout::q2_k, std::move(matrix));
        case GgufType::q3_k:
            return std::make_unique<BlockRows<gguf::Q3_K>>(name, RawLayout::q3_k, std::move(matrix));
        case GgufType::q4_k:
            return std::make_unique<BlockRows<gguf::Q4_K>>(name, RawLayout::q4_k, std::move(matrix));
        case GgufType::q5_k:
            return std::make_unique<BlockRows<gguf::Q5_K>>(name, RawLayout::q5_k, std::move(matrix));
        case GgufType::q6_k:
            return std::make_unique<BlockRows<gguf::Q6_K>>(name, RawLayout::q6_k, std::move(matrix));
        case GgufType::iq4_nl:
            return std::make_unique<BlockRows<gguf::IQ4_NL>>(name, RawLayout::iq4_nl, std::move(matrix));
        case GgufType::iq4_xs:
            return std::make_unique<BlockRows<gguf::IQ4_XS>>(name, RawLayout::iq4_xs, std::move(matrix));
    }
    assert(!"every type has its case");
    return nullptr;
}

}  // namespace recto
