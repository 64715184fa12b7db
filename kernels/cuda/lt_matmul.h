// Full-precision products of many rows through cuBLASLt (NVIDIA's library; DESIGN §6). The library is opened when the
// first such product is made: a program that never meets a card does not pay for loading it.
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

    // Null when the library is there; else one sentence that names what is missing.
    const char* missing() const;
    // out = x · Wᵀ, or out += with `add`. W [outputs, x.cols] of x's 16-bit type, row-major; out of that type or FP32.
    // FP32 sums. Error(runtime) when the library refuses the shape.
    void run(cudaStream_t stream, Tensor x, const void* weight, Tensor out, bool add);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace recto::cuda
