// Launches with programmatic dependent launch (CUDA programming guide; compute capability 9.0): a kernel's
// blocks may be placed on the card while the kernel before still runs, so that its prologue costs nothing.
//
// The rules, for every kernel of this folder that goes through `launch`:
//   1. Every thread calls wait_for_previous() before it leaves, and before it reads or writes anything that
//      an earlier kernel writes or reads. Only weights may be read before it, and the step's packet (copied
//      before the step's first kernel, which waits for the copy whole).
//   2. let_next_start() is called once near the start. It says nothing about results: the next kernel's
//      wait_for_previous() returns only when this whole grid has ended and its writes are visible.
//   3. What an earlier kernel wrote is read by plain loads: __ldg and const __restrict__ pointers make loads
//      that the compiler may move above the wait.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "kernels/cuda/check.h"

namespace recto::cuda {

// What this build's code for the card was compiled for, 10 major + minor: code made for an older card and
// translated by the driver runs on a new one, without what only the new one has.
int compiled_capability();
// Whether that code holds the wait: without it the attribute would let kernels overlap freely.
bool programmatic_launches();

// When a kernel's blocks are placed: while the kernel before still runs, or after its end. A multiprocessor
// keeps its division into cache and shared memory while it has blocks, so that an early one may find hardly
// any cache.
enum class Start { early, after };

template <typename... Parameters, typename... Arguments>
void launch(Start start, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
    // A block gets more than 48 KiB only where its kernel asks for it.
    if (shared_bytes > 48U * 1024U)
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)),
              name);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = start == Start::early && programmatic_launches() ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
    launch(Start::early, name, kernel, grid, block, shared_bytes, stream,
           std::forward<Arguments>(arguments)...);
}

#ifdef __CUDACC__
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

}  // namespace recto::cuda
