// Logical planes as the plain kernels read them: codes as they are, scales and offsets in FP32.
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/kernels.h"

namespace recto::cuda {

namespace {

__global__ void widen_groups(LogicalPlanes planes, float* scale, float* offset) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= planes.rows * planes.groups()) return;
    const float s = load(planes.scale, at, planes.scale_dtype);
    scale[at] = s;
    if (!offset) return;
    // The product is exact: scales of zero points have 16 bits.
    offset[at] =
        planes.zero_point ? -s * float(planes.zero_point[at]) : load(planes.offset, at, planes.offset_dtype);
}

}  // namespace

void keep_plain(cudaStream_t stream, const LogicalPlanes& planes, const PartView& part) {
    const auto bytes = std::size_t(planes.rows * planes.cols) / (planes.integer == QuantInt::u4 ? 2 : 1);
    check(
        cudaMemcpyAsync(const_cast<std::uint8_t*>(part.q), planes.q, bytes, cudaMemcpyDeviceToDevice, stream),
        "copying codes");
    const long long groups = planes.rows * planes.groups();
    widen_groups<<<unsigned((groups + 255) / 256), 256, 0, stream>>>(planes, const_cast<float*>(part.scale),
                                                                     const_cast<float*>(part.offset));
    check_launch("widening scales");
}

}  // namespace recto::cuda
