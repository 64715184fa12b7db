#include "kernels/cuda/launch.h"

namespace recto::cuda {
namespace {

__global__ void probe_kernel() {}

}  // namespace

int compiled_capability() {
    // The version of PTX that a kernel was compiled from is what __CUDA_ARCH__ was.
    static const int capability = [] {
        cudaFuncAttributes attributes{};
        check(cudaFuncGetAttributes(&attributes, probe_kernel), "reading a kernel's attributes");
        return attributes.ptxVersion;
    }();
    return capability;
}

bool programmatic_launches() {
    return compiled_capability() >= 90;
}

}  // namespace recto::cuda
