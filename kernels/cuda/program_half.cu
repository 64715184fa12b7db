#include "kernels/cuda/program_kernel.cuh"

namespace recto::cuda {

void program_half(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                  int multiprocessors) {
    launch_program_for<__half, DType::f16>(stream, program, shape, multiprocessors);
}

}  // namespace recto::cuda
