#include "kernels/cuda/program_room.h"

#include <algorithm>

namespace recto::cuda {

ProgramLayout lay_out_program(int steps, int step_size, int inputs, int shared_bytes) {
    constexpr int beside = 4096;  // shared memory with a fixed place
    ProgramLayout layout{};
    layout.step_bytes = up_to(steps * step_size, 128);
    layout.x_bytes = up_to(inputs, 128);
    const int room = shared_bytes - beside - layout.step_bytes - layout.x_bytes;
    layout.depth = std::clamp(room / (program_warps * bite_bytes), 0, most_bites);
    layout.ring_bytes = layout.depth * bite_bytes;
    return layout;
}

bool is_worthwhile(int products, int rows, const ProgramLayout& layout) {
    if (rows <= 2) return products >= least_products;
    return products >= least_products_of_many_rows && layout.depth > least_bites;
}

StepPlace ProgramRoom::place(int inputs) const {
    const auto fits = [&](int steps, int widest) {
        return steps <= most_program_steps &&
               lay_out_program(steps, step_size_, widest, shared_bytes_).fits();
    };
    if (fits(steps_ + 1, std::max(inputs_, inputs))) return StepPlace::here;
    return fits(1, inputs) ? StepPlace::next : StepPlace::none;
}

void ProgramRoom::take(int inputs) {
    ++steps_;
    inputs_ = std::max(inputs_, inputs);
}

void ProgramRoom::clear() {
    steps_ = inputs_ = 0;
}

}  // namespace recto::cuda
