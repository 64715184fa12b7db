// Products of many rows through cuBLASLt (NVIDIA's library; DESIGN §6). The library is opened when a card is
// first asked for what it has: a program that never meets one does not pay for loading it.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "kernels/tensor.h"

namespace recto::cuda {

class LtMatmul {
  public:
    LtMatmul();
    ~LtMatmul();
    LtMatmul(const LtMatmul&) = delete;
    LtMatmul& operator=(const LtMatmul&) = delete;

    // Makes the workspace now: nothing can be allocated while a graph is captured.
    void prepare();
    std::size_t bytes() const;  // of that workspace, once there is one
    // Null when the library is there; else one sentence that names what is missing.
    const char* missing() const;
    // out = x · Wᵀ, or out += with `add`. W [outputs, x.cols] of x's type, row-major:
    //     16-bit types   out of that type or FP32; FP32 sums
    //     f8_e4m3        out of a 16-bit type or FP32; sums as fast_fp8_sums says
    //     i8             out i32, not added to; exact sums
    // Of 8-bit types x.cols, outputs and the distance of rows are multiples of 16. Error(runtime) when the
    // library refuses the shape.
    void run(cudaStream_t stream, Tensor x, const void* weight, Tensor out, bool add);

    struct Scales {
        const float* x = nullptr;       // [x.rows]
        const float* weight = nullptr;  // [outputs]
    };
    // out = Σ · scales.x[row] · scales.weight[output] (+ out) of f8_e4m3. False, with nothing enqueued, where
    // the library has no such product for the card: before CUDA 12.9, and on others than Hopper.
    bool run_scaled(cudaStream_t stream, Tensor x, const void* weight, Tensor out, bool add,
                    const Scales& scales);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace recto::cuda
