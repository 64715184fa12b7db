// Every CUDA call's return code becomes a recto::Error; an out-of-memory is always called that.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "kernels/error.h"

namespace recto::cuda {

inline void check(cudaError_t status, const char* doing) {
    if (status == cudaSuccess) return;
    const ErrorKind kind = status == cudaErrorMemoryAllocation ? ErrorKind::memory : ErrorKind::runtime;
    throw Error(kind, std::string("CUDA: ") + doing + " failed: " + cudaGetErrorString(status));
}

// After a launch: reports what the launch itself refused. What fails while running shows at the next wait.
inline void check_launch(const char* kernel) {
    check(cudaGetLastError(), kernel);
}

}  // namespace recto::cuda
