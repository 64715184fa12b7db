#include "kernels/cuda/tensor_map.h"

#include <cuda_runtime.h>

#include <cassert>

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

CUtensorMap slab_map(const void* data, int piece_bytes, int rows, int blocks, int box_rows) {
    CUtensorMap map{};
    const cuuint64_t piece = cuuint64_t(piece_bytes);
    const cuuint64_t size[4] = {piece / 8, 4, cuuint64_t(rows), cuuint64_t(blocks)};
    const cuuint64_t stride[3] = {piece, 4 * piece, 4 * piece * cuuint64_t(rows)};
    const cuuint32_t box[4] = {cuuint32_t(piece_bytes / 8), 1, cuuint32_t(box_rows), 1};
    const cuuint32_t step[4] = {1, 1, 1, 1};
    const CUresult result =
        encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_INT64, 4, const_cast<void*>(data), size, stride, box, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) failed(result, std::int64_t(rows) * blocks, 4 * piece_bytes);
    return map;
}

}  // namespace recto::cuda
