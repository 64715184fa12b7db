#include <cuda_runtime.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "kernels/cuda/card.h"
#include "kernels/cuda/launch.h"

namespace recto::cuda {

namespace {

constexpr const char* instead = "use --device cpu";
// A context takes some hundred MiB of a card; on less than this beside it no model is worth starting.
constexpr std::size_t least_free = std::size_t(256) << 20;

__global__ void probe() {}

std::string version(int number) {  // 13000 → 13.0
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string mib(std::size_t bytes) {
    return std::to_string(bytes >> 20) + " MiB";
}

std::string no_driver() {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return std::string("no NVIDIA driver is installed, which CUDA needs; install one, or ") + instead;
    return "the NVIDIA driver is too old: it supports CUDA " + version(driver) + ", this build needs CUDA " +
           version(runtime) + "; update the driver, or " + instead;
}

std::string refused(cudaError_t status) {
    switch (status) {
        case cudaErrorInsufficientDriver:
            return no_driver();
        case cudaErrorNoDevice:
            return std::string("no NVIDIA card that CUDA can use was found; ") + instead;
        case cudaErrorMemoryAllocation:
            return std::string("no memory is free on the card; end other programs that use it, or ") +
                   instead;
        case cudaErrorDevicesUnavailable:
            return std::string("the card is held by another program alone; end that program, or ") + instead;
        default:
            return std::string("CUDA cannot use the card: ") + cudaGetErrorString(status) + "; " + instead;
    }
}

}  // namespace

bool card_usable(int ordinal, std::string& why) {
    const auto failed = [&why](cudaError_t status) {
        if (status == cudaSuccess) return false;
        cudaGetLastError();  // answered here: it must not surface again
        why = refused(status);
        return true;
    };
    int count = 0;
    if (failed(cudaGetDeviceCount(&count))) return false;
    if (count == 0) return !failed(cudaErrorNoDevice);
    if (ordinal < 0 || ordinal >= count) {
        why = std::string("there ") +
              (count == 1 ? "is 1 NVIDIA card" : "are " + std::to_string(count) + " NVIDIA cards") +
              ", numbered from 0; choose one of them instead of number " + std::to_string(ordinal);
        return false;
    }
    cudaDeviceProp properties{};
    if (failed(cudaGetDeviceProperties(&properties, ordinal)) || failed(cudaSetDevice(ordinal))) return false;
    cudaFuncAttributes attributes{};
    const cudaError_t image = cudaFuncGetAttributes(&attributes, probe);
    if (image == cudaErrorNoKernelImageForDevice || image == cudaErrorInvalidDeviceFunction) {
        cudaGetLastError();
        why = std::string("the card ") + properties.name + " has compute capability " +
              std::to_string(properties.major) + "." + std::to_string(properties.minor) +
              ", but this build's kernels are for " RECTO_CUDA_ARCHITECTURES
              "; build with CMAKE_CUDA_ARCHITECTURES=" +
              std::to_string(properties.major * 10 + properties.minor) + ", or " + instead;
        return false;
    }
    if (failed(image)) return false;
    std::size_t free = 0, total = 0;
    if (failed(cudaMemGetInfo(&free, &total))) return false;
    if (free < least_free) {
        why = std::string("the card ") + properties.name + " has " + mib(free) + " of " + mib(total) +
              " free, at least " + mib(least_free) + " are needed; end other programs that use it, or " +
              instead;
        return false;
    }
    return true;
}

bool built_for_hopper() {
    return std::string_view(RECTO_CUDA_ARCHITECTURES).find("90a") != std::string_view::npos;
}

int usable_capability(int major, int minor, const std::string& max_arch) {
    const int own = std::min(10 * major + minor, compiled_capability());
    if (max_arch.empty()) return own;
    int wanted = 0;
    const char* const end = max_arch.data() + max_arch.size();
    const bool named = max_arch.starts_with("sm_");
    const auto [rest, failure] = std::from_chars(max_arch.data() + (named ? 3 : 0), end, wanted);
    if (!named || failure != std::errc() || rest != end || wanted < 50)
        throw Error(ErrorKind::argument,
                    "max_arch: expected a compute capability such as sm_80, found \"" + max_arch + "\"");
    return std::min(own, wanted);
}

}  // namespace recto::cuda
