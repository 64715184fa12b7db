#include "kernels/cuda/program.h"

#include <algorithm>
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

int program_step_bytes(int count) {
    return up_to(count * int(sizeof(ProgramStep)), 128);
}

bool settle_program(Program& program, int head_dim, int shared_bytes) {
    int most = 0;
    for (int i = 0; i < program.count; ++i) {
        const ProgramStep& s = program.steps[i];
        most = std::max(most, s.kind == ProgramStep::Kind::product
                                  ? InputPlace(s.product.cut, s.product.cols, program.rows).bytes
                                  : SharePlace(std::min(s.attention.group, decode_heads), head_dim).bytes);
    }
    constexpr int beside = 4096;  // shared memory with a fixed place
    program.shared_bytes = shared_bytes;
    program.step_bytes = program_step_bytes(program.count);
    program.x_bytes = up_to(most, 128);
    const int room = shared_bytes - beside - program.step_bytes - program.x_bytes;
    program.depth = std::min(most_bites, room / (program_warps * bite_bytes));
    program.ring_bytes = program.depth * bite_bytes;
    return program.depth >= least_bites;
}

void launch_program(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                    int multiprocessors) {
    assert(program_serves(shape));
    (shape.activation == DType::f16 ? program_half : program_bf16)(stream, program, shape, multiprocessors);
}

}  // namespace recto::cuda
