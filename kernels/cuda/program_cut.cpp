#include "kernels/cuda/program_cut.h"

namespace recto::cuda {

ProgramCut cut_product(bool dense, bool gated, int outputs, int cols, int blocks) {
    ProgramCut cut{};
    cut.dense = dense;
    cut.gated = gated;
    cut.units = (outputs + cut.unit_outputs() - 1) / cut.unit_outputs();
    const int inputs = dense ? tile_k : 2 * chunk_k;  // of a bite
    cut.bites = (cols + inputs - 1) / inputs;
    cut.bites_reciprocal =
        unsigned(((std::uint64_t(1) << 32) + unsigned(cut.bites) - 1) / unsigned(cut.bites));
    cut.units_each = cut.units / blocks;
    cut.units_more = cut.units % blocks;
    return cut;
}

}  // namespace recto::cuda
