#include "kernels/cuda/tensor_map.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <initializer_list>

#include "kernels/cuda/check.h"

namespace recto::cuda {
namespace {

// From the driver that is running, so that nothing links against libcuda: a machine without one starts all
// the same.
using Encode = decltype(&cuTensorMapEncodeTiled);
Encode encoder() {
    static const Encode encode = [] {
        void* entry = nullptr;
        cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
        check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                               &found),
              "asking the driver for tensor maps");
#else
        check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found),
              "asking the driver for tensor maps");
#endif
        if (found != cudaDriverEntryPointSuccess || entry == nullptr)
            throw Error(ErrorKind::runtime,
                        "the NVIDIA driver is too old: version 525 (CUDA 12.0) or newer was "
                        "expected; update it, or use --device cpu");
        return reinterpret_cast<Encode>(entry);
    }();
    return encode;
}

[[noreturn]] void failed(CUresult result, std::int64_t rows, std::int64_t cols) {
    throw Error(ErrorKind::runtime, "CUDA: describing a matrix of " + std::to_string(rows) + " x " +
                                        std::to_string(cols) + " to the copy engine failed with code " +
                                        std::to_string(int(result)));
}

}  // namespace

CUtensorMap tile_map(const void* data, DType dtype, std::int64_t rows, std::int64_t cols,
                     std::int64_t row_stride, int box_rows) {
    assert(dtype == DType::f16 || dtype == DType::bf16);
    CUtensorMap map{};
    const cuuint64_t size[2] = {cuuint64_t(cols), cuuint64_t(rows)};
    const cuuint64_t stride[1] = {cuuint64_t(row_stride) * 2};
    const cuuint32_t box[2] = {64, cuuint32_t(box_rows)};
    const cuuint32_t step[2] = {1, 1};
    const CUresult result = encoder()(
        &map, dtype == DType::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
        const_cast<void*>(data), size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) failed(result, rows, cols);
    return map;
}

namespace {

CUtensorMap words_map(const void* data, std::initializer_list<std::uint64_t> sizes,
                      std::initializer_list<std::uint32_t> box) {
    CUtensorMap map{};
    constexpr std::size_t most = 5;
    cuuint64_t size[most], stride[most];
    cuuint32_t step[most];
    std::copy(sizes.begin(), sizes.end(), size);
    std::fill(step, step + most, 1U);
    cuuint64_t bytes = 8;
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
        stride[i] = bytes *= size[i];
    const CUresult result =
        encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_INT64, cuuint32_t(sizes.size()), const_cast<void*>(data),
                  size, stride, box.begin(), step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) failed(result, std::int64_t(bytes), std::int64_t(size[sizes.size() - 1]));
    return map;
}

}  // namespace

CUtensorMap block_map(const void* data, int row_bytes, int rows, int blocks, int box_rows, int box_blocks) {
    const auto words = std::uint32_t(row_bytes / 8);
    return words_map(data, {words, std::uint64_t(rows), std::uint64_t(blocks)},
                     {words, std::uint32_t(box_rows), std::uint32_t(box_blocks)});
}

CUtensorMap slab_map(const void* data, int piece_bytes, int rows, int blocks, int box_rows) {
    const auto words = std::uint32_t(piece_bytes / 8);
    return words_map(data, {words, 4, std::uint64_t(rows), std::uint64_t(blocks)},
                     {words, 1, std::uint32_t(box_rows), 1});
}

}  // namespace recto::cuda
