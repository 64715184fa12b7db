#include <cassert>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/tile_linear.h"

namespace recto::cuda {

template <TileKind Kind, class T>
void launch_widths(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                   const LinearScratch& scratch, const TileShape& shape);

void hopper_linear(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                   const LinearScratch& scratch, const TileShape& shape) {
    assert(x.dtype == w.dtype && x.cols == w.cols && x.rows == output.out.rows &&
           w.outputs == output.out.cols);
    const bool half = w.dtype == DType::f16;
    switch (w.kind) {
        case TileKind::dense:
            return half ? launch_widths<TileKind::dense, __half>(stream, x, w, output, scratch, shape)
                        : launch_widths<TileKind::dense, __nv_bfloat16>(stream, x, w, output, scratch, shape);
        case TileKind::u4:
            return half ? launch_widths<TileKind::u4, __half>(stream, x, w, output, scratch, shape)
                        : launch_widths<TileKind::u4, __nv_bfloat16>(stream, x, w, output, scratch, shape);
        case TileKind::u8:
            return half ? launch_widths<TileKind::u8, __half>(stream, x, w, output, scratch, shape)
                        : launch_widths<TileKind::u8, __nv_bfloat16>(stream, x, w, output, scratch, shape);
    }
}

}  // namespace recto::cuda
