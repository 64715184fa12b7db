#include "kernels/cuda/program_kernel.cuh"

namespace recto::cuda {

void program_bf16(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                  int multiprocessors) {
    launch_program_for<__nv_bfloat16, DType::bf16>(stream, program, shape, multiprocessors);
}

}  // namespace recto::cuda
