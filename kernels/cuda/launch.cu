#include "kernels/cuda/launch.h"

namespace recto::cuda {
namespace {

__global__ void probe_kernel() {}

}  // namespace

bool programmatic_launches() {
    // The version of PTX that a kernel was compiled from is what __CUDA_ARCH__ was: code made for an older
    // card and translated by the driver runs on a new one, without the wait.
    static const bool yes = [] {
        cudaFuncAttributes attributes{};
        check(cudaFuncGetAttributes(&attributes, probe_kernel), "reading a kernel's attributes");
        return attributes.ptxVersion >= 90;
    }();
    return yes;
}

}  // namespace recto::cuda
