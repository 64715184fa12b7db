#include "kernels/cuda/program.h"

#include <cassert>

namespace recto::cuda {

bool wide_parameters() {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12010;
}

bool program_serves(const ProgramShape& s) {
    return (s.activation == DType::f16 || s.activation == DType::bf16) &&
           (s.cache == s.activation || s.cache == DType::f8_e4m3) && (s.head_dim == 64 || s.head_dim == 128);
}

void launch_program(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                    int multiprocessors) {
    assert(program_serves(shape));
    (shape.activation == DType::f16 ? program_half : program_bf16)(stream, program, shape, multiprocessors);
}

}  // namespace recto::cuda
