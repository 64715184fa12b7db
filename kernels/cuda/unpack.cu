// One thread a block of a GGUF type, or a run of eight or four codes of a word layout. The planes of one
// weight stay in the L2 cache between here and the packer, and a load is bound by what the host reads.
#include <cuda_fp16.h>

#include <cassert>

#include "kernels/cuda/check.h"
#include "kernels/cuda/unpack.h"
#include "kernels/gguf_blocks.h"

namespace recto::cuda {

namespace {

constexpr int threads = 256;

int grid_for(std::int64_t items) {
    return int((items + threads - 1) / threads);
}

__device__ std::int64_t thread_index() {
    return std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

// The planes, writable.
struct Out {
    std::int64_t rows, cols, groups;
    int group_size;
    bool nibbles;
    std::uint8_t* q;
    DType scale_dtype, offset_dtype;
    void* scale;
    std::uint8_t* zero_point;
    void* offset;
    std::uint16_t* super_scale;
    std::int8_t* scale_factor;
    std::uint16_t* super_offset;
    std::uint8_t* offset_factor;
};

Out writable(const LogicalPlanes& p) {
    return {p.rows,
            p.cols,
            p.groups(),
            p.group_size,
            p.integer == QuantInt::u4,
            const_cast<std::uint8_t*>(p.q),
            p.scale_dtype,
            p.offset_dtype,
            const_cast<void*>(p.scale),
            const_cast<std::uint8_t*>(p.zero_point),
            const_cast<void*>(p.offset),
            const_cast<std::uint16_t*>(p.super_scale),
            const_cast<std::int8_t*>(p.scale_factor),
            const_cast<std::uint16_t*>(p.super_offset),
            const_cast<std::uint8_t*>(p.offset_factor)};
}

// Exact: the value was widened from that type, or is kept in FP32.
__device__ void store_as(DType dtype, void* plane, std::int64_t at, float value) {
    if (dtype == DType::f16)
        static_cast<__half*>(plane)[at] = __float2half_rn(value);
    else
        static_cast<float*>(plane)[at] = value;
}

template <class Block>
__global__ void unpack_blocks(const std::uint8_t* packed, std::int64_t blocks, Out out) {
    constexpr int groups = Block::elements / Block::group;
    const std::int64_t b = thread_index();
    if (b >= blocks) return;
    const std::uint8_t* from = packed + b * Block::bytes;
    alignas(16) std::uint8_t q[Block::elements];
    Block::codes(from, q);
    if constexpr (Block::integer == QuantInt::u4) {
        auto* to = reinterpret_cast<std::uint32_t*>(out.q + b * (Block::elements / 2));
        for (int i = 0; i < Block::elements / 8; ++i) {
            std::uint32_t word = 0;
            for (int j = 0; j < 8; ++j)
                word |= std::uint32_t(q[8 * i + j]) << 4 * j;
            to[i] = word;
        }
    } else {
        auto* to = reinterpret_cast<uint4*>(out.q + b * Block::elements);
        for (int i = 0; i < Block::elements / 16; ++i)
            to[i] = reinterpret_cast<const uint4*>(q)[i];
    }
    gguf::BlockGroups g;
    Block::groups(from, g);
    for (int j = 0; j < groups; ++j) {
        const std::int64_t at = b * groups + j;
        store_as(out.scale_dtype, out.scale, at, g.scale[j]);
        if (out.zero_point) out.zero_point[at] = std::uint8_t(Block::zero_point);
        if (out.offset) store_as(out.offset_dtype, out.offset, at, g.offset[j]);
        if (out.scale_factor) out.scale_factor[at] = g.scale_factor[j];
        if (out.offset_factor) out.offset_factor[at] = g.offset_factor[j];
    }
    if (out.super_scale) out.super_scale[b] = g.super_scale;
    if (out.super_offset) out.super_offset[b] = g.super_offset;
}

// Neighbouring threads take neighbouring rows where the file has them side by side, else neighbouring runs of
// a row.
__device__ bool place_of(std::int64_t index, std::int64_t rows, std::int64_t columns, bool rows_first,
                         std::int64_t& row, std::int64_t& column) {
    if (index >= rows * columns) return false;
    row = rows_first ? index % rows : index / columns;
    column = rows_first ? index / rows : index % columns;
    return true;
}

__global__ void unpack_codes(raw::WordView words, const std::int32_t* permutation, bool rows_first, Out out) {
    const int run = out.nibbles ? 8 : 4;  // codes in 32 bits of the plane
    std::int64_t row, column;
    if (!place_of(thread_index(), out.rows, (out.cols + run - 1) / run, rows_first, row, column)) return;
    std::uint32_t four_bytes = 0;
    for (int i = 0; i < run; ++i) {
        const std::int64_t k = column * run + i;
        if (k < out.cols)
            four_bytes |= std::uint32_t(raw::code(words, row, permutation ? permutation[k] : k))
                          << 32 / run * i;
    }
    const std::int64_t row_bytes = out.cols * 4 / run;
    std::uint8_t* to = out.q + row * row_bytes + column * 4;
    if (row_bytes % 4 == 0) {
        *reinterpret_cast<std::uint32_t*>(to) = four_bytes;
    } else {
        for (int i = 0; i < 4 && column * 4 + i < row_bytes; ++i)
            to[i] = std::uint8_t(four_bytes >> 8 * i);
    }
}

__global__ void unpack_groups(raw::WordView words, std::int64_t file_group, bool rows_first, Out out) {
    std::int64_t row, group;
    if (!place_of(thread_index(), out.rows, out.groups, rows_first, row, group)) return;
    const std::int64_t at = row * out.groups + group;
    const std::int64_t in_file = group * out.group_size / file_group;
    const std::byte* scale = raw::scale_at(words, row, in_file);
    if (words.scale_bytes == 2)
        static_cast<std::uint16_t*>(out.scale)[at] = *reinterpret_cast<const std::uint16_t*>(scale);
    else
        static_cast<float*>(out.scale)[at] = *reinterpret_cast<const float*>(scale);
    if (out.zero_point) out.zero_point[at] = raw::zero_point(words, row, in_file);
}

template <class Block>
void launch_blocks(cudaStream_t stream, const RawView& raw, const LogicalPlanes& out) {
    assert(out.group_size == Block::group && out.integer == Block::integer);
    const std::int64_t blocks = out.rows * (out.cols / Block::elements);
    unpack_blocks<Block><<<grid_for(blocks), threads, 0, stream>>>(
        reinterpret_cast<const std::uint8_t*>(raw.blocks), blocks, writable(out));
}

void launch_words(cudaStream_t stream, const RawView& raw, const LogicalPlanes& out) {
    const bool rows_first = raw.layout == RawLayout::awq_gemm || raw.layout == RawLayout::gptq;
    const std::int64_t run = out.integer == QuantInt::u4 ? 8 : 4;
    unpack_codes<<<grid_for(out.rows * ((out.cols + run - 1) / run)), threads, 0, stream>>>(
        raw.words, raw.permutation, rows_first, writable(out));
    unpack_groups<<<grid_for(out.rows * out.groups()), threads, 0, stream>>>(raw.words, raw.file_group,
                                                                             rows_first, writable(out));
}

}  // namespace

void unpack(cudaStream_t stream, const RawView& raw, const LogicalPlanes& out) {
    switch (raw.layout) {
        case RawLayout::dense:
            assert(!"dense weights have no planes");
            return;
        case RawLayout::q4_0:
            launch_blocks<gguf::Q4_0>(stream, raw, out);
            break;
        case RawLayout::q4_1:
            launch_blocks<gguf::Q4_1>(stream, raw, out);
            break;
        case RawLayout::q5_0:
            launch_blocks<gguf::Q5_0>(stream, raw, out);
            break;
        case RawLayout::q5_1:
            launch_blocks<gguf::Q5_1>(stream, raw, out);
            break;
        case RawLayout::q8_0:
            launch_blocks<gguf::Q8_0>(stream, raw, out);
            break;
        case RawLayout::q2_k:
            launch_blocks<gguf::Q2_K>(stream, raw, out);
            break;
        case RawLayout::q3_k:
            launch_blocks<gguf::Q3_K>(stream, raw, out);
            break;
        case RawLayout::q4_k:
            launch_blocks<gguf::Q4_K>(stream, raw, out);
            break;
        case RawLayout::q5_k:
            launch_blocks<gguf::Q5_K>(stream, raw, out);
            break;
        case RawLayout::q6_k:
            launch_blocks<gguf::Q6_K>(stream, raw, out);
            break;
        case RawLayout::iq4_nl:
            launch_blocks<gguf::IQ4_NL>(stream, raw, out);
            break;
        case RawLayout::iq4_xs:
            launch_blocks<gguf::IQ4_XS>(stream, raw, out);
            break;
        case RawLayout::awq_gemm:
        case RawLayout::awq_gemv:
        case RawLayout::gptq:
        case RawLayout::words:
            launch_words(stream, raw, out);
            break;
    }
    check_launch("unpacking a weight");
}

}  // namespace recto::cuda
